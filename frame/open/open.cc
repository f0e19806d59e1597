#include "frame/open/open.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>

#include "frame/base/parse_budget.h"
#include "frame/base/suffixes.h"
#include "frame/cframe/cframe.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/cframe/frame_header.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/compat/bare_chunk.h"
#include "frame/compat/bloscpack.h"
#include "frame/compat/bloscpack_header.h"
#include "frame/compat/legacy_frame.h"
#include "frame/compat/legacy_header.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

constexpr int kLockTries = 1000;
constexpr std::chrono::milliseconds kLockPause(1);

struct FixedHeader {
  std::array<std::uint8_t, layout::kFixedHeaderLength> bytes{};
  std::size_t length = 0;
  bool operator==(const FixedHeader&) const = default;
};

Result<FixedHeader> read_fixed_header(ReadFileOps& files, OpenFile file, FileOffset begin) {
  FixedHeader header;
  const auto got = files.pread(file, header.bytes, begin);
  if (!got) return Failure(got.error());
  header.length = *got;
  return header;
}

std::uint64_t bytes_from(std::uint64_t size, FileOffset begin) {
  return begin.value < size ? size - begin.value : 0;
}

using ContainerAttempt = OpenAttempt<std::shared_ptr<const Container>>;

/// Calls `open` once. `file` is changing if its version or header differ before and after the call.
template <class Open>
ContainerAttempt attempt_open(ReadFileOps& files, OpenFile file, FileOffset begin, Open open) {
  const auto before = files.version(file);
  if (!before) return {Failure(before.error())};
  const bool recent = changed_recently(before->modified);
  FixedHeader header;
  if (recent) {
    const auto read = read_fixed_header(files, file, begin);
    if (!read) return {Failure(read.error())};
    header = *read;
  }
  Result<std::shared_ptr<const Container>> opened = open(*before);
  const bool torn =
      !opened && (opened.error().kind == ErrorKind::corruption || opened.error().kind == ErrorKind::unsupported);
  if (!opened && !torn) return {std::move(opened)};
  const auto after = files.version(file);
  if (!after) return {Failure(after.error())};
  const bool same_state = *after == *before;
  // An old file may have been changed during the attempt.
  if (!recent) return {std::move(opened), !same_state};
  if (torn) return {std::move(opened), true};
  const auto again = read_fixed_header(files, file, begin);
  if (!again) return {Failure(again.error())};
  return {std::move(opened), !same_state || *again != header};
}

Result<Summary> summarise_frame(ByteView bytes, std::uint64_t available, ContainerKind kind) {
  Summary summary;
  const auto header = parse_fixed_header(bytes);
  if (!header) return Failure(header.error());
  // The index file of a sparse frame is not a container on its own, and the index file of a directory must not be a
  // contiguous frame.
  const bool sparse = header->frame_type == layout::kSparse;
  if (sparse != (kind == ContainerKind::sframe)) return summary;
  if (auto fits = check_extent(*header, available); !fits) return Failure(fits.error());
  summary.kind = kind;
  summary.nbytes = header->parameters.nbytes;
  summary.chunksize = header->parameters.chunksize;
  summary.has_metalayers = header->parameters.header_length > layout::kMinHeaderLength;
  return summary;
}

Result<Summary> summarise_legacy(ByteView bytes, std::uint64_t available) {
  const auto header = parse_legacy_header(bytes);
  if (!header) return Failure(header.error());
  if (auto fits = check_extent(*header, available); !fits) return Failure(fits.error());
  Summary summary;
  summary.kind = ContainerKind::legacy;
  summary.nbytes = header->frame.parameters.nbytes;
  summary.chunksize = header->chunksize;
  summary.has_metalayers = header->has_metalayers();
  return summary;
}

Summary summary_of(ContainerKind kind, const Container& container) {
  Summary summary;
  summary.kind = kind;
  summary.nbytes = container.parameters().nbytes;
  summary.chunksize = container.parameters().chunksize;
  summary.has_metalayers = !container.vlmetalayer_names().empty();
  return summary;
}

