// Positional reads of an open object: a file, a range of a file, a member of an archive, or memory.
//
// Thread safety: const members may run concurrently. Ownership: a source owns or shares the object that it reads.
// Errors: io from the system; corruption if the object ends before the requested bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frame/io/descriptor.h"
#include "frame/io/read_file_ops.h"

namespace cframefs::frame {

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
  /// Returns whether each read may be a request to another machine, so that one large read is better than several.
  virtual bool is_remote() const { return false; }
  /// Returns whether many readers wait for the server of this source. Bytes that only may be read would delay them.
  virtual bool is_busy() const { return false; }
  /// Tells that the range will be read soon, in parts: if is_remote(), the next read in it fetches all of it.
  virtual void expect(FileOffset /*at*/, std::uint64_t /*length*/) const {}
  /// If is_remote(), waits until the range is at hand, or there is no room for it, so that the next read of it waits
  /// for no server. Returns the error that this read would meet.
  virtual Result<void> fetch(FileOffset /*at*/, std::uint64_t /*length*/) const { return {}; }
  /// Returns the file offset of byte 0 of this source, for messages.
  virtual FileOffset base_offset() const { return FileOffset{0}; }
  /// Returns the name of this file within its container, for messages; empty if the container is one file.
  virtual std::string label() const { return {}; }
};

/// Returns a source of `size` bytes of an open file from `begin`. `file` is shared with other sources.
std::unique_ptr<ByteSource> file_source(ReadFileOps& files, std::shared_ptr<const Descriptor> file, FileOffset begin,
                                        std::uint64_t size);

/// As file_source(), without ownership: the caller keeps `file` open as long as the source exists.
std::unique_ptr<ByteSource> borrowed_source(ReadFileOps& files, OpenFile file, FileOffset begin, std::uint64_t size);

/// Returns a source that owns `bytes`.
std::unique_ptr<ByteSource> memory_source(std::vector<std::uint8_t> bytes);

}  // namespace cframefs::frame
