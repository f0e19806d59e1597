// Detects the format of a file and opens it as a Container.
//
// Thread safety: functions only. Errors: corruption, unsupported, io. The caller adds the path.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "frame/cframe/index_cache.h"
#include "frame/container/container.h"
#include "frame/io/read_record.h"
#include "frame/open/open_attempts.h"

namespace cframefs::frame {

/// Prefix of the error message for a file of unknown format.
inline constexpr std::string_view kNoContainer = "neither a frame nor a Bloscpack file nor a chunk";

/// What stat() needs to know, from the header alone: one open and one short read. If the header of a Bloscpack file
/// does not record its uncompressed size, the headers of all its chunks are read.
struct Summary {
  ContainerKind kind = ContainerKind::none;  // of a file, by its first bytes; of a directory, by its chunks.b2frame
  std::uint64_t nbytes = 0;
  std::int32_t chunksize = 0;
  bool has_metalayers = false;  // one of them may make the container an array
};

/// Summarises the open file or directory `file`. ContainerKind::none: not a container. corruption: a container with a
/// damaged header.
Result<Summary> summarise(ReadFileOps& files, OpenFile file, FileOffset begin = {});

/// Returns true if a file of `size` bytes that begins with `first` (64 bytes, or all) has the format of a container.
bool begins_container(ByteView first, std::uint64_t size);

/// Opens the container in the open file or directory `file`, which the container shares and keeps open. Reads header,
/// trailer and the start of the index, but no chunk. A file of 0 bytes is an empty frame; summarise() returns none for
/// it, because only its name tells that it is a frame (is_frame_name()).
///
///   begin           offset of the frame in the file
///   old_bitshuffle  a frame of 2.0.0-beta.3 to beta.5 is of beta.3 or beta.4; the file does not tell these apart
///   record          records all reads of the file; may be null
Result<std::shared_ptr<const Container>> open_container(ReadFileOps& files, std::shared_ptr<const Descriptor> file,
                                                        std::shared_ptr<IndexCache> index_cache, FileOffset begin = {},
                                                        bool old_bitshuffle = false,
                                                        const std::shared_ptr<ReadRecord>& record = nullptr);

/// Opens the container that occupies `source` from byte 0: of an object in memory, or on another machine. Keeps the
/// source. Every kind but a sparse frame.
Result<std::shared_ptr<const Container>> open_container(std::shared_ptr<const ByteSource> source,
                                                        std::shared_ptr<IndexCache> index_cache = nullptr,
                                                        bool old_bitshuffle = false);

/// Makes one attempt of open_container(), for callers with a condition of their own for open_in_attempts().
/// `index_cache` is not null.
OpenAttempt<std::shared_ptr<const Container>> attempt_container(ReadFileOps& files,
                                                                const std::shared_ptr<const Descriptor>& file,
                                                                const std::shared_ptr<IndexCache>& index_cache,
                                                                FileOffset begin, bool old_bitshuffle,
                                                                const std::shared_ptr<ReadRecord>& record);

/// Opens the container at `path`, for programs that do not check later whether the file changed. For a sparse frame,
/// takes a lock that keeps writers from removing chunk files. If the lock is not available, reads after a change of the
/// frame return stale. A file of 0 bytes is a frame only if it is named like one.
Result<std::shared_ptr<const Container>> open_path(ReadFileOps& files, const std::string& path,
                                                   std::shared_ptr<IndexCache> index_cache, FileOffset begin = {},
                                                   bool old_bitshuffle = false);

/// Opens the state of a sparse frame to which the open `index_file` belongs. `hold`: owned by the container.
Result<std::shared_ptr<const Container>> open_sparse_state(ReadFileOps& files,
                                                           std::shared_ptr<const Descriptor> directory,
                                                           std::shared_ptr<const Descriptor> index_file,
                                                           std::shared_ptr<IndexCache> index_cache,
                                                           std::shared_ptr<const void> hold);

}  // namespace cframefs::frame
