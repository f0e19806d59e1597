#include "fs/frames/frame_files.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fcntl.h>

namespace cframefs::fs {
namespace {

constexpr int kReadAttempts = 5;
// Attempts while changes come through this mount, each by another program's open, write and close.
constexpr int kReadAttemptsBesideWriters = 1000;
// Files up to this size are decoded when opened, if a damaged chunk could share a page with a good one.
constexpr std::uint64_t kSmallFile = std::uint64_t{64} << 10;
// How long an open waits until the kernel has dropped the old header of an array. After that the open makes the kernel
// drop all pages, and those of later writes, too, which costs more.
constexpr std::chrono::milliseconds kHeadPatience{20};
// Writes at or beyond this offset share no page, and no large folio, with the header of an array.
constexpr std::uint64_t kFarFromHead = std::uint64_t{8} << 20;

/// Returns true if no page contains bytes of two chunks.
bool has_page_sized_chunks(const frame::FlatView& view, std::uint64_t page_size) {
  const std::int32_t chunksize = view.container().parameters().chunksize;
  return view.is_chunks_only() && chunksize > 0 && static_cast<std::uint64_t>(chunksize) % page_size == 0;
}

}  // namespace

FrameFiles::FrameFiles(MountContext& mount, KernelPages& pages, FrameStates& states, FrameWriters& writers)
    : mount_(mount),
      pages_(pages),
      states_(states),
      writers_(writers),
      ahead_(mount.read_path, mount.workers, mount.options.readahead, ahead_threads(mount.options) + 1) {}

codec::Result<std::unique_ptr<FileHandle>> FrameFiles::open(std::unique_ptr<FileHandle> handle, int flags,
                                                            const FrameOrigin& origin) {
  Node& node = *handle->node;
  auto frame = writers_.share_frame(node, origin.file);
  if (!frame) return codec::Failure(frame.error());
  if (mount_.reserve.is_kept_back(mount_.files, (*frame)->file()->handle())) return codec::io_error(EMFILE, "open");
  handle->frame = std::move(*frame);
  handle->leaves_access_time = mount_.options.no_access_times || (flags & O_NOATIME) != 0;
  std::shared_ptr<WriteBack> writer;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0) {
    auto started = writers_.start_writing(node, handle->frame, origin);
    if (!started) return codec::Failure(started.error());
    writer = std::move(*started);
    handle->writable = true;
    handle->append = (flags & O_APPEND) != 0;
    // The writer may use another descriptor than the one opened above.
    if (mount_.reserve.is_kept_back(mount_.files, handle->frame->file()->handle())) {
      release(std::move(handle));
      return codec::io_error(EMFILE, "open");
    }
    if ((flags & O_TRUNC) != 0) {
      if (auto cut = writer->resize(0, writers_.changer(*handle)); !cut) {
        release(std::move(handle));
        return codec::Failure(cut.error());
      }
    }
  } else {
    writer = handle->frame->write_back();
  }
  auto snapshot = writer ? writer->snapshot() : states_.snapshot_of(node, handle->frame->file());
  if (!snapshot) {
    if (handle->writable) release(std::move(handle));
    return codec::Failure(snapshot.error());
  }
  const bool damaged = is_damaged_small(**snapshot);
  const bool has_old_head = !pages_.is_head_dropped(node, kHeadPatience);
  const auto look = [&](const std::shared_ptr<const FrameSnapshot>& state, const frame::FileVersion& identity) {
    // If a page contains bytes of a damaged chunk and of a good one, only direct reads can tell them apart.
    const bool shares_pages = !has_page_sized_chunks(state->view(), mount_.options.kernel_cache.page_size);
    KernelPages::enter(*handle, {identity, handle->writable, damaged, shares_pages, writer != nullptr, has_old_head});
  };
  if (writer) {
    writer->inspect(look);
  } else {
    look(*snapshot, (*snapshot)->identity());
  }
  codec::MutexLock lock(handle->mutex);
  handle->snapshot = std::move(*snapshot);
  handle->ahead = std::make_unique<ReadAhead>(ahead_);
  return handle;
}