Result<Summary> summarise_file(ReadFileOps& files, OpenFile file, FileOffset begin, std::uint64_t available) {
  const auto read = read_fixed_header(files, file, begin);
  if (!read) return Failure(read.error());
  const ByteView bytes = ByteView(read->bytes).first(read->length);
  if (has_frame_magic(bytes)) {
    return is_legacy_header(bytes) ? summarise_legacy(bytes, available)
                                   : summarise_frame(bytes, available, ContainerKind::cframe);
  }
  if (has_bloscpack_magic(bytes)) {
    const auto opened = open_bloscpack(borrowed_source(files, file, begin, available));
    if (!opened) return Failure(opened.error());
    return summary_of(ContainerKind::bloscpack, **opened);
  }
  const auto chunk = parse_bare_chunk(bytes, available, begin.value == 0);
  if (!chunk) return Summary{};
  Summary summary;
  summary.kind = ContainerKind::chunk;
  summary.nbytes = static_cast<std::uint64_t>(chunk->nbytes);
  summary.chunksize = chunk->nbytes;
  return summary;
}

ContainerAttempt attempt_file(ReadFileOps& files, const std::shared_ptr<const Descriptor>& file,
                              const std::shared_ptr<IndexCache>& index_cache, FileOffset begin, bool old_bitshuffle,
                              const std::shared_ptr<ReadRecord>& record) {
  return attempt_open(files, file->handle(), begin,
                      [&](const FileVersion& version) -> Result<std::shared_ptr<const Container>> {
                        if (version.size == 0) return open_cframe(memory_source(blank_frame()), index_cache);
                        auto source = file_source(files, file, begin, bytes_from(version.size, begin));
                        if (record) source = record->watch(std::move(source));
                        return open_container(std::move(source), index_cache, old_bitshuffle);
                      });
}

ContainerAttempt attempt_index(ReadFileOps& files, const std::shared_ptr<const Descriptor>& dir,
                               const std::shared_ptr<const Descriptor>& index_file,
                               const std::shared_ptr<IndexCache>& index_cache, const SparseGuard& guard) {
  return attempt_open(files, index_file->handle(), FileOffset{0}, [&](const FileVersion&) {
    return open_sparse_frame(files, dir, index_file, index_cache, guard);
  });
}

ContainerAttempt attempt_directory(ReadFileOps& files, const std::shared_ptr<const Descriptor>& dir,
                                   const std::shared_ptr<IndexCache>& index_cache, const SparseGuard& guard) {
  auto opened = open_sparse_index(files, dir->handle());
  if (!opened) return {Failure(opened.error())};
  return attempt_index(files, dir, std::make_shared<const Descriptor>(std::move(*opened)), index_cache, guard);
}

/// Takes a shared lock on the directory, which keeps writers from removing chunk files until the directory is closed.
/// Returns false if the lock is not available.
bool keep_files(ReadFileOps& files, OpenFile directory) {
  for (int tries = 0; tries < kLockTries; ++tries) {
    const auto held = files.try_lock(directory, LOCK_SH);
    if (!held) return false;
    if (*held) return true;
    std::this_thread::sleep_for(kLockPause);  // a writer is removing some
  }
  return false;
}

}  // namespace

Result<Summary> summarise(ReadFileOps& files, OpenFile file, FileOffset begin) {
  const auto status = files.status(file);
  if (!status) return Failure(status.error());
  if (S_ISREG(status->st_mode)) {
    return summarise_file(files, file, begin, bytes_from(static_cast<std::uint64_t>(status->st_size), begin));
  }
  if (!S_ISDIR(status->st_mode)) return Summary{};
  // Of an object on a server, O_NOATIME makes it a look that needs no request if an index tells it.
  const auto index = open_sparse_index(files, file, files.is_remote() ? O_NOATIME : 0);
  if (!index) {
    if (index.error().kind == ErrorKind::corruption) return Summary{};  // missing, or not a regular file
    return Failure(index.error());
  }
  const auto index_status = files.status(index->handle());
  if (!index_status) return Failure(index_status.error());
  const auto read = read_fixed_header(files, index->handle(), FileOffset{0});
  if (!read) return Failure(read.error());
  const ByteView bytes = ByteView(read->bytes).first(read->length);
  if (!has_frame_magic(bytes)) return Summary{};
  return summarise_frame(bytes, static_cast<std::uint64_t>(index_status->st_size), ContainerKind::sframe);
}

