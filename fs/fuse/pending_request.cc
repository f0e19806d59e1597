#include "fs/fuse/pending_request.h"

#include <cerrno>
#include <thread>
#include <utility>

#include "fs/caller/caller_state.h"
#include "fs/fuse/fuse_requests.h"

namespace cframefs::fs {
namespace {

thread_local PendingRequest* current_request = nullptr;

}  // namespace

PendingRequest* PendingRequest::current() {
  return current_request;
}

void PendingRequest::set_current(PendingRequest* pending) {
  current_request = pending;
}

void PendingRequest::start(fuse_req* request, Abandon abandon, const Handles& handles, const Target& target) {
  const fuse_ctx* context = fuse_req_ctx(request);
  request_ = request;
  adapter_ = static_cast<FuseAdapter*>(fuse_req_userdata(request));
  caller_ = {context->uid, context->gid, context->pid, context->umask};
  abandon_ = abandon;
  handles_ = handles;
  target_ = target;
  asked_at_ = Clock::now();
  state_.store(abandon == Abandon::never ? State::claimed : State::pending, std::memory_order_release);
}

bool PendingRequest::claim() {
  for (;;) {
    State pending = State::pending;
    if (state_.compare_exchange_strong(pending, State::claimed)) return true;
    if (pending != State::examined) return pending != State::abandoned;
    std::this_thread::yield();
  }
}

codec::Result<void> PendingRequest::begin() {
  if (claim()) return {};
  return codec::io_error(EINTR, "change");
}

void PendingRequest::end() {
  State claimed = State::claimed;
  if (abandon_ != Abandon::never) state_.compare_exchange_strong(claimed, State::pending);
}

void PendingRequest::finish() {
  if (!claim()) {
    for (const std::uint64_t handle : handles_) {
      if (auto file = adapter_->files().let_go(from_kernel<FileHandle>(handle)))
        adapter_->filesystem().files().release(std::move(file));
      adapter_->directories().let_go(from_kernel<DirectoryHandle>(handle));
    }
  }
  state_.store(State::none);
}

bool PendingRequest::is_waited_for() {
  if (state_.load(std::memory_order_relaxed) == State::abandoned) return false;
  const Clock::time_point now = Clock::now();
  if (now - asked_at_ < kAskPause) return true;
  asked_at_ = now;
  const CallerState state = caller_state(caller_.process);
  return state != CallerState::ending && state != CallerState::gone;
}

bool PendingRequest::is_forsaken() const {
  if (fuse_req_interrupted(request_) == 0) return false;
  if (caller_.process == 0) return true;  // in another PID namespace: its state is not known
  switch (caller_state(caller_.process)) {
    case CallerState::waits:
      return false;
    case CallerState::interrupted:
      return abandon_ == Abandon::when_interrupted;
    case CallerState::no_program:  // it exits: the kernel interrupts requests of programs that a signal ends
    case CallerState::ending:
    case CallerState::gone:
      break;
  }
  return true;
}

void PendingRequest::look() {
  State pending = State::pending;
  if (!state_.compare_exchange_strong(pending, State::examined)) return;
  if (!is_forsaken()) {
    state_.store(State::pending, std::memory_order_release);
    return;
  }
  for (const std::uint64_t handle : handles_) {
    adapter_->files().keep(from_kernel<FileHandle>(handle));
    adapter_->directories().keep(from_kernel<DirectoryHandle>(handle));
  }
  fuse_reply_err(request_, EINTR);
  state_.store(State::abandoned, std::memory_order_release);
}

}  // namespace cframefs::fs
