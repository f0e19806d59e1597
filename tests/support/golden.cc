#include "tests/support/golden.h"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

namespace cframefs::test {

namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << why << '\n';
  std::abort();
}

}  // namespace

std::filesystem::path golden_dir() {
  return CFRAMEFS_GOLDEN_DIR;
}

std::string golden_cframe(const std::string& name) {
  return (golden_dir() / "cframe" / name).string();
}

std::filesystem::path shared_golden_dir() {
  return CFRAMEFS_SHARED_GOLDEN_DIR;
}

const std::string& Row::operator[](const std::string& column) const {
  const auto found = fields_.find(column);
  if (found == fields_.end()) give_up("the manifest has no column " + column);
  return found->second;
}

std::int64_t Row::number(const std::string& column) const {
  return std::stoll((*this)[column]);
}

void PrintTo(const Row& row, std::ostream* out) {
  *out << row["path"];
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

std::vector<Row> read_manifest(const std::filesystem::path& manifest) {
  std::ifstream file(manifest);
  std::string line;
  if (!std::getline(file, line)) give_up("cannot read " + manifest.string());
  const std::vector<std::string> columns = split(line, '\t');
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    if (line.empty()) continue;
    const std::vector<std::string> values = split(line, '\t');
    if (values.size() != columns.size()) give_up(manifest.string() + ": row of the wrong length: " + line);
    std::map<std::string, std::string> fields;
    for (std::size_t i = 0; i < columns.size(); ++i)
      fields[columns[i]] = values[i];
    rows.emplace_back(manifest.parent_path(), std::move(fields));
  }
  if (rows.empty()) give_up(manifest.string() + " has no rows");
  return rows;
}

std::vector<GoldenRange> parse_ranges(const std::string& text) {
  std::vector<GoldenRange> ranges;
  if (text == "-" || text == "none" || text == "all" || text.empty()) return ranges;
  for (const std::string& part : split(text, ';')) {
    const std::size_t plus = part.find('+');
    const std::size_t colon = part.find(':');
    if (plus == std::string::npos) give_up("not a range: " + part);
    GoldenRange range;
    range.offset = std::stoull(part.substr(0, plus));
    range.length = std::stoull(part.substr(plus + 1));
    if (colon != std::string::npos) range.sha256 = part.substr(colon + 1);
    ranges.push_back(range);
  }
  return ranges;
}

std::string test_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    // "x+1" and "x-1" are two names.
    name += c == '+' ? 'p' : std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

}  // namespace cframefs::test
