// Text as the content of an XML element or attribute.
//
// Thread safety: function only. Errors: none; control characters stay, for which XML has no form.
#pragma once

#include <string>
#include <string_view>

namespace cframefs::frame {

inline std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace cframefs::frame
