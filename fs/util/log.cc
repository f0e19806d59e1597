#include "fs/util/log.h"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "frame/base/utf8_sanitize.h"
#include "fs/util/log_sinks.h"

namespace cframefs::fs {
namespace {

constexpr std::size_t kRememberedLines = 10000;
constexpr const char* kErrorPattern = "cframefs: %l: %v";  // of lines on standard error

struct Log {
  LogSettings settings;
  std::shared_ptr<FileSink> file;  // for LogTarget::file
  std::shared_ptr<spdlog::logger> logger;

  Log() { use(std::make_shared<spdlog::sinks::stderr_sink_mt>(), kErrorPattern); }
  void use(std::shared_ptr<spdlog::sinks::sink> sink, const char* pattern) {
    logger = std::make_shared<spdlog::logger>("cframefs", std::move(sink));
    if (pattern != nullptr) logger->set_pattern(pattern);
    logger->flush_on(spdlog::level::debug);
  }
};

Log& the_log() {
  static Log instance;
  return instance;
}

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      break;
  }
  return spdlog::level::debug;
}

}  // namespace

codec::Result<void> log_to(const LogSettings& settings) {
  Log& log = the_log();
  if (settings.target == LogTarget::file) {
    auto sink = std::make_shared<FileSink>(settings.file);
    if (auto opened = sink->open(); !opened) return opened;
    log.file = sink;
    log.use(std::move(sink), nullptr);
  } else if (settings.target != log.settings.target) {
    log.file.reset();
    if (settings.target == LogTarget::standard_error) {
      log.use(std::make_shared<spdlog::sinks::stderr_sink_mt>(), kErrorPattern);
    } else {
      log.use(std::make_shared<SystemLogSink>(reserve_log_file()), nullptr);
    }
  }
  log.settings = settings;
  log.logger->set_level(level_of(settings.level));
  return {};
}

const LogSettings& log_settings() {
  return the_log().settings;
}

void reopen_log() {
  const auto& file = the_log().file;
  if (file == nullptr) return;
  if (auto opened = file->reopen(); !opened) log_warning(codec::describe(opened.error()));
}

void log_debug(const std::string& line) {
  the_log().logger->debug("{}", frame::printable(line));
}
void log_info(const std::string& line) {
  the_log().logger->info("{}", frame::printable(line));
}
void log_warning(const std::string& line) {
  the_log().logger->warn("{}", frame::printable(line));
}
void log_error(const std::string& line) {
  the_log().logger->error("{}", frame::printable(line));
}

void DedupLogger::error(const codec::Error& error) {
  std::string line = codec::describe(error) + " (" + codec::kind_name(error.kind) + ")";
  {
    codec::MutexLock lock(mutex_);
    if (seen_.size() >= kRememberedLines) seen_.clear();
    if (!seen_.insert(line).second) return;
    count_chunk(error);
  }
  log_error(line);
}

void DedupLogger::count_chunk(const codec::Error& error) {
  if (!error.chunk || error.kind != codec::ErrorKind::corruption) return;
  if (seen_chunks_.size() >= kRememberedLines) seen_chunks_.clear();
  // A path contains no zero byte.
  if (!seen_chunks_.insert(error.path + '\0' + std::to_string(*error.chunk)).second) return;
  damaged_chunks_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace cframefs::fs