bool FrameFiles::is_damaged_small(const FrameSnapshot& snapshot) {
  const std::uint64_t size = snapshot.view().size();
  if (size > kSmallFile || has_page_sized_chunks(snapshot.view(), mount_.options.kernel_cache.page_size)) {
    return false;
  }
  Reply reply;
  return !mount_.read_path.read(snapshot, frame::FlatOffset{0}, size, reply);
}

codec::Result<void> FrameFiles::read_written(FileHandle& handle, WriteBack& writer, std::uint64_t at,
                                             std::size_t length, Reply& reply) {
  const auto note = [&](const std::shared_ptr<const FrameSnapshot>& stored) { handle.ahead->note(stored, at, length); };
  auto done = writer.read(at, length, reply, note);
  const bool is_refused = !done && ReadPermit::is_refusal(done.error());
  if (!done && !is_refused && done.error().kind != codec::ErrorKind::stale) handle.node->pages.note_damage();
  return done;
}

codec::Result<void> FrameFiles::read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply) {
  ReadsUnderWay::Mark& mark = reply.mark();
  if (!handle.leaves_access_time && !handle.was_read.exchange(true))
    mount_.files.note_access(handle.frame->file()->handle());
  codec::Result<std::shared_ptr<const FrameSnapshot>> snapshot = nullptr;
  int foreign_states = 0;
  for (int attempt = 1;; ++attempt) {
    const bool is_last = foreign_states + 1 >= kReadAttempts || attempt >= kReadAttemptsBesideWriters;
    // Read through a writer if there is one: it keeps its states readable, while the frame on disk may not be openable
    // between two of its commits.
    if (const auto writer = handle.frame->write_back()) {
      mark.close();
      auto done = read_written(handle, *writer, at, length, reply);
      const bool is_stale = !done && done.error().kind == codec::ErrorKind::stale;
      // A writer that was closed during the read no longer knows which changes are the mount's own: retry.
      if (!is_stale || is_last || handle.frame->write_back() == writer) return done;
      mark.reopen();
      reply.clear();
      snapshot = nullptr;
      continue;
    }
    if (!snapshot || *snapshot == nullptr) snapshot = states_.current_snapshot(handle);
    if (!snapshot) {
      const bool keeps_changing = snapshot.error().kind == codec::ErrorKind::stale && !is_last;
      if (!keeps_changing && !handle.frame->write_back()) return codec::Failure(snapshot.error());
      if (!was_changed_here(handle)) ++foreign_states;
      continue;
    }
    const ReadPath::AccessPattern pattern = handle.ahead->note(*snapshot, at, length);
    auto done = mount_.read_path.read(**snapshot, frame::FlatOffset{at}, length, reply, pattern);
    if (!done && ReadPermit::is_refusal(done.error())) return done;
    // If the file changed during the read, discard bytes and errors, and retry from the new state.
    mark.close();
    const auto damage = done ? DamageNotes::List() : (*snapshot)->damage().take();
    auto now = states_.current_snapshot(handle, FrameStates::Look::after_read);
    if (now && (*now)->id() == (*snapshot)->id()) {
      mount_.read_path.log_damage(damage);
      if (!done) handle.node->pages.note_damage();
      return done;
    }
    mark.reopen();
    reply.clear();
    if (now && is_last) return kept_changing(**now);
    if (!was_changed_here(handle)) ++foreign_states;
    snapshot = std::move(now);
  }
}

void FrameFiles::note_pages_read(FileHandle& handle, std::uint64_t at, const Reply& reply) {
  // What a program writes changes blocks, and pages would be filled again and again.
  if (!pages_.can_fill() || !reply.block() || handle.frame->write_back()) return;
  std::shared_ptr<const FrameSnapshot> snapshot;
  {
    const codec::MutexLock lock(handle.mutex);
    snapshot = handle.snapshot;
  }
  const BlockAround& around = *reply.block();
  const std::uint64_t begin = at - std::min(at, around.before);
  if (!snapshot || !snapshot->touches().note(begin)) return;
  const std::uint64_t end = std::min(at + reply.size() + around.after, snapshot->view().size());
  if (begin >= end || pages_.fill(*handle.node, snapshot->id(), begin, end - begin)) return;
  snapshot->touches().forget(begin);
}

