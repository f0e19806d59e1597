// Positional reads of an opened object: a file today, a range of a file inside an archive or a remote object tomorrow.
//
// Thread safety: const members may run at once. Ownership: a source owns what it reads from (or shares it).
// Errors: io from the system; corruption when the object ends before the bytes that were asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Tells one state of a file from another, as far as stat(2) can.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  struct timespec modified {};  // mtime_ns, which has wrapped for times centuries away
  /// The clock that stamps files had moved on since the last change when this was taken. Otherwise one more change
  /// could bear the same stamp.
  bool settled = false;

  /// A file that has settled no more than this, and bears a stamp without fractions of a second, may be changed again
  /// and again while all that stat(2) tells stays the same. With finer stamps a change is seen a moment late at most.
  bool may_hide_changes() const { return !settled && is_coarse(); }

  /// As far as the stamps tell; says nothing of `settled`.
  bool operator==(const FileVersion& other) const {
    return device == other.device && inode == other.inode && size == other.size && mtime_ns == other.mtime_ns &&
           ctime_ns == other.ctime_ns;
  }
  /// What was learnt at the time of this identity holds at the time of `now`, too. False once, for a file that was
  /// looked at so soon after a change that a second change would not have shown.
  bool still_matches(const FileVersion& now) const {
    return *this == now && (settled || (!now.settled && !now.is_coarse()));
  }
  /// The clock that stamps the file goes by seconds, as far as this stamp tells.
  bool is_coarse() const { return ctime_ns % 1'000'000'000 == 0; }

  /// `status` has just been asked for.
  static FileVersion of(const struct stat& status);
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Bytes that can be read, from 0.
  virtual std::uint64_t size() const = 0;
  /// What is stored of them on disk: of a file with holes, or of a compressed member, less than size().
  virtual std::uint64_t stored() const { return size(); }
  /// So many bytes from `at` on are zeros because nothing is stored there; 0 where that is not known. It costs a call
  /// of the system at most, however long the hole is, where to read a hole costs as much as to read data.
  virtual std::uint64_t zeros(FileOffset /*at*/) const { return 0; }
  /// All of `into`, or an error.
  virtual Result<void> read(FileOffset at, ByteSpan into) const = 0;
  /// Has the disk begin to read what stands there, as far as there is such a thing.
  virtual void prefetch(FileOffset /*at*/, std::uint64_t /*length*/) const {}
  /// Where byte 0 of this source lies in the file, for messages.
  virtual FileOffset base_offset() const { return FileOffset{0}; }
  /// For messages: which of a container's files this is; empty if it has but one.
  virtual std::string label() const { return {}; }
};

/// Bytes [begin, end of file as it was when opened) of an open file. `file` is shared with other sources.
std::unique_ptr<ByteSource> file_source(FileOps& files, std::shared_ptr<const Descriptor> file, FileOffset begin,
                                        std::uint64_t size);

/// Bytes in memory, which the source owns.
std::unique_ptr<ByteSource> memory_source(std::vector<std::uint8_t> bytes);

}  // namespace cframefs::frame
