// Requests that wait for the disk, for a lock of another program or for one another keep no other request waiting: with
// up to 64 of them at a gate, all that is asked of other files is answered while the gate is shut.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "fs/filesystem.h"
#include "tests/fs/gate.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

enum class Call : std::uint8_t { none, sync, write, read, lock, list };

/// Calls that concern files or directories called "slow..." wait at a gate.
class GatedFiles final : public test::ForwardingFiles {
 public:
  codec::Result<void> sync(frame::OpenFile file, bool data_only) override {
    pass(Call::sync, file);
    return ForwardingFiles::sync(file, data_only);
  }
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    pass(Call::write, file);
    return ForwardingFiles::pwrite(file, from, at);
  }
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    pass(Call::read, file);
    return ForwardingFiles::pread(file, into, at);
  }
  codec::Result<bool> try_lock(frame::OpenFile file, int operation) override {
    pass(Call::lock, file);
    return ForwardingFiles::try_lock(file, operation);
  }
  codec::Result<std::vector<frame::DirectoryEntry>> list(frame::OpenFile dir_fd) override {
    pass(Call::list, dir_fd);
    return ForwardingFiles::list(dir_fd);
  }

  std::atomic<Call> held{Call::none};
  Gate gate;

 private:
  void pass(Call call, frame::OpenFile file) {
    if (held != call) return;
    const std::string link = "/proc/self/fd/" + std::to_string(file.value);
    std::string path(4096, '\0');
    const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
    path.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    if (path.find("/slow") != std::string::npos) gate.pass();
  }
};

using Request = std::function<bool()>;

/// How a number of requests that are to wait comes about.
struct Kind {
  const char* name;
  Call call;
  bool all_at_gate;  // else one is, and the others wait for that
};

constexpr Kind kKinds[] = {{"Sync", Call::sync, true},
                           {"CommitAtClose", Call::write, true},
                           {"ReadOfOneBlock", Call::read, false},
                           {"SyncOfOneFile", Call::sync, false},
                           {"LockedFrame", Call::lock, true},
                           {"Copy", Call::read, true},
                           {"CopyToASlowDisk", Call::write, true},
                           {"CopyToALockedFrame", Call::lock, true},
                           {"FirstOpen", Call::read, true},
                           {"Listing", Call::list, true},
                           {"OpenToWrite", Call::read, true},
                           {"RenameBehindACommit", Call::sync, false},
                           {"RemoveBehindACommit", Call::sync, false},
                           {"ExchangeBehindACommit", Call::sync, false},
                           {"RenameBehindASync", Call::sync, false},
                           {"RemoveBehindASync", Call::sync, false},
                           {"LockedAttribute", Call::lock, true},
                           {"LockedTruncation", Call::lock, true}};
constexpr unsigned kCounts[] = {1, 4, 16, 64};
// Far longer than any answer takes. The gate stays shut until then.
constexpr std::chrono::seconds kPatience(30);

