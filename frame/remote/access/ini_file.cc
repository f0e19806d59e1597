#include "frame/remote/access/ini_file.h"

#include <algorithm>

namespace cframefs::frame {

namespace {

constexpr std::string_view kIniBlanks = " \t\r\f\v";

std::string_view without_ini_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kIniBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kIniBlanks) + 1);
}

bool is_ini_blank(char c) {
  return kIniBlanks.find(c) != std::string_view::npos;
}

std::string_view without_comment(std::string_view value) {
  for (std::size_t at = 1; at < value.size(); ++at) {
    if ((value[at] == '#' || value[at] == ';') && is_ini_blank(value[at - 1])) return value.substr(0, at);
  }
  return value;
}

std::string section_name(std::string_view header) {
  std::string name;
  for (const char c : without_ini_blanks(header)) {
    if (c == '"' || c == '\'') continue;
    if (!is_ini_blank(c)) {
      name += c;
    } else if (!name.empty() && name.back() != ' ') {
      name += ' ';
    }
  }
  return name;
}

std::string lower_case_name(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lowered;
}

}  // namespace

codec::Result<IniFile> IniFile::parse(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  IniFile file;
  Section* section = nullptr;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (without_ini_blanks(line).empty() || is_ini_blank(line.front()) || line.front() == '#' || line.front() == ';')
      continue;
    if (line.front() == '[') {
      const std::size_t close = line.find(']');
      if (close == std::string_view::npos) {
        return codec::corrupt("line " + std::to_string(number) + ": a section header without ']'");
      }
      section = &file.sections_[section_name(line.substr(1, close - 1))];
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      return codec::corrupt("line " + std::to_string(number) + ": neither a section header nor \"name = value\"");
    }
    if (section == nullptr) continue;
    (*section)[lower_case_name(without_ini_blanks(line.substr(0, equals)))] =
        without_ini_blanks(without_comment(line.substr(equals + 1)));
  }
  return file;
}

const IniFile::Section* IniFile::section(std::string_view name) const {
  const auto found = sections_.find(name);
  return found == sections_.end() ? nullptr : &found->second;
}

}  // namespace cframefs::frame
