// Another program exchanges files while the filesystem works: what tests of that need.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/filesystem.h"
#include "fs/util/errno_table.h"
#include "tests/support/exchanging_files.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {

class NoCaches final : public KernelInvalidator {
 public:
  void invalidate_inode(NodeId) override {}
  void invalidate_entry(NodeId, const std::string&) override {}
};

/// Files that must not change, each by its descriptor.
class WatchedFiles {
 public:
  /// A directory and all that is in it.
  void watch(const std::filesystem::path& directory) {
    add(directory);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
      add(entry.path());
  }
  bool has_inode(std::uint64_t inode) const { return inodes_.contains(inode); }
  /// What is different.
  std::vector<std::string> touched() const {
    std::vector<std::string> changed;
    for (const VersionedNode& file : files_) {
      const std::string now = describe(file.file.handle());
      if (now != file.before) changed.push_back(file.path + ": " + file.before + " -> " + now);
    }
    return changed;
  }

 private:
  struct VersionedNode {
    std::string path;
    frame::Descriptor file;
    std::string before;
  };

  void add(const std::filesystem::path& path) {
    frame::Descriptor opened(frame::system_files(),
                             frame::system_file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)));
    inodes_.insert(frame::system_files().status(opened.handle())->st_ino);
    std::string before = describe(opened.handle());
    files_.push_back({path, std::move(opened), std::move(before)});
  }
  static std::string describe(frame::OpenFile opened) {
    frame::FileOps& files = frame::system_files();
    const auto status = files.status(opened);
    if (!status) return "gone";
    std::string text = std::to_string(status->st_mode) + " " + std::to_string(status->st_uid);
    for (const std::string& name : files.list_attributes(opened).value_or(std::vector<std::string>()))
      text += " " + name + "=" + files.get_attribute(opened, name).value_or("");
    if (S_ISDIR(status->st_mode)) {
      std::vector<std::string> names;
      const auto entries = files.list(opened);
      for (const frame::DirectoryEntry& entry : *entries)
        names.push_back(entry.name);
      std::sort(names.begin(), names.end());
      for (const std::string& name : names)
        text += " " + name;
      return text;
    }
    text += " " + std::to_string(status->st_mtim.tv_sec) + "." + std::to_string(status->st_mtim.tv_nsec);
    text += " links " + std::to_string(status->st_nlink);
    if (S_ISREG(status->st_mode)) {
      const frame::Descriptor file(files, *files.reopen(opened, O_RDONLY | O_NOATIME));
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status->st_size));
      EXPECT_TRUE(files.pread(file.handle(), bytes, frame::FileOffset{0}));
      text += " " + std::string(bytes.begin(), bytes.end());
    }
    return text;
  }

  std::vector<VersionedNode> files_;
  std::set<std::uint64_t> inodes_;
};

inline void swap(const std::filesystem::path& one, const std::filesystem::path& other) {
  ASSERT_EQ(::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE), 0) << one;
}

inline void put_link(const std::filesystem::path& at, const std::filesystem::path& target) {
  ASSERT_EQ(::rename(at.c_str(), (at.string() + "-away").c_str()), 0);
  std::filesystem::create_symlink(target, at);
}

inline void write_file(const std::filesystem::path& at, const test::Bytes& bytes) {
  std::ofstream(at, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline NodeId look_up(Filesystem& filesystem, NodeId parent, const std::string& name) {
  const auto found = filesystem.names().lookup(parent, name);
  EXPECT_TRUE(found) << name << ": " << codec::describe(found.error());
  return found ? found->node : 0;
}

template <class T>
std::string failed(const codec::Result<T>& result) {
  return result ? "" : std::to_string(to_errno(result.error()));
}

/// Opens, calls `work` and closes.
inline std::string with_open(Filesystem& filesystem, NodeId node, int flags,
                             const std::function<std::string(FileHandle&)>& work) {
  auto handle = filesystem.files().open(node, flags);
  if (!handle) return failed(handle);
  std::string answer = work(**handle);
  static_cast<void>(filesystem.files().flush(**handle));
  filesystem.files().release(std::move(*handle));
  return answer;
}

inline std::string read_all(Filesystem& filesystem, FileHandle& handle) {
  Reply reply;
  const auto done = filesystem.files().read(handle, 0, 1 << 16, reply);
  if (!done) return failed(done);
  std::vector<std::uint8_t> bytes(reply.size());
  reply.copy_to(bytes.data());
  return {bytes.begin(), bytes.end()};
}

/// One change of attributes of each sort.
struct SomeChanges {
  SomeChanges() {
    mode.mode = 0640;
    owner.user = ::geteuid();
    owner.group = ::geteuid() == 0 ? 12 : ::getegid();
    times.times = {timespec{1000, 0}, timespec{2000, 0}};
    size.size = 10;
  }
  AttributeChanges mode, owner, times, size;
};

/// Runs work(item) for each item, several at once: the system lets each filesystem wait when it ends.
template <class Item, class Work>
void at_once(const std::vector<Item>& items, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 12; ++number) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < items.size(); at = next++)
        work(items[at]);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace cframefs::fs
