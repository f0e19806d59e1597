#include "fs/util/log.h"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <syslog.h>

#include "frame/base/utf8_sanitize.h"

namespace cframefs::fs {
namespace {

constexpr std::size_t kRememberedLines = 10000;

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("cframefs", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("cframefs: %l: %v");
    return made;
  }();
  return instance;
}

}  // namespace

void log_to(LogTarget target, bool debug) {
  if (target == LogTarget::syslog) {
    // The sink owns its identity string, which syslog(3) uses for the life of the process; spdlog keeps the sink.
    auto sink = std::make_shared<spdlog::sinks::syslog_sink_mt>("cframefs", LOG_PID, LOG_DAEMON, true);
    logger() = std::make_shared<spdlog::logger>("cframefs", sink);
    logger()->set_pattern("%v");
  }
  logger()->set_level(debug ? spdlog::level::debug : spdlog::level::info);
  logger()->flush_on(spdlog::level::debug);
}

void log_debug(const std::string& line) {
  logger()->debug("{}", frame::printable(line));
}
void log_warning(const std::string& line) {
  logger()->warn("{}", frame::printable(line));
}
void log_error(const std::string& line) {
  logger()->error("{}", frame::printable(line));
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
