// Where the golden files are, and how their manifests are read.
//
// Manifests are tables of tab-separated text with the names of the columns in the first line. Thread safety: functions
// only. Errors: a manifest that cannot be read ends the test program, for then nothing would be tested.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace cframefs::test {

/// The golden files of the project.
std::filesystem::path golden_dir();
/// One of the golden frames, by its name within the set.
std::string golden_cframe(const std::string& name);

/// The golden sets that are not part of the project; empty if this checkout has none.
std::filesystem::path shared_golden_dir();

class Row {
 public:
  Row(std::filesystem::path directory, std::map<std::string, std::string> fields)
      : directory_(std::move(directory)), fields_(std::move(fields)) {}

  /// The field of that column, which must exist.
  const std::string& operator[](const std::string& column) const;
  std::int64_t number(const std::string& column) const;
  /// The column holds a path relative to the manifest.
  std::filesystem::path file(const std::string& column) const { return directory_ / (*this)[column]; }

 private:
  std::filesystem::path directory_;
  std::map<std::string, std::string> fields_;
};

/// For GoogleTest's messages.
void PrintTo(const Row& row, std::ostream* out);

std::vector<Row> read_manifest(const std::filesystem::path& manifest);

std::vector<std::string> split(const std::string& text, char separator);

/// "offset+length" or "offset+length:sha256".
struct GoldenRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::string sha256;
};

/// A list "…;…" of them; empty for "-", "none" and "all".
std::vector<GoldenRange> parse_ranges(const std::string& text);

/// A name for GoogleTest, made of letters, digits and underscores.
std::string test_name(const std::string& text);

}  // namespace cframefs::test