bool FrameFiles::was_changed_here(const FileHandle& handle) const {
  const auto identity = mount_.tree.identity(handle.frame->file()->handle(), handle.node->kind);
  return identity && handle.node->pages.is_own(*identity);
}

codec::Failure FrameFiles::kept_changing(const FrameSnapshot& snapshot) {
  codec::Failure failure = codec::stale("the file kept changing while it was read");
  failure.value().path = snapshot.path();
  mount_.once.error(failure.value());
  return failure;
}

codec::Result<std::uint64_t> FrameFiles::seek(FileHandle& handle, std::uint64_t from, bool hole) {
  codec::Result<std::shared_ptr<const FrameSnapshot>> snapshot = nullptr;
  if (const auto writer = handle.frame->write_back()) {
    // The holes of committed data are known. Data that cannot be committed counts as data without holes.
    auto done = writer->commit(frame::Durability::ordered);
    if (!done || writer->dirty_since_write()) {
      const std::uint64_t size = writer->status().size;
      if (from >= size) return codec::io_error(ENXIO, "lseek");
      return hole ? size : from;
    }
    snapshot = writer->snapshot();
  } else {
    snapshot = states_.current_snapshot(handle);
  }
  if (!snapshot) return codec::Failure(snapshot.error());
  const std::uint64_t size = (*snapshot)->view().size();
  if (from >= size) return codec::io_error(ENXIO, "lseek");
  auto found = (*snapshot)->view().seek(frame::FlatOffset{from}, hole);
  if (!found) return codec::Failure(found.error());
  if (!hole && found->value >= size) return codec::io_error(ENXIO, "lseek");
  return found->value;
}

void FrameFiles::release(std::unique_ptr<FileHandle> handle) {
  if (handle->writable) writers_.stop_writing(handle->node->id, handle->frame);
  pages_.leave(*handle);
}

codec::Result<void> FrameFiles::write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool from_page_cache,
                                      bool append, ChangePermit& permit) {
  const auto writer = handle.frame->write_back();
  if (from_page_cache) writer->wait_for_head(at);
  auto place = writer->write(append ? std::nullopt : std::optional(at), bytes, permit, writers_.changer(handle));
  if (!place) return codec::Failure(place.error());
  pages_.note_written(handle, at, *place, bytes.size());
  // The kernel keeps a page that is written in part locked until the reply; the header may share it with the first
  // rows.
  pages_.note_new_head(*handle.node, *writer, at >= kFarFromHead);
  return {};
}

codec::Result<void> FrameFiles::allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length) {
  const auto writer = handle.frame->write_back();
  auto done = writer->allocate(mode, at, length);
  if (done) pages_.note_new_head(*handle.node, *writer, true);
  return done;
}

codec::Result<void> FrameFiles::resize(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit) {
  const auto writer = handle != nullptr && handle->writable ? handle->frame->write_back() : nullptr;
  if (writer) {
    if (auto begun = permit.begin(); !begun) return begun;
    auto done = writer->resize(size, writers_.changer(*handle));
    if (done) pages_.note_new_head(node, *writer, true);
    return done;
  }
  const FrameWriters::Work work = [size, &work, &permit](WriteBack& file) {
    const auto begun = permit.begin();
    auto done = begun ? file.resize(size, &work) : begun;
    // Programs now see the new size. The commit may wait for a lock, and goes on if the caller leaves.
    permit.end();
    return done;
  };
  return writers_.with_temporary_writer(node, work);
}

codec::Result<void> FrameFiles::flush(FileHandle& handle) {
  const auto writer = handle.frame->write_back();
  auto done = writer->commit(frame::Durability::ordered, CommitExtent::all, CommitWait::lock);
  if (done) done = writer->check_whole(writers_.changer(handle));
  return done ? mount_.files.flush(handle.frame->file()->handle()) : done;
}

codec::Result<void> FrameFiles::sync(FileHandle& handle, bool data_only) {
  if (const auto writer = handle.frame->write_back()) {
    auto done = writer->commit(frame::Durability::durable, CommitExtent::all, CommitWait::lock);
    return done ? writer->check_whole(writers_.changer(handle)) : done;
  }
  return mount_.files.sync(handle.frame->file()->handle(), data_only);
}

}  // namespace cframefs::fs
