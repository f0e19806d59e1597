// Files in the syntax of ~/.aws/config and ~/.aws/credentials: sections of "name = value" lines.
//
// A line that begins with '#' or ';' is a comment, and so is the rest of a value from a '#' or ';' after white space.
// A line that begins with white space continues a value or belongs to a nested one; both are left out, because no value
// that is read here has more than one line. Names of values are compared without case, those of sections with it. Of
// equal sections the values are joined, of equal values the last one counts.
//
// Thread safety: a value. Errors: corruption, with the number of the line; no message holds a value.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "codec/base/error.h"

namespace cframefs::frame {

class IniFile {
 public:
  using Section = std::map<std::string, std::string, std::less<>>;  // names in lower case

  static codec::Result<IniFile> parse(std::string_view text);

  /// Returns the section of a header such as [NAME], or nullptr. In headers white space counts as one space, and
  /// quotation marks are left out: [profile "x"] is "profile x".
  const Section* section(std::string_view name) const;

 private:
  std::map<std::string, Section, std::less<>> sections_;
};

}  // namespace cframefs::frame
