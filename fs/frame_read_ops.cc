// Open frames: their states, and reading them.
//
// All handles of a frame share an OpenFrame, because a commit may replace the file: from then on all handles read the
// new file. While a program has the frame open for writing, reads go through its WriteBack.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "frame/base/elapsed.h"
#include "fs/filesystem.h"

namespace cframefs::fs {
namespace {

// Attempts to open a file that another program is changing, before it counts as damaged.
constexpr int kOpenAttempts = 20;
constexpr auto kOpenPause = std::chrono::milliseconds(1);
constexpr int kReadAttempts = 5;
// Attempts while changes come through this mount, each by another program's open, write and close.
constexpr int kReadAttemptsBesideWriters = 1000;
// Files up to this size are decoded when opened, if a damaged chunk could share a page with a good one.
constexpr std::uint64_t kSmallFile = std::uint64_t{64} << 10;
constexpr std::uint64_t kKernelPage = 4096;
// How long an open waits until the kernel has dropped the old header of an array. After that the open makes the kernel
// drop all pages, and those of later writes, too, which costs more.
constexpr std::chrono::milliseconds kHeadPatience{20};

/// Returns true if no page contains bytes of two chunks.
bool has_page_sized_chunks(const frame::FlatView& view) {
  const std::int32_t chunksize = view.container().parameters().chunksize;
  const bool in_order = view.head().empty() && view.array_geometry() == nullptr;
  return in_order && chunksize > 0 && static_cast<std::uint64_t>(chunksize) % kKernelPage == 0;
}

bool changed_just_now(const frame::FileVersion& identity) {
  return frame::age_ns(identity.modified) < 2'000'000'000;
}

}  // namespace

codec::Result<std::shared_ptr<OpenFrame>> Filesystem::share_frame(Node& node) {
  for (int attempt = 1;; ++attempt) {
    // A writer knows the file, also while a commit replaces it, and after it has lost its name. A stale writer stays
    // with the programs that have it open; others get a new OpenFrame.
    std::shared_ptr<OpenFrame> frame = open_frame_of(node);
    std::shared_ptr<OpenFrame> stale;
    if (const auto writer = frame ? frame->write_back() : nullptr) {
      if (!writer->is_stale()) return frame;
      if (frame->write_back() != writer && attempt < kOpenAttempts) continue;  // it has been closed since
      stale = frame;
    }
    // O_NOATIME: reading the header is not an access by the program.
    auto file = node_files_.open_with_room([&] { return node_files_.open_file(node, O_RDONLY | O_NOATIME); });
    if (!file && file.error().sys == EPERM) file = node_files_.open_file(node, O_RDONLY);
    if (!file) {
      // A commit may be replacing the file.
      const bool is_committed = file.error().kind == codec::ErrorKind::stale && frame;
      if (is_committed && attempt < kOpenAttempts) continue;
      return codec::Failure(file.error());
    }
    auto status = mount_.files.status((*file)->fd());
    if (!status) return codec::Failure(status.error());
    codec::MutexLock lock(node.mutex);
    frame = node.open_frame.lock();
    if (frame == stale) frame.reset();
    if (frame && frame->write_back()) return frame;
    if (frame) {
      auto shared = mount_.files.status(frame->file()->fd());
      if (shared && shared->st_ino == status->st_ino && shared->st_dev == status->st_dev) return frame;
    }
    frame = std::make_shared<OpenFrame>(std::move(*file));
    node.open_frame = frame;
    return frame;
  }
}

codec::Result<std::unique_ptr<FileHandle>> Filesystem::open_frame(std::unique_ptr<FileHandle> handle, int flags,
                                                                  const NewFile& made) {
  Node& node = *handle->node;
  auto frame = share_frame(node);
  if (!frame) return codec::Failure(frame.error());
  if (mount_.reserve.is_kept_back((*frame)->file()->fd())) return codec::io_error(EMFILE, "open");
  handle->frame = std::move(*frame);
  handle->leaves_access_time = mount_.options.no_access_times || (flags & O_NOATIME) != 0;
  std::shared_ptr<WriteBack> writer;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0) {
    auto started = start_writing(node, handle->frame, made);
    if (!started) return codec::Failure(started.error());
    writer = std::move(*started);
    handle->writable = true;
    handle->append = (flags & O_APPEND) != 0;
    // The writer may use another descriptor than the one opened above.
    if (mount_.reserve.is_kept_back(handle->frame->file()->fd())) {
      release(std::move(handle));
      return codec::io_error(EMFILE, "open");
    }
    if ((flags & O_TRUNC) != 0) {
      if (auto cut = writer->resize(0, changer(*handle)); !cut) {
        release(std::move(handle));
        return codec::Failure(cut.error());
      }
    }
  } else {
    writer = handle->frame->write_back();
  }
  auto snapshot = writer ? writer->snapshot() : snapshot_of(node, handle->frame->file());
  if (!snapshot) {
    if (handle->writable) release(std::move(handle));
    return codec::Failure(snapshot.error());
  }
  const bool damaged = is_damaged_small(**snapshot);
  const bool has_old_head = !pages_.is_head_dropped(node, kHeadPatience);
  const auto look = [&](const std::shared_ptr<const FrameSnapshot>& state, const frame::FileVersion& identity) {
    // If a page contains bytes of a damaged chunk and of a good one, only direct reads can tell them apart.
    const bool shares_pages = !has_page_sized_chunks(state->view());
    pages_.enter(*handle, {identity, handle->writable, damaged, shares_pages, writer != nullptr, has_old_head});
  };
  if (writer) {
    writer->inspect(look);
  } else {
    look(*snapshot, (*snapshot)->identity());
  }
  codec::MutexLock lock(handle->mutex);
  handle->snapshot = std::move(*snapshot);
  handle->ahead = std::make_unique<ReadAhead>(ahead_, !handle->direct && (flags & O_DIRECT) == 0);
  return handle;
}

