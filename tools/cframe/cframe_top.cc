// cframe top: shows what mounts do, again each second, from the statistics that they serve.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tools/cframe/cframe.h"
#include "tools/cframe/top_view.h"

namespace cframefs::tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kColumns = 80;
constexpr std::size_t kRows = 24;
constexpr std::size_t kMostFiles = 20;
/// Lines of a mount without its files.
constexpr std::size_t kBlockLines = 9;

struct TopOptions {
  std::vector<std::string> mountpoints;
  double interval = 1;
  std::uint64_t count = 0;  // 0: until a key or a signal ends it
  bool once = false;
};

/// The screen of a terminal and its keyboard. The destructor restores both.
class Screen {
 public:
  explicit Screen(Io& io) : io_(io), has_keys_(isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (has_keys_) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      raw.c_cc[VMIN] = 0;
      raw.c_cc[VTIME] = 0;
      // A stopped program would leave the terminal as it is here.
      raw.c_cc[VSUSP] = _POSIX_VDISABLE;
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    io_.out.print("\x1b[?1049h\x1b[?25l");  // the other screen, no cursor
  }
  ~Screen() {
    io_.out.print("\x1b[?25h\x1b[?1049l");
    if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static std::size_t columns() { return size().ws_col != 0 ? size().ws_col : kColumns; }
  static std::size_t rows() { return size().ws_row != 0 ? size().ws_row : kRows; }

  codec::Result<void> show(const std::vector<std::string>& lines) {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < std::min(lines.size(), rows()); ++i)
      text += (i > 0 ? "\r\n" : "") + lines[i] + "\x1b[K";
    text += "\x1b[J";
    return io_.out.write(std::vector<std::uint8_t>(text.begin(), text.end()));
  }
  bool has_keys() const { return has_keys_; }

 private:
  static winsize size() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
    return size;
  }

  Io& io_;
  termios before_{};
  const bool has_keys_;
};

/// Waits. Returns false if a signal or the key q ends the program.
bool wait_until(Clock::time_point end, bool has_keys, const Io& io) {
  while (!io.stop.load()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return true;
    pollfd keyboard{STDIN_FILENO, POLLIN, 0};
    if (poll(&keyboard, has_keys ? 1 : 0, static_cast<int>(std::min<std::int64_t>(left, 60'000))) <= 0) continue;
    char key = 0;
    const ssize_t got = read(STDIN_FILENO, &key, 1);
    // 0: the terminal is gone.
    if (got == 0 || (got < 0 && errno != EINTR) || key == 'q' || key == 'Q') return false;
  }
  return false;
}

void sample(std::vector<WatchedMount>& mounts) {
  for (WatchedMount& mount : mounts) {
    mount.before = std::move(mount.now);
    mount.now.reset();
    mount.error.reset();
    auto taken = take_sample(mount.mountpoint);
    if (taken) {
      mount.now = std::move(*taken);
    } else {
      mount.error = taken.error();
    }
  }
}

std::vector<std::string> screen_lines(const std::vector<WatchedMount>& mounts, double interval) {
  const std::size_t rows = Screen::rows();
  const std::size_t fixed = 1 + mounts.size() * kBlockLines;
  const std::size_t files = std::min((rows > fixed ? rows - fixed : 0) / mounts.size(), kMostFiles);
  std::vector<std::string> lines = {fmt::format("cframe top: every {} s, q ends", interval)};
  for (const WatchedMount& mount : mounts) {
    lines.emplace_back();
    const auto block = top_block(mount, Screen::columns(), files);
    lines.insert(lines.end(), block.begin(), block.end());
  }
  return lines;
}

/// Returns the status for the mounts that have no statistics.
int status_of_mounts(const std::vector<WatchedMount>& mounts) {
  int status = done;
  for (const WatchedMount& mount : mounts) {
    if (mount.error) status = std::max<int>(status, status_of(*mount.error));
  }
  return status;
}

/// Prints a line for each mount. Errors go to standard error. Sets `is_closed` if no program reads the output any more.
int print_lines(const std::vector<WatchedMount>& mounts, Io& io, bool& is_closed) {
  int status = done;
  for (const WatchedMount& mount : mounts) {
    // A mount that has come back has nothing to compare with yet.
    if (mount.error) status = std::max<int>(status, report(io, *mount.error));
    if (!mount.now || !mount.before) continue;
    const std::string line = top_line(mount);
    const auto written = io.out.write(std::vector<std::uint8_t>(line.begin(), line.end()));
    if (written) continue;
    is_closed = true;
    return written.error().sys == EPIPE ? done : report(io, with_path(written.error(), "standard output"));
  }
  return status;
}

int run_once(std::vector<WatchedMount>& mounts, Io& io) {
  for (WatchedMount& mount : mounts) {
    if (mount.now) mount.before = start_of(*mount.now);
  }
  bool is_closed = false;
  return print_lines(mounts, io, is_closed);
}

int run_lines(const TopOptions& options, std::vector<WatchedMount>& mounts, Io& io) {
  auto next = Clock::now();
  int status = done;
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    next += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.interval));
    if (!wait_until(next, false, io)) return interrupted;
    sample(mounts);
    bool is_closed = false;
    status = print_lines(mounts, io, is_closed);
    if (is_closed) return status;
    const bool is_any =
        std::any_of(mounts.begin(), mounts.end(), [](const auto& mount) { return mount.now.has_value(); });
    if (!is_any) return status;
  }
  return status;
}

int run_screen(const TopOptions& options, std::vector<WatchedMount>& mounts, Io& io) {
  {
    Screen screen(io);
    auto next = Clock::now();
    for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
      if (i > 0) sample(mounts);
      if (!screen.show(screen_lines(mounts, options.interval))) break;
      next += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.interval));
      if (!wait_until(next, screen.has_keys(), io)) break;
    }
  }
  return io.stop.load() ? int{interrupted} : status_of_mounts(mounts);
}

int run_top(const TopOptions& options, Io& io) {
  std::vector<WatchedMount> mounts;
  for (const std::string& mountpoint : options.mountpoints)
    mounts.push_back({mountpoint, {}, {}, {}});
  sample(mounts);
  const bool is_any =
      std::any_of(mounts.begin(), mounts.end(), [](const auto& mount) { return mount.now.has_value(); });
  if (!is_any || options.once) return run_once(mounts, io);
  const char* const terminal = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const bool has_screen = io.out_is_terminal && terminal != nullptr && std::string_view(terminal) != "dumb";
  return has_screen ? run_screen(options, mounts, io) : run_lines(options, mounts, io);
}

}  // namespace

SubcommandRun declare_top(CLI::App& app) {
  auto options = std::make_shared<TopOptions>();
  app.add_option("MOUNTPOINT", options->mountpoints, "Mount points of mounts with stats=on")->required()->type_name("");
  app.add_option("--interval", options->interval, "Seconds between two looks (1)")
      ->check(CLI::Range(0.1, 86400.0))
      ->type_name("SECONDS");
  app.add_option("--count", options->count, "End after this number of looks")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->type_name("N");
  app.add_flag("--once", options->once, "Print one line for each mount, the averages since it began, and end");
  return [options](Io& io) { return run_top(*options, io); };
}

}  // namespace cframefs::tools
