#include "frame/remote/listings/list_objects.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <expat.h>

#include "frame/remote/http/percent_encoding.h"
#include "frame/remote/listings/listing_text.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Error;
using codec::unsupported;

constexpr std::size_t kMostDepth = 8;         // of elements; a listing has 4: the owner of an object
constexpr std::size_t kMostOnPage = 100'000;  // objects and prefixes; servers send 1,000

struct XmlParserFree {
  void operator()(XML_ParserStruct* parser) const { XML_ParserFree(parser); }
};
using XmlParser = std::unique_ptr<XML_ParserStruct, XmlParserFree>;

/// Elements whose text is kept.
enum class ListField : std::uint8_t {
  none,
  key,
  size,
  tag,
  date,
  prefix,
  truncated,
  continuation,
  encoding,
};

struct FieldPlace {
  std::string_view parent;  // empty: the root element
  std::string_view name;
  ListField field;
};
constexpr std::array<FieldPlace, 8> kFieldPlaces = {{{"Contents", "Key", ListField::key},
                                                     {"Contents", "Size", ListField::size},
                                                     {"Contents", "ETag", ListField::tag},
                                                     {"Contents", "LastModified", ListField::date},
                                                     {"CommonPrefixes", "Prefix", ListField::prefix},
                                                     {"", "IsTruncated", ListField::truncated},
                                                     {"", "NextContinuationToken", ListField::continuation},
                                                     {"", "EncodingType", ListField::encoding}}};

/// Returns the tag as answers to GET spell it, with quotes, checked like theirs: it goes into headers of later
/// requests. Some servers leave the quotes out of listings.
std::string listed_tag(std::string text) {
  if (text.find('"') == std::string::npos && !text.empty()) text = '"' + std::move(text) + '"';
  HttpAnswer tagged;
  tagged.headers.push_back({"ETag", std::move(text)});
  return state_of(tagged).entity_tag;
}

/// Collects the page from the events of one parser.
class PageReader {
 public:
  explicit PageReader(XML_ParserStruct* parser) : parser_(parser) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(parser, &PageReader::on_start, &PageReader::on_end);
    XML_SetCharacterDataHandler(parser, &PageReader::on_text);
    XML_SetStartDoctypeDeclHandler(parser, &PageReader::on_document_type);
  }

  bool is_listing() const { return is_listing_; }
  const std::optional<Error>& failure() const { return failure_; }
  Result<ObjectsPage> finish();

 private:
  static PageReader& of(void* self) { return *static_cast<PageReader*>(self); }
  static void XMLCALL on_start(void* self, const XML_Char* name, const XML_Char** /*attributes*/) {
    of(self).start(name);
  }
  static void XMLCALL on_end(void* self, const XML_Char* /*name*/) { of(self).end(); }
  static void XMLCALL on_text(void* self, const XML_Char* text, int length) {
    if (of(self).field_ != ListField::none) of(self).text_.append(text, static_cast<std::size_t>(length));
  }
  static void XMLCALL on_document_type(void* self, const XML_Char* /*name*/, const XML_Char* /*system*/,
                                       const XML_Char* /*public*/, int /*has_subset*/) {
    of(self).stop(unsupported("the answer is no list of objects: it declares a document type").value());
  }

  void start(std::string_view name);
  void end();
  void take();
  void stop(Error error) {
    if (!failure_) failure_ = std::move(error);
    XML_StopParser(parser_, XML_FALSE);
  }
  void note_entry() {
    if (page_.objects.size() + page_.prefixes.size() > kMostOnPage) {
      stop(corrupt("the list of objects has more than 100000 entries on one page").value());
    }
  }

  XML_ParserStruct* parser_;
  ObjectsPage page_;
  std::optional<Error> failure_;
  bool is_listing_ = false;
  bool is_encoded_ = false;
  std::size_t depth_ = 0;
  std::string parent_;  // the open element at depth 2, if it is one with fields
  ListField field_ = ListField::none;
  std::string text_;  // of the open field
  bool has_key_ = false;
  bool has_size_ = false;
};

