// From a name to a Container: what a file is, and opening it.
//
// Thread safety: functions only. Errors: corruption, unsupported, io, with the path left to the caller.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "frame/cframe/index_cache.h"
#include "frame/container/container.h"
#include "frame/io/read_record.h"

namespace cframefs::frame {

/// How the reason begins why a file is not opened that nothing tells to be a container.
inline constexpr std::string_view kNoContainer = "neither a frame nor a Bloscpack file nor a chunk";

/// What a file or directory holds, told from its first bytes (or, for a directory, from its chunks.b2frame).
enum class ContainerKind : std::uint8_t { none, cframe, sframe, legacy, bloscpack, chunk };

/// What is learnt from the header alone, for a stat: one open and one short read. Where the header of a Bloscpack file
/// does not tell how much is in it, those of all its chunks are read.
struct Summary {
  ContainerKind kind = ContainerKind::none;
  std::uint64_t nbytes = 0;
  std::int32_t chunksize = 0;
  bool has_metalayers = false;  // one of them may say that this is an array
};

/// Looks at the open file or directory `fd`. kind none: not a container. corruption: a container whose header is
/// damaged.
Result<Summary> summarise(FileOps& files, int fd, FileOffset begin = {});

/// Whether a file of `size` bytes that begins with `first` (64 of them, or all) is told to be a container.
bool begins_container(ByteView first, std::uint64_t size);

/// Opens the container in the open file or directory `fd` (shared, kept open by the container). A file of 0 bytes is an
/// empty frame; summarise() knows nothing of it, for only its name says that it is one (is_frame_name()). `begin`:
/// where the frame starts inside the file. Reads header, trailer and what of the index must be checked; chunks are not
/// touched. `old_bitshuffle`: a frame that one of 2.0.0-beta.3 to beta.5 wrote, which nothing in it tells apart, is of
/// beta.3 or beta.4. `record`: of what is read of a file, from the beginning on; may be null.
Result<std::shared_ptr<const Container>> open_container(FileOps& files, std::shared_ptr<const Descriptor> file,
                                                        std::shared_ptr<IndexCache> index_cache, FileOffset begin = {},
                                                        bool old_bitshuffle = false,
                                                        const std::shared_ptr<ReadRecord>& record = nullptr);

/// The same by path, for programs that do not look again at what they have read. Of a sparse frame it keeps writers
/// from removing files of the state that it opens; where that is not possible, reads of another state are stale. A file
/// of 0 bytes is a frame only if it is named like one.
Result<std::shared_ptr<const Container>> open_path(FileOps& files, const std::string& path,
                                                   std::shared_ptr<IndexCache> index_cache, FileOffset begin = {},
                                                   bool old_bitshuffle = false);

/// The state of a sparse frame whose index file is open. `hold`: kept for as long as the container is.
Result<std::shared_ptr<const Container>> open_sparse_state(FileOps& files, std::shared_ptr<const Descriptor> directory,
                                                           std::shared_ptr<const Descriptor> index_file,
                                                           std::shared_ptr<IndexCache> index_cache,
                                                           std::shared_ptr<const void> hold);

}  // namespace cframefs::frame
