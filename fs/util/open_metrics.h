// Writes metrics in the text format of OpenMetrics 1.0, which Prometheus and other collectors read.
//
// A family has a name without the suffixes of its samples; its lines HELP, TYPE and, if the name ends in a unit, UNIT
// come first. Every sample has the labels that the constructor is given. Thread safety: one thread per object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/util/histogram.h"

namespace cframefs::fs {

class OpenMetrics {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  explicit OpenMetrics(const Labels& common);

  void counter(std::string_view name, std::string_view help, std::uint64_t value);
  void gauge(std::string_view name, std::string_view help, std::uint64_t value);
  /// `seconds`: since 1970.
  void time(std::string_view name, std::string_view help, double seconds);
  /// Values that do not change, as labels.
  void info(std::string_view name, std::string_view help, const Labels& labels);
  void histogram(std::string_view name, std::string_view help, const Histogram::Counts& counts);
  /// A counter with labels: its family, then its samples.
  void begin_counter(std::string_view name, std::string_view help) { begin(name, help, "counter"); }
  void counter_sample(std::string_view name, const Labels& labels, std::uint64_t value);

  /// Returns the whole text, with its end mark.
  std::string finish();

 private:
  void begin(std::string_view name, std::string_view help, std::string_view type);
  void sample(std::string_view name, std::string_view suffix, const std::string& labels, const std::string& value);

  const std::string common_;
  std::string text_;
};

/// Returns a number as OpenMetrics wants it in the label `le`: "1.0", "1.024e-06".
std::string canonical_number(double value);

}  // namespace cframefs::fs
