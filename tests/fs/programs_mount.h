// What programs do in a mount, step by step, for tests in which a call fails: a mount with the handles that a program
// has open, and what it shows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "fs/filesystem.h"
#include "fs/util/no_memory.h"
#include "tests/fs/silent_kernel.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {

using test::Bytes;
using Done = codec::Result<void>;

inline constexpr std::uint64_t kChunkBytes = 4096;
inline constexpr const char* kTitle = "user.blosc2.vlmeta.title";
inline constexpr const char* kFixed = "user.blosc2.meta.fixed";
inline constexpr const char* kOther = "user.other";
inline constexpr const char* kNames[] = {"x", "y", "z", "n", "s", "u", "a.npy", "n.npy"};

inline Bytes stripes(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 5 + i / 256 * seed + seed);
  return bytes;
}

/// No power is cut here: what a sync does to a disk is not waited for.
class UnsyncedFiles final : public test::ForwardingFiles {
 public:
  /// `has_flags`: the filesystem has the flags of renameat2(2).
  explicit UnsyncedFiles(bool has_flags) : has_flags_(has_flags) {}
  Done rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir, const std::string& to,
                 unsigned flags) override {
    if (!has_flags_ && flags != 0) return codec::io_error(EINVAL, "rename");
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }
  Done sync(frame::OpenFile /*file*/, bool /*data_only*/) override { return {}; }

 private:
  const bool has_flags_;
};

/// What a mount shows: of each name the content and the attributes.
using View = std::map<std::string, std::string>;

