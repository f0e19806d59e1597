#include "tools/lib/progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "tools/lib/sizes.h"

namespace cframefs::tools {

namespace {

constexpr double kPatience = 2.0;  // seconds before the line appears
constexpr double kInterval = 0.2;  // seconds between two drawings
constexpr std::size_t kBarWidth = 24;

std::string clock_text(double seconds) {
  const auto whole = static_cast<unsigned long long>(std::min(seconds, 359999.0));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%llu:%02llu", whole / 60, whole % 60);
  }
  return text;
}

}  // namespace

Progress::Progress(Io& io, std::string what, Unit unit, Clock clock)
    : output_(io.err),
      share_(io.share),
      enabled_(io.err_is_terminal),
      what_(std::move(what)),
      unit_(unit),
      clock_(std::move(clock)),
      began_(clock_()) {}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (share_ != nullptr && total != kUnknown && total > 0)
    share_->set(static_cast<double>(done) / static_cast<double>(total));
  if (!enabled_ || share_ != nullptr) return;
  const double now = clock_();
  if (now - began_ < kPatience || (visible_ && now - drawn_ < kInterval)) return;
  output_.print("\r" + line(std::min(done, total), total, now - began_) + "\x1b[K");
  drawn_ = now;
  visible_ = true;
}

void Progress::clear() {
  if (!visible_) return;
  output_.print("\r\x1b[K");
  visible_ = false;
}

double Progress::steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string Progress::amount(std::uint64_t value) const {
  return unit_ == Unit::bytes ? human_size(value) : std::to_string(value);
}

std::string Progress::line(std::uint64_t done, std::uint64_t total, double elapsed) const {
  const double rate = static_cast<double>(done) / elapsed;
  const std::string speed = amount(static_cast<std::uint64_t>(rate)) + "/s";
  const std::string note = note_.empty() ? "" : "  " + note_;
  if (total == kUnknown) return what_ + "  " + amount(done) + "  " + speed + note;
  const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(kBarWidth));
  char percent[8];
  std::snprintf(percent, sizeof percent, "%3d%%", static_cast<int>(part * 100));
  std::string text = what_ + " [" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " + percent +
                     "  " + amount(done) + " of " + amount(total) + "  " + speed + note;
  if (rate > 0) text += "  ETA " + clock_text(static_cast<double>(total - done) / rate);
  return text;
}

}  // namespace cframefs::tools
