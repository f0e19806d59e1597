#include "frame/remote/access/credential_answers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <map>
#include <memory>
#include <type_traits>

#include <expat.h>
#include <nlohmann/json.hpp>

namespace cframefs::frame {

namespace {

using codec::corrupt;
using nlohmann::json;

constexpr std::size_t kMostFieldBytes = std::size_t{16} << 10U;
constexpr std::size_t kMostCodeBytes = 64;

/// Reads a number of digits at the front of *text.
std::optional<int> take_number(std::string_view* text, std::size_t digits) {
  if (text->size() < digits) return std::nullopt;
  int value = 0;
  for (const char c : text->substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text->remove_prefix(digits);
  return value;
}

bool take_character(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

/// Returns the seconds east of Greenwich of "Z", "+01:00" or "-0100".
std::optional<std::int64_t> parse_zone(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  const int sign = text.front() == '+' ? 1 : -1;
  text.remove_prefix(1);
  const auto hours = take_number(&text, 2);
  take_character(&text, ':');
  const auto minutes = take_number(&text, 2);
  if (!hours || !minutes || !text.empty() || *hours > 23 || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

/// Returns printable ASCII of at most kMostCodeBytes, or nothing.
std::string safe_code(std::string_view code) {
  const bool is_safe = std::all_of(code.begin(), code.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
  });
  return is_safe && code.size() <= kMostCodeBytes ? std::string(code) : "";
}

std::string json_text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Collects the text of elements by name. Of equal elements the first one counts.
class ElementTexts {
 public:
  /// Returns false if the text is no XML, or has a document type, whose entities could make it grow.
  bool parse(std::string_view text) {
    const std::unique_ptr<std::remove_pointer_t<XML_Parser>, void (*)(XML_Parser)> parser(XML_ParserCreate("UTF-8"),
                                                                                          XML_ParserFree);
    if (!parser) return false;
    parser_ = parser.get();
    XML_SetUserData(parser_, this);
    XML_SetElementHandler(parser_, on_begin, on_end);
    XML_SetCharacterDataHandler(parser_, on_text);
    XML_SetStartDoctypeDeclHandler(parser_, on_document_type);
    return XML_Parse(parser_, text.data(), static_cast<int>(text.size()), XML_TRUE) == XML_STATUS_OK;
  }
  std::string text_of(const std::string& element) const {
    const auto found = texts_.find(element);
    return found == texts_.end() ? "" : found->second;
  }

 private:
  static void on_begin(void* self, const XML_Char*, const XML_Char**) {
    static_cast<ElementTexts*>(self)->text_.clear();
  }
  static void on_end(void* self, const XML_Char* name) {
    auto* texts = static_cast<ElementTexts*>(self);
    texts->texts_.emplace(name, texts->text_);
    texts->text_.clear();
  }
  static void on_text(void* self, const XML_Char* text, int length) {
    static_cast<ElementTexts*>(self)->text_.append(text, static_cast<std::size_t>(length));
  }
  static void on_document_type(void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
    XML_StopParser(static_cast<ElementTexts*>(self)->parser_, XML_FALSE);
  }

  XML_Parser parser_ = nullptr;
  std::string text_;
  std::map<std::string, std::string> texts_;
};

/// Sets the time at which the credentials expire; an unknown form is refused, because they would be used for ever.
Result<Credentials> with_expiration(Credentials credentials, const std::string& time, const std::string& source) {
  if (!time.empty()) {
    credentials.expires = parse_time(time);
    if (!credentials.expires) return corrupt(source + ": the time of expiration is none of ISO 8601");
  }
  return checked_credentials(std::move(credentials), source);
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  std::array<int, 6> parts{};  // year, month, day, hour, minute, second
  constexpr std::string_view kSeparators = "--T::";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0 && !take_character(&text, kSeparators[i - 1])) return std::nullopt;
    const auto number = take_number(&text, i == 0 ? 4 : 2);
    if (!number) return std::nullopt;
    parts[i] = *number;
  }
  if (parts[0] < 1970 || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > 31 || parts[3] > 23 ||
      parts[4] > 59 || parts[5] > 60) {
    return std::nullopt;
  }
  if (take_character(&text, '.')) {
    while (take_number(&text, 1)) {
    }
  }
  const auto offset = parse_zone(text);
  if (!offset) return std::nullopt;
  struct tm time {};
  time.tm_year = parts[0] - 1900;
  time.tm_mon = parts[1] - 1;
  time.tm_mday = parts[2];
  time.tm_hour = parts[3];
  time.tm_min = parts[4];
  time.tm_sec = parts[5];
  return std::int64_t{::timegm(&time)} - *offset;
}

Result<Credentials> credentials_of_json(std::string_view text, const std::string& source) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return corrupt(source + ": the answer is no JSON object");
  if (const std::string code = json_text(object, "Code"); !code.empty() && code != "Success") {
    const std::string shown = safe_code(code);
    return codec::io_error(EACCES, source, shown.empty() ? "the answer has no credentials" : shown);
  }
  Credentials credentials;
  credentials.key_id = json_text(object, "AccessKeyId");
  credentials.secret = json_text(object, "SecretAccessKey");
  credentials.session_token = json_text(object, "SessionToken");
  if (credentials.session_token.empty()) credentials.session_token = json_text(object, "Token");
  const auto expiration = object.find("Expiration");
  if (expiration != object.end() && !expiration->is_string() && !expiration->is_null()) {
    return corrupt(source + ": the time of expiration is no string");
  }
  return with_expiration(std::move(credentials), json_text(object, "Expiration"), source);
}

Result<Credentials> credentials_of_sts(std::string_view text, const std::string& source) {
  ElementTexts elements;
  if (!elements.parse(text)) return corrupt(source + ": the answer is no XML");
  Credentials credentials;
  credentials.key_id = elements.text_of("AccessKeyId");
  credentials.secret = elements.text_of("SecretAccessKey");
  credentials.session_token = elements.text_of("SessionToken");
  return with_expiration(std::move(credentials), elements.text_of("Expiration"), source);
}

std::string error_code_of_sts(std::string_view text) {
  ElementTexts elements;
  return elements.parse(text) ? safe_code(elements.text_of("Code")) : "";
}

Result<Credentials> checked_credentials(Credentials credentials, const std::string& source) {
  struct Field {
    const char* name;
    const std::string& value;
    bool is_needed;
  };
  for (const Field& field :
       {Field{"access key id", credentials.key_id, true}, Field{"secret access key", credentials.secret, true},
        Field{"session token", credentials.session_token, false}}) {
    if (field.is_needed && field.value.empty()) return corrupt(source + ": there is no " + field.name);
    const auto is_visible = [](char c) { return c > ' ' && c < '\x7f'; };
    if (!std::all_of(field.value.begin(), field.value.end(), is_visible)) {
      return corrupt(source + ": the " + field.name + " has other characters than visible ones of ASCII");
    }
    if (field.value.size() > kMostFieldBytes) {
      return corrupt(source + ": the " + field.name + " has " + std::to_string(field.value.size()) +
                     " bytes, at most " + std::to_string(kMostFieldBytes));
    }
  }
  return credentials;
}

}  // namespace cframefs::frame