bool Filesystem::is_damaged_small(const FrameSnapshot& snapshot) {
  const std::uint64_t size = snapshot.view().size();
  if (size > kSmallFile || has_page_sized_chunks(snapshot.view())) return false;
  Reply reply;
  return !mount_.read_path.read(snapshot, frame::FlatOffset{0}, size, reply);
}

codec::Result<std::shared_ptr<const FrameSnapshot>> Filesystem::snapshot_of(
    Node& node, const std::shared_ptr<const frame::Descriptor>& file) {
  auto identity = mount_.tree.identity(file->fd(), node.kind);
  if (!identity) return codec::Failure(identity.error());
  std::shared_ptr<const FrameSnapshot> last;
  {
    codec::MutexLock lock(node.mutex);
    last = node.current.lock();
    if (last && last->identity().settled && last->identity() == *identity) return last;
  }
  // If only timestamps differ, keep the decoded blocks, whose decoding may have taken long.
  if (last && last->has_same_content(*identity)) {
    const auto after = mount_.tree.identity(file->fd(), node.kind);
    if (after && *after == *identity) {
      auto same = last->with_identity(*identity);
      codec::MutexLock lock(node.mutex);
      node.current = same;
      return same;
    }
  }
  auto opened = open_snapshot(node, file);
  if (!opened) return opened;
  codec::MutexLock lock(node.mutex);
  if (auto current = node.current.lock(); current && current->identity() == (*opened)->identity()) {
    // Another thread opened it first. Unless that state is settled, its snapshot may be older than this one.
    if (current->identity().settled) return current;
  }
  node.current = *opened;
  return opened;
}

codec::Result<std::shared_ptr<const frame::FlatView>> Filesystem::view_of(
    std::shared_ptr<const frame::Container> container, const std::string& path) const {
  return frame::make_view(std::move(container), mount_.options.b2nd, NameMapper::has_array_suffix(path));
}

bool Filesystem::is_known_damaged(Node& node, const frame::FileVersion& identity) {
  codec::MutexLock lock(node.mutex);
  return node.known.damage && node.known.identity == identity;
}

codec::Result<std::shared_ptr<const FrameSnapshot>> Filesystem::open_snapshot(
    Node& node, const std::shared_ptr<const frame::Descriptor>& file) {
  const std::string path = node_files_.path_of(node.id);
  for (int attempt = 1;; ++attempt) {
    auto before = mount_.tree.identity(file->fd(), node.kind);
    if (!before) return codec::Failure(before.error());
    const auto record = std::make_shared<frame::ReadRecord>();
    auto container = frame::open_container(mount_.files, file, mount_.index_cache, mount_.tree.frame_begin(),
                                           mount_.options.old_bitshuffle, record);
    auto view = container ? view_of(std::move(*container), path)
                          : codec::Result<std::shared_ptr<const frame::FlatView>>(codec::Failure(container.error()));
    auto after = mount_.tree.identity(file->fd(), node.kind);
    if (!after) return codec::Failure(after.error());
    const bool steady = *before == *after;
    if (view && steady) {
      note_metalayer_damage((*view)->container(), path);
      return std::make_shared<const FrameSnapshot>(next_snapshot_.fetch_add(1, std::memory_order_relaxed), *after,
                                                   std::move(*view), path, mount_.read_path.cache(), record);
    }
    // A frame that another process appends to cannot be opened between two of its writes.
    const bool settled = steady && !changed_just_now(*after);
    if (attempt == kOpenAttempts || settled) {
      codec::Error error = view ? codec::stale("the file kept changing while it was opened").value() : view.error();
      if (error.path.empty()) error.path = path;
      // A file that keeps changing is not damaged; the caller retries. Between two writes of a program that appends, a
      // frame looks damaged: log only a state that has lasted.
      const bool lasts = steady && after->settled;
      if (error.kind != codec::ErrorKind::stale && lasts && !is_known_damaged(node, *after)) mount_.once.error(error);
      return codec::Failure(std::move(error));
    }
    std::this_thread::sleep_for(kOpenPause);
  }
}

