// Sparse frames: a directory with the index file chunks.b2frame and one file for each stored chunk.
//
// An index entry is the number of a chunk file, whose name is this number as eight upper-case hexadecimal digits. Each
// access opens the chunk file in the directory, without following links, because a frame of a million chunks would take
// all descriptors of the process. If the chunk file was replaced after its chunk was located, or if it is missing and
// the directory has another index file by now, the error is stale.
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/cframe/index_cache.h"
#include "frame/container/container.h"
#include "frame/io/file_ops.h"

namespace cframefs::frame {

inline constexpr char kSparseIndexName[] = "chunks.b2frame";

/// Opens the index file of the directory `dir` for reading. corruption: it is missing or not a regular file.
/// `flags`: added to those of open(2).
Result<Descriptor> open_sparse_index(ReadFileOps& files, OpenFile dir, int flags = 0);

/// Returns the name of the chunk file `number`. corruption: the number is out of range.
Result<std::string> chunk_file_name(std::int64_t number);

/// Protects a container from chunk files that a writer removes or replaces.
struct SparseGuard {
  std::shared_ptr<const void> hold;  // owned by the container; no writer of this process removes the files before
  bool checks_after_read = false;    // no lock is held: each read ends with a check that the index file is the same
};

/// Opens the frame in the directory `dir`. `index_file`: from open_sparse_index().
Result<std::shared_ptr<const Container>> open_sparse_frame(ReadFileOps& files, std::shared_ptr<const Descriptor> dir,
                                                           std::shared_ptr<const Descriptor> index_file,
                                                           std::shared_ptr<IndexCache> index_cache,
                                                           SparseGuard guard = {});

}  // namespace cframefs::frame
