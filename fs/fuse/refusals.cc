#include "fs/fuse/refusals.h"

#include <cerrno>
#include <string>

#include "fs/fuse/fuse_requests.h"
#include "fs/util/log.h"

namespace cframefs::fs {
namespace {

bool is_refusal(int number) {
  return number == EINVAL || number == EPERM || number == EROFS || number == ENAMETOOLONG || number == EXDEV ||
         number == EFBIG;
}

/// Returns whether the error says why a server did not give what a program asked for.
bool is_of_server(int number) {
  return number == EIO || number == EACCES || number == ESTALE || number == ETIMEDOUT || number == EHOSTUNREACH ||
         number == EPROTO || number == EOPNOTSUPP;
}

std::string name_of(const PendingRequest& pending, const codec::Error& error) {
  const PendingRequest::Target& target = pending.target();
  if (target.node == 0) return error.path;
  std::string path = pending.adapter().filesystem().nodes().path_of(target.node).value_or(std::string());
  if (target.name != nullptr) path += (path.empty() ? "" : "/") + std::string(target.name);
  return path.empty() ? "." : path;
}

}  // namespace

void note_refusal(const codec::Error& error) {
  const int number = to_errno(error);
  const bool refuses = is_refusal(number);
  // A missing name or attribute, the most frequent error, is neither.
  if ((!refuses && !is_of_server(number)) || log_settings().level < LogLevel::info) return;
  const PendingRequest& pending = *PendingRequest::current();
  if (!refuses && !pending.adapter().filesystem().tree().files().is_remote()) return;
  try_in_memory([&] {
    const PendingRequest::Target& target = pending.target();
    const std::string file = std::to_string(target.node) + "/" + (target.name != nullptr ? target.name : "");
    const auto line = pending.adapter().refusals().note(
        file, error.reason, [&] { return name_of(pending, error); }, RefusalLog::Clock::now());
    if (line) log_info(*line);
  });
}

}  // namespace cframefs::fs
