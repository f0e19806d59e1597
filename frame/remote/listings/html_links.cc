#include "frame/remote/listings/html_links.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

namespace cframefs::frame {

namespace {

constexpr std::string_view kHtmlSpace = " \t\r\n\f";
constexpr std::size_t kMostReference = 12;  // bytes between '&' and ';'
constexpr std::size_t kMostTitle = 256;

char html_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equals_in_any_case(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) { return html_lower(a) == b; });
}

bool is_html_letter(char c) {
  return html_lower(c) >= 'a' && html_lower(c) <= 'z';
}

void append_character(std::string& to, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { to.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6U);
    byte(0x80 | (code & 0x3fU));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12U);
    byte(0x80 | (code >> 6U & 0x3fU));
    byte(0x80 | (code & 0x3fU));
  } else {
    byte(0xf0 | code >> 18U);
    byte(0x80 | (code >> 12U & 0x3fU));
    byte(0x80 | (code >> 6U & 0x3fU));
    byte(0x80 | (code & 0x3fU));
  }
}

/// Returns the character of "#39" or "#x27"; nullopt if it is none of Unicode.
std::optional<std::uint32_t> numbered_character(std::string_view reference) {
  reference.remove_prefix(1);
  int base = 10;
  if (!reference.empty() && html_lower(reference.front()) == 'x') {
    base = 16;
    reference.remove_prefix(1);
  }
  std::uint32_t code = 0;
  const auto parsed = std::from_chars(reference.data(), reference.data() + reference.size(), code, base);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == reference.data() + reference.size();
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (!is_number || code > 0x10ffff || is_surrogate) return std::nullopt;
  return code;
}

std::optional<std::uint32_t> referenced_character(std::string_view reference) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kNamed = {
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  if (reference.starts_with('#')) return numbered_character(reference);
  for (const auto& [name, character] : kNamed) {
    if (reference == name) return static_cast<std::uint32_t>(character);
  }
  return std::nullopt;
}

/// Walks over the text; each member moves forward only.
class HtmlScanner {
 public:
  explicit HtmlScanner(std::string_view text) : text_(text) {}

  HtmlLinks scan();

 private:
  bool is_at_end() const { return at_ >= text_.size(); }
  char here() const { return text_[at_]; }
  void skip_space() { at_ = std::min(text_.find_first_not_of(kHtmlSpace, at_), text_.size()); }
  void skip_past(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }
  std::string_view tag_name();
  /// Returns the value of the next attribute, if it is href; moves behind it.
  std::optional<std::string_view> next_attribute();
  /// Moves to the end tag of an element whose content is no markup; returns the content.
  std::string_view raw_content(std::string_view element);
  void scan_tag();

  std::string_view text_;
  std::size_t at_ = 0;
  HtmlLinks links_;
};

std::string_view HtmlScanner::tag_name() {
  const std::size_t begin = at_;
  while (!is_at_end() && here() != '>' && here() != '/' && kHtmlSpace.find(here()) == std::string_view::npos)
    ++at_;
  return text_.substr(begin, at_ - begin);
}

std::optional<std::string_view> HtmlScanner::next_attribute() {
  constexpr std::string_view kAfterName = " \t\r\n\f=>/";
  constexpr std::string_view kAfterValue = " \t\r\n\f>";
  const std::size_t begin = at_;
  // The first character belongs to the name whatever it is, so that each call moves.
  at_ = std::min(text_.find_first_of(kAfterName, at_ + 1), text_.size());
  const bool is_href = equals_in_any_case(text_.substr(begin, at_ - begin), "href");
  skip_space();
  if (is_at_end() || here() != '=') return std::nullopt;
  ++at_;
  skip_space();
  if (is_at_end()) return std::nullopt;
  std::size_t end = 0;
  std::size_t first = at_;
  if (here() == '"' || here() == '\'') {
    ++first;
    end = text_.find(here(), first);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
  } else {
    end = text_.find_first_of(kAfterValue, at_);
    at_ = std::min(end, text_.size());
  }
  if (!is_href || end == std::string_view::npos) return std::nullopt;
  return text_.substr(first, end - first);
}

std::string_view HtmlScanner::raw_content(std::string_view element) {
  const std::size_t begin = at_;
  while (!is_at_end()) {
    const std::size_t end = text_.find("</", at_);
    if (end == std::string_view::npos) break;
    at_ = end + 2;
    if (equals_in_any_case(text_.substr(at_, element.size()), element)) return text_.substr(begin, end - begin);
  }
  at_ = text_.size();
  return text_.substr(std::min(begin, text_.size()));
}

void HtmlScanner::scan_tag() {
  if (text_.substr(at_).starts_with("!--")) {
    skip_past("-->");
    return;
  }
  if (is_at_end() || !is_html_letter(here())) return;  // an end tag, a declaration, or a '<' of the text
  const std::string_view name = tag_name();
  const bool is_link = equals_in_any_case(name, "a");
  bool is_found = false;
  while (true) {
    at_ = std::min(text_.find_first_not_of(" \t\r\n\f/", at_), text_.size());
    if (is_at_end()) return;
    if (here() == '>') break;
    const auto target = next_attribute();
    // The first of two equal attributes counts.
    if (target && is_link && !is_found) {
      is_found = true;
      links_.targets.push_back(without_references(*target));
    }
  }
  ++at_;
  if (equals_in_any_case(name, "script")) raw_content("script");
  if (equals_in_any_case(name, "style")) raw_content("style");
  if (equals_in_any_case(name, "title") && links_.title.empty()) {
    links_.title = without_references(raw_content("title").substr(0, kMostTitle));
  }
}

HtmlLinks HtmlScanner::scan() {
  while (true) {
    at_ = text_.find('<', at_);
    if (at_ == std::string_view::npos) return std::move(links_);
    ++at_;
    scan_tag();
  }
}

}  // namespace

std::string without_references(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const std::string_view rest = text.substr(at + 1, kMostReference + 1);
      const std::size_t end = rest.find(';');
      if (end != std::string_view::npos) {
        if (const auto character = referenced_character(rest.substr(0, end))) {
          append_character(decoded, *character);
          at += end + 1;
          continue;
        }
      }
    }
    decoded.push_back(text[at]);
  }
  return decoded;
}

HtmlLinks links_of_html(std::string_view text) {
  return HtmlScanner(text).scan();
}

}  // namespace cframefs::frame
