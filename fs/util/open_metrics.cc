#include "fs/util/open_metrics.h"

#include <array>
#include <cstddef>

#include <fmt/core.h>

#include "frame/base/utf8_sanitize.h"

namespace cframefs::fs {
namespace {

constexpr std::string_view kPrefix = "cframefs_";
constexpr double kNanoseconds = 1e-9;

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : frame::replace_invalid_utf8(value)) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

/// Returns `a="x",b="y"`.
std::string labels_text(const OpenMetrics::Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value));
  return text;
}

}  // namespace

std::string canonical_number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

OpenMetrics::OpenMetrics(const Labels& common) : common_(labels_text(common)) {}

void OpenMetrics::begin(std::string_view name, std::string_view help, std::string_view type) {
  const std::string family = std::string(kPrefix) + std::string(name);
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family, escaped(help), family, type);
  for (const std::string_view unit : {"bytes", "seconds"}) {
    if (name.ends_with(std::string("_") + std::string(unit))) text_ += fmt::format("# UNIT {} {}\n", family, unit);
  }
}

void OpenMetrics::sample(std::string_view name, std::string_view suffix, const std::string& labels,
                         const std::string& value) {
  const std::string all = common_ + (common_.empty() || labels.empty() ? "" : ",") + labels;
  text_ += fmt::format("{}{}{}", kPrefix, name, suffix);
  if (!all.empty()) text_ += "{" + all + "}";
  text_ += " " + value + "\n";
}

void OpenMetrics::counter(std::string_view name, std::string_view help, std::uint64_t value) {
  begin(name, help, "counter");
  sample(name, "_total", "", std::to_string(value));
}

void OpenMetrics::counter_sample(std::string_view name, const Labels& labels, std::uint64_t value) {
  sample(name, "_total", labels_text(labels), std::to_string(value));
}

void OpenMetrics::gauge(std::string_view name, std::string_view help, std::uint64_t value) {
  begin(name, help, "gauge");
  sample(name, "", "", std::to_string(value));
}

void OpenMetrics::time(std::string_view name, std::string_view help, double seconds) {
  begin(name, help, "gauge");
  sample(name, "", "", fmt::format("{:.3f}", seconds));
}

void OpenMetrics::info(std::string_view name, std::string_view help, const Labels& labels) {
  begin(name, help, "info");
  sample(name, "_info", labels_text(labels), "1");
}

void OpenMetrics::histogram(std::string_view name, std::string_view help, const Histogram::Counts& counts) {
  begin(name, help, "histogram");
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counts.buckets.size(); ++i) {
    sum += counts.buckets[i];
    const std::string bound =
        i < Histogram::kBounds ? canonical_number(static_cast<double>(Histogram::bound(i)) * kNanoseconds) : "+Inf";
    sample(name, "_bucket", labels_text({{"le", bound}}), std::to_string(sum));
  }
  sample(name, "_sum", "", fmt::format("{:.9f}", static_cast<double>(counts.sum) * kNanoseconds));
  sample(name, "_count", "", std::to_string(sum));
}

std::string OpenMetrics::finish() {
  return std::move(text_) + "# EOF\n";
}

}  // namespace cframefs::fs
