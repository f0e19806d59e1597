// Positional reads of an open object: a file, a range of a file, a member of an archive, or memory.
//
// Thread safety: const members may run concurrently. Ownership: a source owns or shares the object that it reads.
// Errors: io from the system; corruption if the object ends before the requested bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Identifies a state of a file, as far as stat(2) can.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  struct timespec modified {};  // exact, while mtime_ns wraps for times centuries away
  /// True if ctime was older than the timestamp granularity when this object was made. Otherwise one more change could
  /// get the same timestamp (git calls such a file "racily clean").
  bool settled = false;

  /// Returns true if the file may change repeatedly while stat(2) reports no change: it is not settled, and its
  /// timestamp has no fraction of a second. With finer timestamps a change is detected at most a moment late.
  bool may_hide_changes() const { return !settled && is_coarse(); }

  /// Compares all fields except `modified` and `settled`.
  bool operator==(const FileVersion& other) const {
    return device == other.device && inode == other.inode && size == other.size && mtime_ns == other.mtime_ns &&
           ctime_ns == other.ctime_ns;
  }
  /// Returns true if data that were read at this version are valid at version `now`. False if a second change so soon
  /// after the first one could have gone undetected; the caller then reads again.
  bool still_matches(const FileVersion& now) const {
    return *this == now && (settled || (!now.settled && !now.is_coarse()));
  }
  /// Returns true if the timestamp has no fraction of a second: the filesystem's timestamps may have that granularity.
  bool is_coarse() const { return ctime_ns % 1'000'000'000 == 0; }

  /// Makes the version of `status`. REQUIRES: `status` was read just now.
  static FileVersion of(const struct stat& status);
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Returns the number of readable bytes, from 0.
  virtual std::uint64_t size() const = 0;
  /// Returns the bytes stored on disk: less than size() for a file with holes or a compressed member.
  virtual std::uint64_t stored() const { return size(); }
  /// Returns how many bytes from `at` lie in a hole and therefore are zeros; 0 if that is not known. Makes few system
  /// calls, however long the hole is, while reading a hole costs as much as reading data.
  virtual std::uint64_t zeros(FileOffset /*at*/) const { return 0; }
  /// Reads all of `into`, or returns an error.
  virtual Result<void> read(FileOffset at, ByteSpan into) const = 0;
  /// Starts to read the range into the page cache, if the source is a file. Best effort.
  virtual void prefetch(FileOffset /*at*/, std::uint64_t /*length*/) const {}
  /// Returns the file offset of byte 0 of this source, for messages.
  virtual FileOffset base_offset() const { return FileOffset{0}; }
  /// Returns the name of this file within its container, for messages; empty if the container is one file.
  virtual std::string label() const { return {}; }
};

/// Returns a source of `size` bytes of an open file from `begin`. `file` is shared with other sources.
std::unique_ptr<ByteSource> file_source(FileOps& files, std::shared_ptr<const Descriptor> file, FileOffset begin,
                                        std::uint64_t size);

/// Returns a source that owns `bytes`.
std::unique_ptr<ByteSource> memory_source(std::vector<std::uint8_t> bytes);

}  // namespace cframefs::frame
