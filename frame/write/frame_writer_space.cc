// FrameSpace; and of FrameWriter: dead bytes, when the file is rewritten because of them.
//
// On a full disk, truncating the shown file must free space without a new file. After a durable commit, dead bytes are
// replaced by holes (punch_dead_bytes()). If the next state has no chunks and the disk has no room for a new file,
// header and trailer are written over the first chunk with one write into the first sector (empty_in_place()). Both
// destroy bytes of older states. The callback on_overwrite() runs before, so that readers in this process read again.
// Other programs that hold a lock as readers prevent both.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <linux/falloc.h>

#include "frame/cframe/cframe.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/io/advisory_lock.h"
#include "frame/write/dead_space.h"
#include "frame/write/frame_space.h"
#include "frame/write/frame_writer-inl.h"

namespace cframefs::frame {

namespace {

/// A rewrite must free at least this many bytes more than it copies.
constexpr std::uint64_t kFewDeadBytes = std::uint64_t{32} << 10;

}  // namespace

std::uint64_t FrameWriter::dead_bytes() {
  if (directory_) return 0;
  // An unknown number counts as 0: this wastes space but never loses data.
  if (!dead_bytes_) dead_bytes_ = measure_dead_bytes(*container_).value_or(0);
  return *dead_bytes_;
}

bool FrameWriter::has_room_for_copy() {
  const auto disk = files_.filesystem_status(file_->handle());
  if (!disk || disk->f_blocks == 0) return true;
  const std::uint64_t length = parameters().frame_length;
  return std::uint64_t{disk->f_bavail} * disk->f_frsize >= length - std::min(dead_bytes(), length);
}

/// Rewrites the file if it has more dead bytes than live ones and can be replaced; otherwise appends. So at most one
/// byte is copied for each byte that died, however often a program syncs.
/// Another program that has the frame open for writing would go on in the old file.
Result<void> FrameWriter::append_or_compact(const AdvisoryLock& held) {
  const std::uint64_t length = parameters().frame_length;
  const std::uint64_t dead = std::min(dead_bytes(), length);
  const bool is_worth_it = dead > length - dead + kFewDeadBytes && dead >= compact_from_;
  if (!has_name_ || !is_worth_it || !has_room_for_copy() || !held.is_alone().value_or(false))
    return append_and_switch();
  auto done = rewrite_file(Image::replaced);
  if (done) compact_from_ = 0;
  if (done || is_failed(state_) || done.error().kind == ErrorKind::stale) return done;
  // The cause (full disk, damaged chunk, read-only directory) may last: retry only after the dead bytes grew by half.
  compact_from_ = dead + dead / 2;
  return append_and_switch();
}

Result<std::uint64_t> FrameSpace::punch_dead_bytes() {
  if (is_failed(writer_.state_) || writer_.directory_ || writer_.is_blank_) return std::uint64_t{0};
  const std::shared_ptr<const Descriptor> locked = writer_.file_;
  const auto held = writer_.lock();
  if (!held) return codec::Failure(held.error());
  const auto is_alone = held->is_alone();
  if (!is_alone) return codec::Failure(is_alone.error());
  if (!*is_alone) return std::uint64_t{0};
  if (auto same = writer_.check_unchanged(); !same) return codec::Failure(same.error());
  const auto dead = find_dead_ranges(*writer_.container_);
  if (!dead) return codec::Failure(dead.error());
  const auto before = writer_.files_.status(writer_.file_->handle());
  if (!before) return codec::Failure(before.error());
  // Without this sync a power cut could bring back the previous state, whose bytes are punched.
  if (auto synced = writer_.sync_all(); !synced) return codec::Failure(synced.error());
  std::uint64_t punched = 0;
  for (const DeadRange& range : *dead) {
    const std::uint64_t begin = (range.begin.value + kDiskBlock - 1) / kDiskBlock * kDiskBlock;
    const std::uint64_t end = (range.begin.value + range.length) / kDiskBlock * kDiskBlock;
    if (begin >= end) continue;
    if (punched == 0) writer_.on_overwrite_();
    auto done = writer_.files_.allocate(writer_.file_->handle(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                        FileOffset{begin}, end - begin);
    if (!done) return codec::Failure(done.error());
    punched += end - begin;
  }
  // Punching did not change the content of the frame, so mtime is restored.
  if (punched > 0)
    static_cast<void>(writer_.files_.set_times(writer_.file_->handle(), {{{0, UTIME_OMIT}, before->st_mtim}}));
  return punched;
}

Result<void> FrameSpace::compact(const CommitHooks& hooks) {
  auto done = writer_.commit_locked(Durability::durable, true, hooks);
  if (!done || !writer_.sparse_) return done;
  const auto held = writer_.lock();
  if (!held) return codec::Failure(held.error());
  if (auto same = writer_.check_unchanged(); !same) return same;
  return writer_.sparse_->remove_unreferenced(*writer_.container_);
}

Result<std::uint64_t> FrameSpace::cut_tail() {
  const auto held = writer_.lock();
  if (!held) return codec::Failure(held.error());
  if (auto same = writer_.check_unchanged(); !same) return codec::Failure(same.error());
  auto cut = writer_.cut_tail_locked();
  if (!cut || *cut == 0) return cut;
  if (auto synced = writer_.files_.sync(writer_.file_->handle(), false); !synced) return codec::Failure(synced.error());
  return cut;
}

/// Commits the pending state, which has no chunks, with one write inside one sector. REQUIRES: the locks are held and
/// exclusive.
Result<void> FrameWriter::empty_in_place() {
  Next next;
  next.file = file_;
  next.header = next_header();
  const auto trailer = next_trailer();
  if (!trailer) return codec::Failure(trailer.error());
  HeaderUpdate fields;
  fields.chunksize = pending_.chunksize();
  fields.has_vlmetalayers = next_has_vlmetalayers();
  fields.frame_length = next.header.size() + trailer->size();
  encode_update(fields, next.header);
  std::vector<std::uint8_t> image = next.header;
  codec::append(image, *trailer);
  if (image.size() > kSector || image.size() > parameters().frame_length) {
    return codec::io_error(ENOSPC, "new file for a frame without chunks");
  }
  const auto old = read_bytes(files_, file_->handle(), FileOffset{0}, image.size());
  if (!old) return codec::Failure(old.error());
  auto opened = open_cframe(memory_source(image), cache_);
  if (!opened) return codec::Failure(opened.error());
  next.container = std::move(*opened);
  on_overwrite_();
  if (auto written = files_.pwrite(file_->handle(), image, FileOffset{0}); !written) {
    // As in publish_header(): the write may be partial.
    auto restored = files_.pwrite(file_->handle(), *old, FileOffset{0});
    if (restored) restored = files_.sync(file_->handle(), true);
    if (!restored) fail();
    return written;
  }
  const std::uint64_t end = image.size();
  adopt(std::move(next));
  // Truncate only after the sync: until then a power cut could bring back the previous state, which needs its bytes.
  auto synced = sync_all();
  if (synced) static_cast<void>(files_.truncate(file_->handle(), end));  // if this fails, the next commit truncates
  return synced;
}

Result<void> compact(FileOps& files, OpenFile dir, const std::string& path, std::shared_ptr<IndexCache> cache,
                     const WriterOptions& options) {
  auto writer = FrameWriter::open(files, dir, path, std::move(cache), options);
  if (!writer) return codec::Failure(writer.error());
  return FrameSpace(**writer).compact();
}

}  // namespace cframefs::frame