bool begins_container(ByteView first, std::uint64_t size) {
  return has_frame_magic(first) || has_bloscpack_magic(first) || parse_bare_chunk(first, size, true).has_value();
}

ContainerAttempt attempt_container(ReadFileOps& files, const std::shared_ptr<const Descriptor>& file,
                                   const std::shared_ptr<IndexCache>& index_cache, FileOffset begin,
                                   bool old_bitshuffle, const std::shared_ptr<ReadRecord>& record) {
  const auto status = files.status(file->handle());
  if (!status) return {Failure(status.error())};
  if (S_ISREG(status->st_mode)) return attempt_file(files, file, index_cache, begin, old_bitshuffle, record);
  if (!S_ISDIR(status->st_mode)) return {corrupt("neither a regular file nor a directory")};
  if (begin.value != 0) return {codec::invalid("a sparse frame cannot begin at an offset")};
  return attempt_directory(files, file, index_cache, {});
}

Result<std::shared_ptr<const Container>> open_container(std::shared_ptr<const ByteSource> source,
                                                        std::shared_ptr<IndexCache> index_cache, bool old_bitshuffle) {
  if (!index_cache) index_cache = std::make_shared<IndexCache>();
  // Nearly all files are current frames, and open_cframe() checks the magic. Trying it first saves a read.
  auto frame = open_cframe(source, index_cache);
  if (frame || frame.error().kind == ErrorKind::io) return frame;
  std::array<std::uint8_t, layout::kMagicAt + layout::kMagic.size()> bytes{};
  const auto first =
      ByteSpan(bytes).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), source->size())));
  if (auto done = source->read(FileOffset{0}, first); !done) return Failure(done.error());
  if (has_frame_magic(first)) {
    if (!is_legacy_header(first)) return frame;
    return open_legacy_frame(std::move(source), std::move(index_cache), old_bitshuffle);
  }
  if (has_bloscpack_magic(first)) return open_bloscpack(std::move(source));
  const bool is_whole_file = source->base_offset().value == 0;
  auto chunk = open_bare_chunk(std::move(source), is_whole_file);
  if (chunk || chunk.error().kind == ErrorKind::io) return chunk;
  return corrupt(std::string(kNoContainer) + " (" + chunk.error().reason + ")");
}

Result<std::shared_ptr<const Container>> open_container(ReadFileOps& files, std::shared_ptr<const Descriptor> file,
                                                        std::shared_ptr<IndexCache> index_cache, FileOffset begin,
                                                        bool old_bitshuffle,
                                                        const std::shared_ptr<ReadRecord>& record) {
  if (!index_cache) index_cache = std::make_shared<IndexCache>();
  return open_in_attempts([&] { return attempt_container(files, file, index_cache, begin, old_bitshuffle, record); });
}

Result<std::shared_ptr<const Container>> open_sparse_state(ReadFileOps& files,
                                                           std::shared_ptr<const Descriptor> directory,
                                                           std::shared_ptr<const Descriptor> index_file,
                                                           std::shared_ptr<IndexCache> index_cache,
                                                           std::shared_ptr<const void> hold) {
  const SparseGuard guard{std::move(hold)};
  return open_in_attempts([&] { return attempt_index(files, directory, index_file, index_cache, guard); });
}

Result<std::shared_ptr<const Container>> open_path(ReadFileOps& files, const std::string& path,
                                                   std::shared_ptr<IndexCache> index_cache, FileOffset begin,
                                                   bool old_bitshuffle) {
  // O_NONBLOCK: opening a pipe would wait for its writer otherwise.
  const auto fd = files.open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return Failure(fd.error());
  auto file = share_descriptor(files, *fd);
  const auto status = files.status(*fd);
  if (!status) return Failure(status.error());
  if (S_ISREG(status->st_mode) && status->st_size == 0 && !is_frame_name(path))
    return corrupt("the file has 0 bytes and is not named like a frame");
  if (S_ISDIR(status->st_mode) && begin.value == 0) {
    if (!index_cache) index_cache = std::make_shared<IndexCache>();
    const SparseGuard guard{nullptr, !keep_files(files, file->handle())};
    return open_in_attempts([&] { return attempt_directory(files, file, index_cache, guard); });
  }
  return open_container(files, std::move(file), std::move(index_cache), begin, old_bitshuffle);
}

}  // namespace cframefs::frame
