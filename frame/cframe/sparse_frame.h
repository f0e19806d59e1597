// Sparse frames: a directory with the index file chunks.b2frame and one file for each stored chunk.
//
// Entries of the index are numbers of chunk files, named by eight upper-case hexadecimal digits. A chunk file is opened
// for each access, beneath the directory and without following links: frames of a million chunks would not leave a
// descriptor to anybody else. One that was replaced since its chunk was looked at, or is missing because the index is
// another one by now, is an error of kind stale.
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/cframe/index_cache.h"
#include "frame/container/container.h"
#include "frame/io/file_ops.h"

namespace cframefs::frame {

inline constexpr char kSparseIndexName[] = "chunks.b2frame";

/// The index file of the directory `dir`, opened for reading; whatever else bears its name is not opened.
Result<Descriptor> open_sparse_index(FileOps& files, int dir);

/// The name of a chunk file; corruption if there can be none of that number.
Result<std::string> chunk_file_name(std::int64_t number);

/// What makes sure that the chunk files of a state are those that it names.
struct SparseGuard {
  std::shared_ptr<const void> hold;  // kept for as long as the container is: while it is, they stay
  bool looks_again = false;          // no lock is held: each read ends by comparing the index with the frame's
};

/// `dir`: the directory. `index_file`: as from open_sparse_index().
Result<std::shared_ptr<const Container>> open_sparse_frame(FileOps& files, std::shared_ptr<const Descriptor> dir,
                                                           std::shared_ptr<const Descriptor> index_file,
                                                           std::shared_ptr<IndexCache> index_cache,
                                                           SparseGuard guard = {});

}  // namespace cframefs::frame
