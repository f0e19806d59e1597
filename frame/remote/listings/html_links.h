// A tokenizer of HTML that finds links and the title, and nothing else.
//
// It accepts any bytes, and takes time proportional to them. Comments, scripts and style sheets hold no links.
//
// Thread safety: functions only. Ownership: values. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cframefs::frame {

struct HtmlLinks {
  std::vector<std::string> targets;  // of <a href="...">, in order, with character references decoded
  std::string title;                 // its first 256 bytes; empty if there is none
};

HtmlLinks links_of_html(std::string_view text);

/// Returns the text with character references decoded: &amp; &lt; &gt; &quot; &apos; and numbers. Others stay.
std::string without_references(std::string_view text);

}  // namespace cframefs::frame
