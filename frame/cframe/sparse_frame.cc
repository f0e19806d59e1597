#include "frame/cframe/sparse_frame.h"

#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>

#include "frame/cframe/frame_container.h"
#include "frame/io/system_version.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

/// A regular file of a frame's directory, and its status when it was opened.
struct RegularFile {
  Descriptor descriptor;
  struct stat status {};
};

/// Opens `name` in `dir` for reading. corruption: `name` is missing, a symbolic link, or not a regular file.
Result<RegularFile> open_regular(ReadFileOps& files, OpenFile dir, const std::string& name, int flags = 0) {
  // O_NONBLOCK: opening a pipe would wait for its writer otherwise.
  const auto fd = files.open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags);
  if (!fd) {
    if (fd.error().sys == ENOENT) return corrupt(name + " is missing");
    if (fd.error().sys == ELOOP) return corrupt(name + " is a symbolic link");
    if (fd.error().sys == ENXIO) return corrupt(name + " is not a regular file");
    return Failure(fd.error());
  }
  RegularFile file;
  file.descriptor = Descriptor(files, *fd);
  const auto status = files.status(*fd);
  if (!status) return Failure(status.error());
  if (!S_ISREG(status->st_mode)) return corrupt(name + " is not a regular file");
  file.status = *status;
  return file;
}

/// The directory of a frame, and the identity of its index file at the time of opening.
struct Directory {
  ReadFileOps& files;
  std::shared_ptr<const Descriptor> dir;
  dev_t index_device = 0;
  ino_t index_inode = 0;
  SparseGuard guard;

  /// Returns stale if the directory has another index file now.
  Result<void> check_current() const {
    const auto index = files.status_at(dir->handle(), kSparseIndexName);
    if (!index && index.error().sys != ENOENT) return Failure(index.error());
    if (index && index->st_dev == index_device && index->st_ino == index_inode) return {};
    return codec::stale("the frame changed while it was read");
  }
  Result<void> check_guarded() const { return guard.checks_after_read ? check_current() : Result<void>(); }

  Result<RegularFile> open_chunk(const std::string& name) const {
    auto file = open_regular(files, dir->handle(), name);
    if (!file && file.error().kind == ErrorKind::corruption) {
      if (auto current = check_current(); !current) return Failure(current.error());
    }
    return file;
  }
};

/// A chunk file, which each read() opens.
class ChunkFile final : public ByteSource {
 public:
  ChunkFile(std::shared_ptr<const Directory> directory, std::string name, const struct stat& status)
      : directory_(std::move(directory)), name_(std::move(name)), identity_(version_of(status)) {}

  std::uint64_t size() const override { return identity_.size; }
  std::string label() const override { return name_; }

  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > size() || into.size() > size() - at.value) {
      return corrupt(fmt::format("read of {} bytes at {} of a file of {} bytes", into.size(), at.value, size()));
    }
    const auto file = directory_->open_chunk(name_);
    if (!file) return Failure(file.error());
    // ctime is not compared: a change of mode or links does not change the bytes.
    FileVersion now = version_of(file->status);
    now.ctime_ns = identity_.ctime_ns;
    if (now != identity_) return codec::stale("the file changed while it was read");
    const auto got = directory_->files.pread(file->descriptor.handle(), into, at);
    if (!got) return Failure(got.error());
    if (*got < into.size()) return codec::stale("the file was truncated while it was read");
    return directory_->check_guarded();
  }

 private:
  const std::shared_ptr<const Directory> directory_;
  const std::string name_;
  const FileVersion identity_;
};

class SparseFrame final : public FrameContainer {
 public:
  SparseFrame(FrameParts parts, std::shared_ptr<const Directory> directory)
      : FrameContainer(std::move(parts)), directory_(std::move(directory)) {}

 private:
  Result<void> find_stored(std::int64_t entry, ChunkLocation& location) const override {
    auto name = chunk_file_name(entry);
    if (!name) return Failure(name.error());
    const auto file = directory_->open_chunk(*name);
    if (!file) return Failure(file.error());
    if (auto same = directory_->check_guarded(); !same) return same;
    location.source = std::make_shared<const ChunkFile>(directory_, std::move(*name), file->status);
    location.offset = FileOffset{0};
    location.limit = location.source->size();
    return {};
  }

  const std::shared_ptr<const Directory> directory_;
};

}  // namespace

Result<Descriptor> open_sparse_index(ReadFileOps& files, OpenFile dir, int flags) {
  auto file = open_regular(files, dir, kSparseIndexName, flags);
  if (!file) return Failure(file.error());
  return std::move(file->descriptor);
}

Result<std::string> chunk_file_name(std::int64_t number) {
  if (number < 0 || number > 0xffffffff) {
    return corrupt(
        fmt::format("index entry {} is not the number of a chunk file, at most {} is allowed", number, 0xffffffff));
  }
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string name = "00000000.chunk";
  auto rest = static_cast<std::uint64_t>(number);
  for (std::size_t i = 8; i-- > 0; rest >>= 4)
    name[i] = digits[rest & 15];
  return name;
}

Result<std::shared_ptr<const Container>> open_sparse_frame(ReadFileOps& files, std::shared_ptr<const Descriptor> dir,
                                                           std::shared_ptr<const Descriptor> index_file,
                                                           std::shared_ptr<IndexCache> index_cache, SparseGuard guard) {
  const auto status = files.status(index_file->handle());
  if (!status) return Failure(status.error());
  auto directory = std::make_shared<const Directory>(
      Directory{files, std::move(dir), status->st_dev, status->st_ino, std::move(guard)});
  std::shared_ptr<const ByteSource> source =
      file_source(files, std::move(index_file), FileOffset{0}, static_cast<std::uint64_t>(status->st_size));
  auto parts = read_frame_parts(std::move(source), layout::kSparse, std::move(index_cache));
  if (!parts) return Failure(parts.error());
  return std::make_shared<const SparseFrame>(std::move(*parts), std::move(directory));
}

}  // namespace cframefs::frame
