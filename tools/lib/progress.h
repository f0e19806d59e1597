// A progress line on a terminal, for jobs that turn out to take longer than two seconds.
//
// Draws at most five times a second. Draws nothing where the output is no terminal. Units: bytes, seconds.
// Thread safety: one thread. Ownership: refers to the output, which must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tools/lib/io.h"

namespace cframefs::tools {

class Progress {
 public:
  using Clock = std::function<double()>;  // seconds since anywhere

  /// What the numbers count.
  enum class Unit : std::uint8_t { bytes, items };

  Progress(Io& io, std::string what, Unit unit, Clock clock = steady_seconds);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  static constexpr std::uint64_t kUnknown = UINT64_MAX;

  /// `total` may still grow from call to call, as more work is found. kUnknown: without bar and time to wait.
  void update(std::uint64_t done, std::uint64_t total);
  /// What the end of the line says from now on.
  void note(std::string text) { note_ = std::move(text); }
  /// Takes the line away, so that other text can be printed; the next update draws it again.
  void clear();
  /// Takes the line away for good.
  void finish() { clear(); }

  static double steady_seconds();

 private:
  std::string line(std::uint64_t done, std::uint64_t total, double elapsed) const;
  std::string amount(std::uint64_t value) const;

  Output& output_;
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