class WaitingRequests : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    options_.source = directory_.path();
    options_.commit_interval = 1000;
    options_.lock_timeout = 600;
    std::filesystem::create_directory(directory_.path() / "twenty");
    for (int i = 0; i < 20; ++i)
      directory_.write("twenty/" + std::to_string(i), frame_bytes());
    for (std::size_t i = 0; i < std::size(kCounts); ++i)
      directory_.write("cold" + std::to_string(i) + ".b2frame", frame_bytes());
    directory_.write("warm.b2frame", frame_bytes());
    directory_.write("other.b2frame", frame_bytes());
    for (unsigned i = 0; i < kCounts[std::size(kCounts) - 1]; ++i) {
      directory_.write("slow" + std::to_string(i) + ".b2frame", frame_bytes());
      directory_.write("copy" + std::to_string(i) + ".b2frame", frame_bytes());
      std::filesystem::create_directory(directory_.path() / ("slow-directory" + std::to_string(i)));
    }
    start();
  }
  void TearDown() override {
    files_.gate.open();
    stop();
  }
  void start() {
    filesystem_ = std::make_unique<Filesystem>(files_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
    warm_ = open("warm", O_RDONLY);
    EXPECT_EQ(read(*warm_), text());
    other_ = open("other", O_RDWR);
  }
  void stop() {
    for (auto* handle : {&warm_, &other_}) {
      if (*handle) filesystem_->files().release(std::move(*handle));
    }
    for (auto& handle : handles_)
      filesystem_->files().release(std::move(handle));
    handles_.clear();
    filesystem_->stop();
    filesystem_.reset();
  }

  static std::string text() {
    std::string made(3 * 4096, 't');
    return made;
  }
  static std::vector<std::uint8_t> frame_bytes() {
    const std::string plain = text();
    return test::plain_frame(std::vector<std::uint8_t>(plain.begin(), plain.end()), 4096).build();
  }
  NodeId node(const std::string& name, NodeId parent = kRootNode) {
    const auto found = filesystem_->names().lookup(parent, name);
    EXPECT_TRUE(found) << name;
    return found ? found->node : 0;
  }
  std::unique_ptr<FileHandle> open(const std::string& name, int flags) {
    auto handle = filesystem_->files().open(node(name), flags);
    EXPECT_TRUE(handle) << handle.error().reason;
    return handle ? std::move(*handle) : nullptr;
  }
  FileHandle& keep(std::unique_ptr<FileHandle> handle) {
    handles_.push_back(std::move(handle));
    return *handles_.back();
  }
  std::string read(FileHandle& handle, std::size_t length = 1 << 20) {
    Reply reply;
    if (!filesystem_->files().read(handle, 0, length, reply)) return "";
    std::string bytes(reply.size(), '\0');
    reply.copy_to(reinterpret_cast<std::uint8_t*>(bytes.data()));
    return bytes;
  }
  bool write(FileHandle& handle, const std::string& bytes) {
    return filesystem_->files()
        .write(handle, 0, std::vector<std::uint8_t>(bytes.begin(), bytes.end()), false)
        .has_value();
  }
  FileHandle& dirty(const std::string& name) {
    FileHandle& handle = keep(open(name, O_RDWR));
    EXPECT_TRUE(write(handle, "not committed"));
    return handle;
  }

  /// Of a file that the first request commits.
  Request change_of_name(unsigned number, const std::string& kind) {
    const std::string committed = "slow" + std::to_string(round_);
    if (number == 0) {
      FileHandle& file = dirty(committed);
      // A sync of what is committed already makes it durable, and no new state.
      if (kind.ends_with("Sync")) {
        EXPECT_TRUE(filesystem_->files().flush(file));
      }
      return [this, &file] { return filesystem_->files().sync(file, false).has_value(); };
    }
    // One of them finds the file, the others do not.
    const auto done = [](const codec::Result<void>& result) { return result || result.error().sys == ENOENT; };
    if (kind.starts_with("Remove"))
      return [=, this] { return done(filesystem_->names().remove(kRootNode, committed, false)); };
    const bool exchanges = kind.starts_with("Exchange");
    const std::string other = exchanges ? "copy0" : "renamed" + std::to_string(round_);
    return [=, this] {
      return done(filesystem_->names().rename(kRootNode, committed, kRootNode, other, exchanges ? RENAME_EXCHANGE : 0));
    };
  }
  /// What waits at the gate; all that comes before it is done.
  Request slow_request(unsigned number) {
    const std::string name = "slow" + std::to_string(number);
    const std::string kind = GetParam().name;
    if (kind == "Sync")
      return [this, &file = dirty(name)] { return filesystem_->files().sync(file, false).has_value(); };
    if (kind == "SyncOfOneFile") {
      return [this, &file = number == 0 ? dirty("slow0") : *handles_.front()] {
        return filesystem_->files().sync(file, false).has_value();
      };
    }
    if (kind == "CommitAtClose" || kind == "LockedFrame")
      return [this, &file = dirty(name)] { return filesystem_->files().flush(file).has_value(); };
    if (kind == "ReadOfOneBlock")
      return [this, &file = keep(open("slow0", O_RDONLY))] { return read(file, 4096) == text().substr(0, 4096); };
    if (kind == "Copy") {
      FileHandle& from = keep(open(name, O_RDONLY));
      FileHandle& to = keep(open("copy" + std::to_string(number), O_RDWR));
      return [this, &from, &to] { return filesystem_->files().copy_range(from, 0, to, 0, text().size()).has_value(); };
    }
    if (kind.starts_with("CopyTo")) {
      FileHandle& from = keep(open("copy" + std::to_string(number), O_RDONLY));
      FileHandle& to = keep(open(name, O_RDWR));
      return [this, &from, &to] { return filesystem_->files().copy_range(from, 0, to, 0, text().size()).has_value(); };
    }
    if (kind.find("Behind") != std::string::npos) return change_of_name(number, kind);
    if (kind == "LockedAttribute") {
      return [this, number = node(name)] {
        return filesystem_->extended_attributes().set(number, "user.blosc2.vlmeta.x", "text", 0, {}).has_value();
      };
    }
    if (kind == "LockedTruncation") {
      return [this, number = node(name)] {
        AttributeChanges changes;
        changes.size = 4096;
        return filesystem_->attributes().change(number, nullptr, changes, {}).has_value();
      };
    }
    if (kind == "OpenToWrite") {
      return [this, number = node(name)] {
        auto handle = filesystem_->files().open(number, O_RDWR);
        if (!handle) return false;
        filesystem_->files().release(std::move(*handle));
        return true;
      };
    }
    if (kind == "FirstOpen") {
      return [this, number = node(name)] {
        auto handle = filesystem_->files().open(number);
        if (!handle) return false;
        filesystem_->files().release(std::move(*handle));
        return true;
      };
    }
    return [this, number = node("slow-directory" + std::to_string(number))] { return lists(number, 0); };
  }
  bool lists(NodeId directory, std::size_t entries) {
    auto handle = filesystem_->directories().open(directory);
    if (!handle) return false;
    codec::MutexLock lock((*handle)->mutex);
    return filesystem_->directories().list(**handle).has_value() && (*handle)->entries.size() >= entries;
  }

  /// Each is answered while the gate is shut.
  void check_others() {
    const std::vector<std::pair<const char*, Request>> others = {
        {"stat", [&] { return filesystem_->attributes().of(warm_->node->id, nullptr).has_value(); }},
        {"lookup", [&] { return filesystem_->names().lookup(kRootNode, "other").has_value(); }},
        {"lookup of no file", [&] { return !filesystem_->names().lookup(kRootNode, "missing"); }},
        {"statfs", [&] { return filesystem_->filesystem_status().has_value(); }},
        {"readdir of 20", [&] { return lists(node("twenty"), 20); }},
        {"warm read", [&] { return read(*warm_) == text(); }},
        {"write of 10 bytes", [&] { return write(*other_, "0123456789"); }},
        {"cold read",
         [&] {
           auto handle = open("cold" + std::to_string(round_), O_RDONLY);
           const bool is_right = read(*handle, 4096) == text().substr(0, 4096);
           filesystem_->files().release(std::move(handle));
           return is_right;
         }},
        {"create, write, close, rename, remove", [&] { return changes_names(); }}};
    for (const auto& [name, request] : others) {
      auto answer = std::async(std::launch::async, request);
      const bool answered = answer.wait_for(kPatience) == std::future_status::ready;
      EXPECT_TRUE(answered) << name << " waits";
      if (!answered) files_.gate.open();
      EXPECT_TRUE(answer.get()) << name;
    }
  }
  bool changes_names() {
    auto made = filesystem_->names().create(kRootNode, "new", O_RDWR | O_CREAT, 0644, {});
    if (!made || !write(*made->handle, "text") || !filesystem_->files().flush(*made->handle)) return false;
    filesystem_->files().release(std::move(made->handle));
    return filesystem_->names().rename(kRootNode, "new", kRootNode, "newer", 0).has_value() &&
           filesystem_->names().remove(kRootNode, "newer", false).has_value();
  }

  test::TempDir directory_;
  GatedFiles files_;
  CountingKernel kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
  std::unique_ptr<FileHandle> warm_;
  std::unique_ptr<FileHandle> other_;
  std::vector<std::unique_ptr<FileHandle>> handles_;
  unsigned round_ = 0;
};

TEST_P(WaitingRequests, KeepNoOtherRequestWaiting) {
  for (; round_ < std::size(kCounts); ++round_) {
    const unsigned count = kCounts[round_];
    SCOPED_TRACE(count);
    std::vector<Request> slow;
    for (unsigned i = 0; i < count; ++i)
      slow.push_back(slow_request(i));
    files_.gate.shut();
    files_.held = GetParam().call;
    std::vector<std::future<bool>> answers;
    {
      const OpensAtEnd opens(files_.gate);
      for (const Request& request : slow) {
        answers.push_back(std::async(std::launch::async, request));
        if (answers.size() == 1) files_.gate.wait_for(1);
      }
      files_.gate.wait_for(GetParam().all_at_gate ? count : 1);
      check_others();
      for (auto& answer : answers)
        EXPECT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "it was not slow";
    }
    for (auto& answer : answers)
      EXPECT_TRUE(answer.get());
    files_.held = Call::none;
    stop();
    start();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, WaitingRequests, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace cframefs::fs
