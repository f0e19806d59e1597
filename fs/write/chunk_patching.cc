#include "fs/write/chunk_patching.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace cframefs::fs {

ChunkPatching::ChunkPatching(ReadPath& read_path, std::shared_ptr<const FrameSnapshot> snapshot, const Extent& extent,
                             std::shared_ptr<const ChunkPatches> patches)
    : read_path_(read_path), snapshot_(std::move(snapshot)), extent_(extent), patches_(std::move(patches)) {}

codec::Result<Buffer> ChunkPatching::whole() const {
  Buffer plain = read_path_.pool().get(extent_.most);
  if (extent_.kept > 0 && !(patches_ && patches_->covers(extent_.kept))) {
    const auto read = read_path_.read_chunk(*snapshot_, frame::ChunkNumber{extent_.number}, plain.bytes());
    if (!read) return codec::Failure(read.error());
    if (*read < extent_.kept) return too_short(*read);
  }
  put_patches(plain);
  return plain;
}

codec::Result<std::optional<PatchedChunk>> ChunkPatching::changed_blocks(
    const codec::EncodeParameters& parameters) const {
  if (extent_.kept == 0 || (patches_ && patches_->covers(extent_.kept))) return std::nullopt;
  const auto reader = snapshot_->reader(frame::ChunkNumber{extent_.number});
  // whole() meets the error again, and reports it.
  if (!reader || (*reader)->decoder().nbytes() > extent_.most) return std::nullopt;
  const codec::ChunkDecoder& earlier = (*reader)->decoder();
  if (!codec::can_keep_blocks(parameters, earlier.header(), static_cast<std::int32_t>(extent_.length)))
    return std::nullopt;
  if (earlier.nbytes() < extent_.kept) return too_short(earlier.nbytes());
  std::vector<bool> is_kept = unchanged(earlier);
  if (std::none_of(is_kept.begin(), is_kept.end(), [](bool kept) { return kept; })) return std::nullopt;

  PatchedChunk patched;
  patched.plain = read_path_.pool().get(extent_.most);
  patched.earlier = read_path_.pool().get((*reader)->stored_bytes());
  if (auto read = (*reader)->read_stored(0, patched.earlier.bytes()); !read) return codec::Failure(read.error());
  std::vector<bool> is_wanted(is_kept.size());
  for (std::uint32_t block = 0; block < is_kept.size(); ++block) {
    const codec::ByteRange stored = is_kept[block] ? earlier.stored_range(block) : codec::ByteRange{};
    patched.kept.push_back(codec::ByteView(patched.earlier.bytes()).subspan(stored.begin, stored.size()));
    if (is_kept[block]) {
      patched.kept_bytes += earlier.block_range(block).size();
    } else if (block < earlier.block_count()) {
      is_wanted[block] = earlier.block_range(block).begin < extent_.kept;
    }
  }
  if (auto read = read_path_.read_blocks(*snapshot_, **reader, is_wanted, patched.plain.bytes()); !read)
    return codec::Failure(read.error());
  put_patches(patched.plain);
  return patched;
}

/// Returns for each block of the new version whether it has the bytes of the same block of the earlier one.
std::vector<bool> ChunkPatching::unchanged(const codec::ChunkDecoder& earlier) const {
  const auto blocksize = static_cast<std::uint64_t>(earlier.header().blocksize);
  std::vector<bool> is_kept((extent_.length + blocksize - 1) / blocksize);
  for (std::uint32_t block = 0; block < is_kept.size() && block < earlier.block_count(); ++block) {
    const codec::ByteRange range = earlier.block_range(block);
    const bool is_whole = range.end == std::min((block + 1) * blocksize, extent_.length);
    is_kept[block] = is_whole && range.end <= extent_.kept && is_unchanged(range);
  }
  return is_kept;
}

bool ChunkPatching::is_unchanged(const codec::ByteRange& block) const {
  if (!patches_) return true;
  const auto after = patches_->pieces().lower_bound(block.end);
  if (after == patches_->pieces().begin()) return true;
  const auto& [begin, bytes] = *std::prev(after);
  return begin + bytes.size() <= block.begin;
}

/// Puts zeros behind the bytes of the stored chunk, and the patches over all.
void ChunkPatching::put_patches(Buffer& plain) const {
  const auto rest = plain.bytes().subspan(extent_.kept);
  std::fill(rest.begin(), rest.end(), std::uint8_t{0});
  if (patches_) patches_->apply_to(plain.bytes().first(extent_.length));
}

codec::Failure ChunkPatching::too_short(std::uint64_t found) const {
  return codec::corrupt(
      fmt::format("chunk {} has {} bytes, fewer than the frame says: {}", extent_.number, found, extent_.kept));
}

}  // namespace cframefs::fs