inline std::string differences(const View& one, const View& other) {
  std::string text;
  const auto brief = [](const View& view, const std::string& name) {
    const auto found = view.find(name);
    if (found == view.end()) return std::string("missing");
    return std::to_string(found->second.size()) + " bytes, hash " +
           std::to_string(std::hash<std::string>()(found->second) % 10'000);
  };
  for (const char* name : kNames) {
    if (brief(one, name) != brief(other, name))
      text += std::string(" ") + name + ": " + brief(one, name) + ", or " + brief(other, name) + ";";
  }
  return text;
}

/// A mount, and the handles that a program has open, by the names that it opened.
class ProgramsMount {
 public:
  ProgramsMount(const std::string& source, frame::FileOps& files) {
    MountOptions options;
    options.source = source;
    options.new_frames.chunksize = static_cast<std::int32_t>(kChunkBytes);
    options.new_frames.npy_as_array = true;
    options.commit_interval = 1000;
    options.lock_timeout = 0;
    filesystem_ = std::make_unique<Filesystem>(files, options);
    EXPECT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  ~ProgramsMount() { end(); }
  ProgramsMount(const ProgramsMount&) = delete;
  ProgramsMount& operator=(const ProgramsMount&) = delete;

  void end() {
    for (auto& [name, handle] : handles_) {
      if (handle) filesystem_->files().release(std::move(handle));
    }
    handles_.clear();
    if (filesystem_) filesystem_->stop();
    filesystem_.reset();
  }
  Filesystem& filesystem() { return *filesystem_; }
  OpenFiles& files() { return filesystem_->files(); }
  FileHandle& handle(const std::string& name) { return *handles_.at(name); }

  codec::Result<NodeId> node(const std::string& name) {
    auto found = filesystem_->names().lookup(kRootNode, name);
    if (!found) return codec::Failure(found.error());
    return found->node;
  }
  Done open(const std::string& name, int flags) {
    std::unique_ptr<FileHandle>& place = handles_[name];  // first: there may be no memory for it later
    const auto found = node(name);
    if (!found) return codec::Failure(found.error());
    auto handle = files().open(*found, flags);
    if (!handle) return codec::Failure(handle.error());
    place = std::move(*handle);
    return {};
  }
  Done create(const std::string& name) {
    std::unique_ptr<FileHandle>& place = handles_[name];
    auto made = filesystem_->names().create(kRootNode, name, O_RDWR, 0644, {});
    if (!made) return codec::Failure(made.error());
    place = std::move(made->handle);
    return {};
  }
  Done write(const std::string& name, std::uint64_t at, const Bytes& bytes) {
    auto done = or_no_memory([&] { return files().write(handle(name), at, bytes, false); });
    has_failed_write_ = has_failed_write_ || !done;
    return done;
  }
  /// Returns true if a write has failed. A part of it may have been made.
  bool has_failed_write() const { return has_failed_write_; }
  Done close(const std::string& name) {
    auto done = files().flush(handle(name));
    files().release(std::move(handles_.at(name)));
    handles_.erase(name);
    return done;
  }
  View view() {
    View view;
    for (const char* name : kNames) {
      const auto found = node(name);
      if (found || found.error().sys != ENOENT)
        view[name] = found ? shown(*found) : "not found: " + found.error().reason;
    }
    return view;
  }

 private:
  std::string shown(NodeId id) {
    auto handle = files().open(id, O_RDONLY);
    if (!handle) return "not opened: " + handle.error().reason;
    Reply reply;
    const auto read = files().read(**handle, 0, 1 << 20, reply);
    const auto attributes = filesystem_->attributes().of(id, handle->get());
    files().release(std::move(*handle));
    if (!read) return "not read: " + read.error().reason;
    if (!attributes) return "no attributes: " + attributes.error().reason;
    std::string text(reply.size(), '\0');
    reply.copy_to(reinterpret_cast<std::uint8_t*>(text.data()));
    if (text.size() != static_cast<std::uint64_t>(attributes->status.st_size)) text += "and a size that differs";
    for (const char* name : {kTitle, kFixed, kOther}) {
      const auto value = filesystem_->extended_attributes().get(id, name);
      if (value) text += std::string("\n") + name + "=" + *value;
    }
    return text;
  }

  SilentKernel kernel_;
  std::unique_ptr<Filesystem> filesystem_;
  std::map<std::string, std::unique_ptr<FileHandle>> handles_;
  bool has_failed_write_ = false;
};

using Step = std::function<Done(ProgramsMount&)>;

inline Step opens(const std::string& name, int flags = O_RDWR) {
  return [=](ProgramsMount& mount) { return mount.open(name, flags); };
}
inline Step creates(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.create(name); };
}
inline Step closes(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.close(name); };
}
inline Step writes(const std::string& name, std::uint64_t at, const Bytes& bytes) {
  return [=](ProgramsMount& mount) { return mount.write(name, at, bytes); };
}
inline Step writes(const std::string& name, std::uint64_t at, std::size_t size, unsigned seed) {
  return writes(name, at, stripes(size, seed));
}
/// Opened, and written in part, without a commit.
inline Step dirties(const std::string& name, unsigned seed = 3) {
  return [=](ProgramsMount& mount) -> Done {
    if (auto opened = mount.open(name, O_RDWR); !opened) return opened;
    return mount.files().write(mount.handle(name), 1000, stripes(50, seed), false);
  };
}
inline Step flushes(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.files().flush(mount.handle(name)); };
}
inline Step syncs(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.files().sync(mount.handle(name), false); };
}
inline Step allocates(const std::string& name, int mode, std::uint64_t at, std::uint64_t length) {
  return [=](ProgramsMount& mount) { return mount.files().allocate(mount.handle(name), mode, at, length); };
}
inline Step sets(const std::string& name, const std::string& attribute, const std::string& value) {
  return [=](ProgramsMount& mount) -> Done {
    const auto node = mount.node(name);
    if (!node) return codec::Failure(node.error());
    return mount.filesystem().extended_attributes().set(*node, attribute, value, 0);
  };
}
/// truncate(2) by name.
inline Step cuts(const std::string& name, std::uint64_t size) {
  return [=](ProgramsMount& mount) -> Done {
    const auto node = mount.node(name);
    if (!node) return codec::Failure(node.error());
    AttributeChanges changes;
    changes.size = size;
    const auto cut = mount.filesystem().attributes().change(*node, nullptr, changes);
    return cut ? Done() : codec::Failure(cut.error());
  };
}
/// copy_file_range(2) of a whole file.
inline Step copies(const std::string& from, const std::string& to, std::uint64_t at, std::uint64_t size) {
  return [=](ProgramsMount& mount) -> Done {
    const auto copied = mount.files().copy_range(mount.handle(from), 0, mount.handle(to), at, size);
    if (!copied) return codec::Failure(copied.error());
    // The chunks in front of one that cannot be read are copied.
    return *copied == size ? Done() : codec::io_error(EIO, "copy_file_range");
  };
}
inline Step renames(const std::string& from, const std::string& to, unsigned flags = 0) {
  return [=](ProgramsMount& mount) { return mount.filesystem().names().rename(kRootNode, from, kRootNode, to, flags); };
}
inline Step removes(const std::string& name) {
  return [=](ProgramsMount& mount) { return mount.filesystem().names().remove(kRootNode, name, false); };
}

}  // namespace cframefs::fs
