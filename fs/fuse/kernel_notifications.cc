#include "fs/fuse/kernel_notifications.h"

#include <cerrno>
#include <chrono>

#include <linux/fuse.h>
#include <unistd.h>

#include "fs/fuse/fuse_requests.h"

namespace cframefs::fs {
namespace {

// How long unmounting waits for notifications in flight.
constexpr auto kNotifyPatience = std::chrono::seconds(2);

}  // namespace

bool KernelNotifications::end() {
  codec::MutexLock lock(mutex_);
  ended_ = true;
  const auto end = std::chrono::steady_clock::now() + kNotifyPatience;
  while (in_flight_ > 0 && std::chrono::steady_clock::now() < end)
    done_.wait_for(mutex_, std::chrono::milliseconds(100));
  return in_flight_ == 0;
}

void KernelNotifications::notify(const std::function<void()>& tell) {
  {
    codec::MutexLock lock(mutex_);
    if (ended_) return;
    ++in_flight_;
  }
  tell();
  {
    codec::MutexLock lock(mutex_);
    --in_flight_;
  }
  done_.notify_all();
}

int KernelNotifications::notify_inode(NodeId node, std::int64_t at, std::int64_t length) {
  int result = 0;
  notify([&] { gate().pass(node, [&] { result = fuse_lowlevel_notify_inval_inode(session_, node, at, length); }); });
  return result;
}

void KernelNotifications::invalidate_inode(NodeId node) {
  notify_inode(node, 0, 0);
}

void KernelNotifications::forget_range(NodeId node, std::uint64_t at, std::uint64_t length) {
  notify_inode(node, static_cast<std::int64_t>(at), static_cast<std::int64_t>(length));
}

bool KernelNotifications::forget_attributes(NodeId node) {
  return notify_inode(node, -1, 0) != -ENOENT;
}

bool KernelNotifications::invalidate_all_entries() {
  // Since Linux 6.16 this message makes the kernel look up every name again; libfuse has no call for it.
  constexpr std::int32_t kForgetNames = 8;  // FUSE_NOTIFY_INC_EPOCH
  fuse_out_header message{};
  message.len = sizeof message;
  message.error = kForgetNames;
  bool sent = false;
  notify([&] { sent = ::write(fuse_session_fd(session_), &message, sizeof message) == sizeof message; });
  return sent;
}

void KernelNotifications::invalidate_entry(NodeId parent, const std::string& name) {
  notify([&] { fuse_lowlevel_notify_inval_entry(session_, parent, name.c_str(), name.size()); });
}

}  // namespace cframefs::fs
