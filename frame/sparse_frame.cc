#include "frame/sparse_frame.h"

#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>

#include "frame/frame_container.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

/// A descriptor of a regular file beneath `dir` and its state. Not having one that the frame refers to is damage.
struct OpenFile {
  Descriptor descriptor;
  struct stat status {};
};

Result<OpenFile> open_regular(FileOps& files, int dir, const std::string& name) {
  // Without O_NONBLOCK the open of a pipe would wait for its writer.
  const auto fd = files.open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) {
    if (fd.error().sys == ENOENT) return corrupt(name + " is missing");
    if (fd.error().sys == ELOOP) return corrupt(name + " is a symbolic link");
    if (fd.error().sys == ENXIO) return corrupt(name + " is not a regular file");
    return Failure(fd.error());
  }
  OpenFile file;
  file.descriptor = Descriptor(files, *fd);
  const auto status = files.status(*fd);
  if (!status) return Failure(status.error());
  if (!S_ISREG(status->st_mode)) return corrupt(name + " is not a regular file");
  file.status = *status;
  return file;
}

/// A chunk file, opened for each read.
class ChunkFile final : public ByteSource {
 public:
  ChunkFile(FileOps& files, std::shared_ptr<const Descriptor> dir, std::string name, const struct stat& status)
      : files_(files), dir_(std::move(dir)), name_(std::move(name)), identity_(Identity::of(status)) {}

  std::uint64_t size() const override { return identity_.size; }
  std::string label() const override { return name_; }

  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > size() || into.size() > size() - at.value) {
      return corrupt("the file ends at byte " + std::to_string(size()) + ", before " + std::to_string(into.size()) +
                     " bytes at " + std::to_string(at.value));
    }
    const auto file = open_regular(files_, dir_->fd(), name_);
    if (!file) return Failure(file.error());
    // Not the time of the last change of mode or links: the bytes are the same then.
    Identity now = Identity::of(file->status);
    now.ctime_ns = identity_.ctime_ns;
    if (now != identity_) return codec::stale("the file was changed while it was read");
    const auto got = files_.pread(file->descriptor.fd(), into, at);
    if (!got) return Failure(got.error());
    if (*got < into.size()) return codec::stale("the file was cut while it was read");
    return {};
  }

 private:
  FileOps& files_;
  const std::shared_ptr<const Descriptor> dir_;
  const std::string name_;
  const Identity identity_;
};

class SparseFrame final : public FrameContainer {
 public:
  SparseFrame(FrameParts parts, FileOps& files, std::shared_ptr<const Descriptor> dir)
      : FrameContainer(std::move(parts)), files_(files), dir_(std::move(dir)) {}

 private:
  Result<void> find_stored(std::int64_t entry, ChunkPlace& place) const override {
    auto name = chunk_file_name(entry);
    if (!name) return Failure(name.error());
    const auto file = open_regular(files_, dir_->fd(), *name);
    if (!file) return Failure(file.error());
    place.source = std::make_shared<const ChunkFile>(files_, dir_, std::move(*name), file->status);
    place.offset = FileOffset{0};
    place.limit = place.source->size();
    return {};
  }

  FileOps& files_;
  const std::shared_ptr<const Descriptor> dir_;
};

}  // namespace

Result<Descriptor> open_sparse_index(FileOps& files, int dir) {
  auto file = open_regular(files, dir, kSparseIndexName);
  if (!file) return Failure(file.error());
  return std::move(file->descriptor);
}

Result<std::string> chunk_file_name(std::int64_t number) {
  if (number < 0 || number > 0xffffffff) {
    return corrupt("index names chunk file " + std::to_string(number) + ", more than eight digits can tell");
  }
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string name = "00000000.chunk";
  auto rest = static_cast<std::uint64_t>(number);
  for (std::size_t i = 8; i-- > 0; rest >>= 4)
    name[i] = digits[rest & 15];
  return name;
}

Result<std::shared_ptr<const Container>> open_sparse_frame(FileOps& files, std::shared_ptr<const Descriptor> dir,
                                                           std::shared_ptr<const Descriptor> index_file,
                                                           std::shared_ptr<IndexCache> index_cache) {
  const auto status = files.status(index_file->fd());
  if (!status) return Failure(status.error());
  std::shared_ptr<const ByteSource> source =
      file_source(files, std::move(index_file), FileOffset{0}, static_cast<std::uint64_t>(status->st_size));
  auto parts = read_frame_parts(std::move(source), layout::kSparse, std::move(index_cache));
  if (!parts) return Failure(parts.error());
  return std::make_shared<const SparseFrame>(std::move(*parts), files, std::move(dir));
}

}  // namespace cframefs::frame