void PageReader::start(std::string_view name) {
  if (++depth_ > kMostDepth) {
    stop(corrupt("the list of objects nests elements deeper than 8").value());
    return;
  }
  field_ = ListField::none;
  if (depth_ == 1) {
    is_listing_ = name == "ListBucketResult";
    if (!is_listing_) stop(unsupported("the answer is no list of objects: its root element is another").value());
    return;
  }
  if (depth_ == 2) parent_.assign(name);
  if (depth_ == 2 && name == "Contents") {
    page_.objects.emplace_back();
    has_key_ = has_size_ = false;
    note_entry();
  }
  if (depth_ > 3) return;
  for (const FieldPlace& place : kFieldPlaces) {
    if (place.name == name && (depth_ == 2 ? place.parent.empty() : place.parent == parent_)) field_ = place.field;
  }
  text_.clear();
}

void PageReader::end() {
  if (field_ != ListField::none) take();
  field_ = ListField::none;
  if (depth_ == 2 && parent_ == "Contents" && !(has_key_ && has_size_)) {
    stop(corrupt("the list of objects tells an object without key or size").value());
  }
  --depth_;
}

void PageReader::take() {
  switch (field_) {
    case ListField::key:
      page_.objects.back().key = std::move(text_);
      has_key_ = true;
      break;
    case ListField::size: {
      std::uint64_t size = 0;
      const auto parsed = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      constexpr auto kMostBytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (parsed.ec != std::errc() || parsed.ptr != text_.data() + text_.size() || size > kMostBytes) {
        stop(corrupt("the list of objects tells a size that is no number of bytes").value());
      }
      page_.objects.back().state.length = size;
      has_size_ = true;
      break;
    }
    case ListField::tag:
      page_.objects.back().state.entity_tag = listed_tag(std::move(text_));
      break;
    case ListField::date:
      page_.objects.back().state.last_modified = seconds_of_iso_date(text_).value_or(0);
      break;
    case ListField::prefix:
      page_.prefixes.push_back(std::move(text_));
      note_entry();
      break;
    case ListField::truncated:
      page_.is_truncated = text_ == "true";
      break;
    case ListField::continuation:
      page_.continuation = std::move(text_);
      break;
    case ListField::encoding:
      is_encoded_ = text_ == "url";
      break;
    case ListField::none:
      break;
  }
  text_.clear();
}

Result<ObjectsPage> PageReader::finish() {
  if (is_encoded_) {
    // The encoding is that of forms, in which a space is '+'.
    for (ObjectsPage::Object& object : page_.objects)
      object.key = decoded_name(object.key, PlusSign::is_space);
    for (std::string& prefix : page_.prefixes)
      prefix = decoded_name(prefix, PlusSign::is_space);
  }
  if (page_.is_truncated && page_.continuation.empty()) {
    return corrupt("the list of objects is truncated but has no continuation token");
  }
  return std::move(page_);
}

}  // namespace

std::string text_of(const ListObjectsQuery& query) {
  std::string text;
  if (!query.continuation.empty()) {
    text += "continuation-token=" + percent_encode(query.continuation) + "&";
  }
  if (query.stops_at_slashes) text += "delimiter=%2F&";
  text += "encoding-type=url&list-type=2&prefix=" + percent_encode(query.prefix);
  return text;
}

Result<ObjectsPage> parse_objects_page(codec::ByteView answer) {
  if (answer.size() > kMostListingBytes) return unsupported("the list of objects is longer than 8 MiB");
  const XmlParser parser(XML_ParserCreate(nullptr));
  if (!parser) return codec::io_error(ENOMEM, "parse of a list of objects");
  PageReader reader(parser.get());
  const auto status =
      XML_Parse(parser.get(), reinterpret_cast<const char*>(answer.data()), static_cast<int>(answer.size()), XML_TRUE);
  if (reader.failure()) return codec::Failure(*reader.failure());
  if (status != XML_STATUS_OK) {
    const std::string why = XML_ErrorString(XML_GetErrorCode(parser.get()));
    if (!reader.is_listing()) return unsupported("the answer is no list of objects: " + why);
    return corrupt("the list of objects is damaged: " + why);
  }
  return reader.finish();
}

}  // namespace cframefs::frame
