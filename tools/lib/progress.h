// A progress line on a terminal, which appears after two seconds.
//
// Draws at most five times a second. Draws nothing if the output is not a terminal. The progress of one of several
// files (Io::share) is counted instead of drawn. Units: bytes, seconds. Thread safety: one thread. Ownership: refers to
// the output, which must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tools/lib/io.h"

namespace cframefs::tools {

class Progress {
 public:
  using Clock = std::function<double()>;  // seconds since an arbitrary time

  /// The unit of the numbers.
  enum class Unit : std::uint8_t { bytes, items };

  Progress(Io& io, std::string what, Unit unit, Clock clock = steady_seconds);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  static constexpr std::uint64_t kUnknown = UINT64_MAX;

  /// Draws the line. `total` may grow from call to call, as more work is found. kUnknown: no bar and no remaining time.
  void update(std::uint64_t done, std::uint64_t total);
  /// Sets the text at the end of the line.
  void note(std::string text) { note_ = std::move(text); }
  /// Removes the line, so that other text can be printed; the next update draws it again.
  void clear();
  /// Removes the line at the end of the job.
  void finish() { clear(); }

  static double steady_seconds();

 private:
  std::string line(std::uint64_t done, std::uint64_t total, double elapsed) const;
  std::string amount(std::uint64_t value) const;

  Output& output_;
  ProgressShare* const share_;
  const bool enabled_;
  const std::string what_;
  const Unit unit_;
  const Clock clock_;
  const double began_;
  std::string note_;
  double drawn_ = 0;
  bool visible_ = false;
};

}  // namespace cframefs::tools
