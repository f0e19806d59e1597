#include "fs/util/log_sinks.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/syslog_sink.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

constexpr const char* kSystemLogSocket = "/dev/log";
constexpr const char* kFilePattern = "%Y-%m-%d %H:%M:%S.%e cframefs[%P]: %l: %v";

/// Set before other threads run.
std::function<codec::Result<int>()>& opener() {
  static std::function<codec::Result<int>()> instance;
  return instance;
}

/// The formatter reads the process number for each line: the process may be a child of the one that made the sink.
std::unique_ptr<spdlog::formatter> line_formatter() {
  return std::make_unique<spdlog::pattern_formatter>(kFilePattern);
}

std::string formatted(spdlog::formatter& formatter, const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter.format(message, line);
  return {line.data(), line.size()};
}

spdlog::details::log_msg warning_like(const spdlog::details::log_msg& message, const std::string& text) {
  return {message.time, message.source, message.logger_name, spdlog::level::warn, text};
}

/// Appends a message, after a line that reports how many were lost before. Counts the message if it is lost itself.
void append_to(const LogFile& file, spdlog::formatter& formatter, const spdlog::details::log_msg& message,
               std::uint64_t& lost) {
  if (lost > 0) {
    const std::string text = fmt::format("{} lines before this one could not be written to the log", lost);
    if (file.append(formatted(formatter, warning_like(message, text)))) lost = 0;
  }
  if (lost > 0 || !file.append(formatted(formatter, message))) ++lost;
}

}  // namespace

LogFile::~LogFile() {
  if (fd_ >= 0) ::close(fd_);
}

codec::Result<int> open_log_file(const std::string& path) {
  constexpr mode_t kMode = 0640;
  // O_NONBLOCK: a pipe without a reader must not block the daemon.
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, kMode);
  if (fd < 0) {
    codec::Failure failure = codec::io_error(errno, "open the log file");
    failure.value().path = path;
    return failure;
  }
  return fd;
}

void open_log_files_by(std::function<codec::Result<int>()> open) {
  opener() = std::move(open);
}

codec::Result<void> LogFile::open(const std::string& path) {
  auto fd = opener() ? opener()() : open_log_file(path);
  if (!fd) {
    fd.error().path = path;
    return codec::Failure(fd.error());
  }
  if (fd_ >= 0) ::close(fd_);
  fd_ = *fd;
  return {};
}

bool LogFile::append(std::string_view line) const {
  while (fd_ >= 0 && !line.empty()) {
    const ssize_t written = ::write(fd_, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  return line.empty();
}

FileSink::FileSink(std::string path) : base_sink(line_formatter()), path_(std::move(path)) {}

codec::Result<void> FileSink::reopen() {
  const std::lock_guard lock(mutex_);
  return file_.open(path_);
}

void FileSink::sink_it_(const spdlog::details::log_msg& message) {
  append_to(file_, *formatter_, message, lost_);
}

SystemLogSink::SystemLogSink(std::string reserve)
    : base_sink(line_formatter()),
      reserve_path_(std::move(reserve)),
      // The sink owns its identity string, which syslog(3) uses for the life of the process.
      system_log_(std::make_shared<spdlog::sinks::syslog_sink_mt>("cframefs", LOG_PID, LOG_DAEMON, true)) {
  system_log_->set_pattern("%v");
}

void SystemLogSink::sink_it_(const spdlog::details::log_msg& message) {
  // syslog(3) drops a line without notice if no program listens.
  if (system_log_listens()) {
    const std::string text = fmt::format("{} lines were lost while there was no system log", lost_);
    if (std::exchange(lost_, 0) > 0) system_log_->log(warning_like(message, text));
    return system_log_->log(message);
  }
  if (!reserve_.is_open() && !reserve_path_.empty()) static_cast<void>(reserve_.open(reserve_path_));
  append_to(reserve_, *formatter_, message, lost_);
}

/// A look costs more than a line in a file, and a store of thousands of damaged members makes as many lines.
bool SystemLogSink::system_log_listens() {
  if (look_again_ && Clock::now() < *look_again_) return false;
  const bool listens = has_system_log();
  look_again_.reset();
  if (!listens) look_again_ = Clock::now() + kLookAgainAfter;
  return listens;
}

bool has_system_log() {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, kSystemLogSocket, sizeof address.sun_path - 1);
  const int failed = ::connect(fd, static_cast<const sockaddr*>(static_cast<const void*>(&address)), sizeof address);
  // EPROTOTYPE: a stream socket, which syslog(3) tries as well.
  const bool listens = failed == 0 || errno == EPROTOTYPE;
  ::close(fd);
  return listens;
}

std::string reserve_log_file() {
  if (::geteuid() == 0) return "/run/cframefs.log";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment
  const char* directory = std::getenv("XDG_RUNTIME_DIR");
  return directory != nullptr && *directory == '/' ? std::string(directory) + "/cframefs.log" : std::string();
}

}  // namespace cframefs::fs