void Filesystem::note_metalayer_damage(const frame::Container& container, const std::string& path) {
  for (const auto* damage : {&container.metalayer_damage(), &container.vlmetalayer_damage()}) {
    if (!*damage) continue;
    codec::Error error = **damage;
    error.path = path;
    mount_.once.error(error);
  }
}

codec::Result<std::shared_ptr<const FrameSnapshot>> Filesystem::current_snapshot(FileHandle& handle, Look kind) {
  std::shared_ptr<const FrameSnapshot> snapshot;
  {
    codec::MutexLock lock(handle.mutex);
    snapshot = handle.snapshot;
  }
  const auto file = handle.frame->file();
  const PageCacheState::Look look = handle.node->pages.begin_look();
  auto identity = mount_.tree.identity(file->fd(), handle.node->kind);
  if (!identity) return codec::Failure(identity.error());
  // Timestamps that have not settled may hide a change: each read reopens the file, but the check after it does not.
  const bool is_same = kind == Look::after_read && snapshot->identity() == *identity && !identity->settled;
  if (is_same || snapshot->identity().still_matches(*identity)) return snapshot;
  auto fresh = snapshot_of(*handle.node, file);
  if (!fresh) return fresh;
  // A state with unsettled timestamps is reopened even if it is unchanged: count changes only.
  if (snapshot->identity() != *identity && !handle.node->pages.is_own(*identity))
    mount_.statistics.backing_changes.fetch_add(1, std::memory_order_relaxed);
  // The kernel's pages are of the older state. This thread must not wait for the drop, because the pages of its own
  // request are locked until it answers.
  pages_.carry_out(handle.node->pages.seen_by_read(look, *identity), handle.node->id);
  codec::MutexLock lock(handle.mutex);
  handle.snapshot = *fresh;
  return fresh;
}

codec::Result<void> Filesystem::read_written(FileHandle& handle, WriteBack& writer, std::uint64_t at,
                                             std::size_t length, Reply& reply) {
  const auto note = [&](const std::shared_ptr<const FrameSnapshot>& stored) { handle.ahead->note(stored, at, length); };
  auto done = writer.read(at, length, reply, note);
  const bool is_refused = !done && ReadPermit::is_refusal(done.error());
  if (!done && !is_refused && done.error().kind != codec::ErrorKind::stale) handle.node->pages.note_damage();
  return done;
}

codec::Result<void> Filesystem::read_frame(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply) {
  ReadsUnderWay::Mark& mark = reply.mark();
  if (!handle.leaves_access_time && !handle.was_read.exchange(true))
    mount_.files.note_access(handle.frame->file()->fd());
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
    if (!snapshot || *snapshot == nullptr) snapshot = current_snapshot(handle);
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
    auto now = current_snapshot(handle, Look::after_read);
    if (now && (*now)->id() == (*snapshot)->id()) {
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

bool Filesystem::was_changed_here(const FileHandle& handle) const {
  const auto identity = mount_.tree.identity(handle.frame->file()->fd(), handle.node->kind);
  return identity && handle.node->pages.is_own(*identity);
}

codec::Failure Filesystem::kept_changing(const FrameSnapshot& snapshot) {
  codec::Failure failure = codec::stale("the file kept changing while it was read");
  failure.value().path = snapshot.path();
  mount_.once.error(failure.value());
  return failure;
}

codec::Result<std::uint64_t> Filesystem::seek_frame(FileHandle& handle, std::uint64_t from, bool hole) {
  codec::Result<std::shared_ptr<const FrameSnapshot>> snapshot = nullptr;
  if (const auto writer = handle.frame->write_back()) {
    // The holes of committed data are known. Data that cannot be committed counts as data without holes.
    auto done = writer->commit(frame::Durability::ordered);
    if (!done || writer->dirty_since_write()) {
      const std::uint64_t size = writer->size();
      if (from >= size) return codec::io_error(ENXIO, "lseek");
      return hole ? size : from;
    }
    snapshot = writer->snapshot();
  } else {
    snapshot = current_snapshot(handle);
  }
  if (!snapshot) return codec::Failure(snapshot.error());
  const std::uint64_t size = (*snapshot)->view().size();
  if (from >= size) return codec::io_error(ENXIO, "lseek");
  auto found = (*snapshot)->view().seek(frame::FlatOffset{from}, hole);
  if (!found) return codec::Failure(found.error());
  if (!hole && found->value >= size) return codec::io_error(ENXIO, "lseek");
  return found->value;
}

}  // namespace cframefs::fs
