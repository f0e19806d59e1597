// The system's file operations, with another program at work: before the Nth call that takes a name, it does something.
//
//   ExchangingFiles files;
//   files.before(3, [] { exchange two entries });
//   ... work; files.done() tells whether there was a third call ...
//
// Thread safety: calls of one thread count, that which asks for it; the others pass.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/forwarding_files.h"

namespace cframefs::test {

class ExchangingFiles : public ForwardingFiles {
 public:
  void before(int call, std::function<void()> exchange) {
    thread_ = std::this_thread::get_id();
    left_ = call;
    exchange_ = std::move(exchange);
  }
  bool done() const { return exchange_ == nullptr; }
  /// A name of more than one component was resolved.
  bool resolved_a_path() const { return resolved_a_path_; }

  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    arrive(path);
    return ForwardingFiles::open_at(dir, path, flags);
  }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    arrive(path);
    return ForwardingFiles::status_at(dir, path);
  }
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    arrive(path);
    return ForwardingFiles::create_at(dir, path, flags, mode);
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    arrive(from);
    arrive(to);
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }
  codec::Result<void> remove_at(frame::OpenFile dir, const std::string& path, bool directory) override {
    arrive(path);
    return ForwardingFiles::remove_at(dir, path, directory);
  }
  codec::Result<void> make_directory_at(frame::OpenFile dir, const std::string& path, mode_t mode) override {
    arrive(path);
    return ForwardingFiles::make_directory_at(dir, path, mode);
  }
  codec::Result<void> make_node_at(frame::OpenFile dir, const std::string& path, mode_t mode, dev_t device) override {
    arrive(path);
    return ForwardingFiles::make_node_at(dir, path, mode, device);
  }
  codec::Result<void> link_at(frame::OpenFile file, frame::OpenFile to_dir, const std::string& to) override {
    arrive(to);
    return ForwardingFiles::link_at(file, to_dir, to);
  }
  codec::Result<void> make_symlink_at(const std::string& target, frame::OpenFile dir,
                                      const std::string& path) override {
    arrive(path);
    return ForwardingFiles::make_symlink_at(target, dir, path);
  }

 private:
  void arrive(const std::string& path) {
    if (std::this_thread::get_id() != thread_) return;
    if (path.find('/') != std::string::npos) resolved_a_path_ = true;
    if (!exchange_ || --left_ > 0) return;
    std::exchange(exchange_, nullptr)();
  }

  std::thread::id thread_;
  int left_ = 0;
  std::function<void()> exchange_;
  bool resolved_a_path_ = false;
};

}  // namespace cframefs::test
