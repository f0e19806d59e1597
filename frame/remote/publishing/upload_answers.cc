#include "frame/remote/publishing/upload_answers.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include <expat.h>

#include "frame/remote/http/http_status.h"
#include "frame/remote/objects/object_state.h"

namespace cframefs::frame {

namespace {

constexpr std::size_t kMostUploadDepth = 8;  // of elements; these answers have 2
constexpr std::size_t kMostUploadId = 2048;  // bytes

struct UploadParserFree {
  void operator()(XML_ParserStruct* parser) const { XML_ParserFree(parser); }
};

/// Takes the text of one child of the root element, and the name of the root.
class ChildReader {
 public:
  ChildReader(XML_ParserStruct* parser, std::string_view child) : parser_(parser), child_(child) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(parser, &ChildReader::on_start, &ChildReader::on_end);
    XML_SetCharacterDataHandler(parser, &ChildReader::on_text);
    XML_SetStartDoctypeDeclHandler(parser, &ChildReader::on_document_type);
  }

  const std::string& root() const { return root_; }
  std::string& text() { return text_; }

 private:
  static ChildReader& of(void* self) { return *static_cast<ChildReader*>(self); }
  static void XMLCALL on_start(void* self, const XML_Char* name, const XML_Char** /*attributes*/) {
    of(self).start(name);
  }
  static void XMLCALL on_end(void* self, const XML_Char* /*name*/) {
    of(self).is_child_ = false;
    --of(self).depth_;
  }
  static void XMLCALL on_text(void* self, const XML_Char* text, int length) {
    if (of(self).is_child_) of(self).text_.append(text, static_cast<std::size_t>(length));
  }
  static void XMLCALL on_document_type(void* self, const XML_Char* /*name*/, const XML_Char* /*system*/,
                                       const XML_Char* /*public*/, int /*has_subset*/) {
    XML_StopParser(of(self).parser_, XML_FALSE);
  }

  void start(std::string_view name) {
    if (++depth_ > kMostUploadDepth) XML_StopParser(parser_, XML_FALSE);
    if (depth_ == 1) root_ = name;
    is_child_ = depth_ == 2 && name == child_;
    if (is_child_) text_.clear();
  }

  XML_ParserStruct* parser_;
  const std::string_view child_;
  std::string root_;
  std::string text_;
  std::size_t depth_ = 0;
  bool is_child_ = false;
};

/// Returns the text of the child of an answer with this root; empty if there is none.
Result<std::string> child_of(const HttpAnswer& answer, std::string_view root, std::string_view child) {
  const auto refused = [root](const std::string& why) {
    return codec::unsupported("the answer of the bucket is no " + std::string(root) + ": " + why);
  };
  if (answer.body.size() > kMostUploadAnswer) return refused("it is longer than 64 KiB");
  const std::unique_ptr<XML_ParserStruct, UploadParserFree> parser(XML_ParserCreate(nullptr));
  if (!parser) return codec::io_error(ENOMEM, "parse of an answer");
  ChildReader reader(parser.get(), child);
  const auto status = XML_Parse(parser.get(), reinterpret_cast<const char*>(answer.body.data()),
                                static_cast<int>(answer.body.size()), XML_TRUE);
  if (status != XML_STATUS_OK) return refused(XML_ErrorString(XML_GetErrorCode(parser.get())));
  if (reader.root() != root) return refused("its root element is another");
  return std::move(reader.text());
}

}  // namespace

Result<std::string> upload_id_of(const HttpAnswer& answer) {
  auto id = child_of(answer, "InitiateMultipartUploadResult", "UploadId");
  if (id && (id->empty() || id->size() > kMostUploadId))
    return codec::unsupported(
        "the answer of the bucket has no identifier of the upload, or a longer one than 2048 bytes");
  return id;
}

Result<std::string> completed_tag_of(const HttpAnswer& answer, const std::string& url) {
  if (!error_code_of(answer).empty()) return failure_of(answer, url);
  auto text = child_of(answer, "CompleteMultipartUploadResult", "ETag");
  if (!text || text->empty()) return text;
  // Checked as the tag of a header is: it goes into those of later requests.
  HttpAnswer tagged;
  if (text->find('"') == std::string::npos) *text = '"' + *text + '"';
  tagged.headers.push_back({"ETag", std::move(*text)});
  return state_of(tagged).entity_tag;
}

}  // namespace cframefs::frame
