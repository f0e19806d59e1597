#include "fs/frames/frame_writers.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "fs/util/log.h"
#include "fs/util/memory_limits.h"
#include "fs/util/no_memory.h"
#include "fs/write/commit_pause.h"
#include "fs/write/frame_defaults.h"
#include "fs/write/mount_changes.h"

namespace cframefs::fs {
namespace {

// Attempts to open a frame for reading while commits replace the file.
constexpr int kShareAttempts = 20;
// Attempts to open a frame for writing while it is being renamed.
constexpr int kWriterAttempts = 5;

}  // namespace

FrameWriters::FrameWriters(MountContext& mount, NodeFiles& node_files, KernelPages& pages, FrameStates& states)
    : mount_(mount),
      node_files_(node_files),
      pages_(pages),
      states_(states),
      encoders_(mount.workers, ahead_threads(mount.options), mount.statistics.writing) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  };
  write_back_.checksums = mount.options.new_frames.checksums;
  write_back_.interval = milliseconds(mount.options.commit_interval);
  write_back_.lock_timeout = milliseconds(mount.options.lock_timeout);
  write_back_.dirty_limit = mount.options.dirty_limit.value_or(default_dirty_limit(mount.memory));
}

void FrameWriters::start() {
  write_back_.sparse_registry->defer_removals([this] { flusher_.note_work(); });
  flusher_.start();
}

void FrameWriters::stop() {
  flusher_.stop();
  flusher_.commit_all(
      [this](WriteBack& file, const codec::Error& reason) { drop_rest(file, reason, [] { return true; }); });
}

codec::Result<std::shared_ptr<OpenFrame>> FrameWriters::share_frame(Node& node,
                                                                    std::shared_ptr<const frame::Descriptor> file) {
  for (int attempt = 1;; ++attempt) {
    // A writer knows the file, also while a commit replaces it, and after it has lost its name. A stale writer stays
    // with the programs that have it open; others get a new OpenFrame.
    std::shared_ptr<OpenFrame> frame = open_frame_of(node);
    std::shared_ptr<OpenFrame> stale;
    if (const auto writer = frame ? frame->write_back() : nullptr) {
      static_cast<void>(writer->refresh());
      if (!writer->status().is_stale) return frame;
      if (frame->write_back() != writer && attempt < kShareAttempts) continue;  // it has been closed since
      stale = frame;
    }
    // O_NOATIME: reading the header is not an access by the program.
    auto opened = file ? codec::Result<NodeFiles::SharedFile>(std::exchange(file, nullptr))
                       : node_files_.open_with_room([&] { return node_files_.open_file(node, O_RDONLY | O_NOATIME); });
    if (!opened && opened.error().sys == EPERM) opened = node_files_.open_file(node, O_RDONLY);
    if (!opened) {
      // A commit may be replacing the file.
      const bool is_committed = opened.error().kind == codec::ErrorKind::stale && frame;
      if (is_committed && attempt < kShareAttempts) continue;
      return codec::Failure(opened.error());
    }
    codec::MutexLock lock(node.mutex);
    frame = node.open_frame.lock();
    if (frame == stale) frame.reset();
    if (frame && frame->write_back()) return frame;
    if (frame) {
      const auto status = mount_.files.status((*opened)->handle());
      if (!status) return codec::Failure(status.error());
      const auto shared = mount_.files.status(frame->file()->handle());
      if (shared && shared->st_ino == status->st_ino && shared->st_dev == status->st_dev) return frame;
    }
    frame = std::make_shared<OpenFrame>(std::move(*opened));
    node.open_frame = frame;
    return frame;
  }
}

codec::Result<std::shared_ptr<WriteBack>> FrameWriters::start_writing(Node& node,
                                                                      const std::shared_ptr<OpenFrame>& frame,
                                                                      const FrameOrigin& origin) {
  if (auto writable = mount_.check_writable("open"); !writable) return codec::Failure(writable.error());
  // Opening reads the frame and may wait for its lock: only writers of the same frame wait for that.
  codec::MutexLock opening(frame->opening);
  if (std::shared_ptr<WriteBack> writer = frame->add_writer()) {
    // Its data may have waited for a commit since the last writer left.
    if (frame->is_last_writer()) static_cast<void>(writer->open_again());
    return writer;
  }
  for (int attempt = 1;; ++attempt) {
    auto place = place_of_frame(node);
    if (!place) return codec::Failure(place.error());
    const std::string opened_at = place->path;
    auto writer = open_writer(node, frame, origin, std::move(*place));
    if (!writer) {
      // The frame may have been renamed before it was opened by its name.
      const auto now = place_of_frame(node);
      if (now && now->path != opened_at && attempt < kWriterAttempts) continue;
      return codec::Failure(writer.error());
    }
    if (auto begun = begin_writing(node, *frame, *writer, opened_at); !begun) return codec::Failure(begun.error());
    flusher_.add(*writer);
    // Wait for a change of attributes that began before it could find this writer, then take over the new state.
    { codec::MutexLock own(node.change_mutex); }
    static_cast<void>((*writer)->refresh());
    return writer;
  }
}

/// Forwards to the writers. Does nothing after a commit for a node or an open frame that is gone.
class FrameWriters::FrameHost final : public WriteBackHost {
 public:
  FrameHost(FrameWriters& writers, const Node& node, const std::shared_ptr<OpenFrame>& frame)
      : writers_(writers), node_(writers.mount_.nodes.find(node.id)), frame_(frame) {}

  std::uint64_t next_snapshot() override { return writers_.states_.next_snapshot(); }
  codec::Result<std::shared_ptr<const frame::FlatView>> view_of(std::shared_ptr<const frame::Container> container,
                                                                const std::string& path) override {
    return writers_.states_.view_of(std::move(container), path);
  }
  frame::NewFrame choose_parameters(codec::ByteView first_chunk) override {
    return auto_params(writers_.mount_.options.new_frames, first_chunk);
  }
  bool lacks_entry(const std::string& name) override {
    const auto node = node_.lock();
    // A rename of the frame waits for the commit that asks, so that this is the frame's directory.
    const auto place = node ? writers_.mount_.nodes.place_of(node->id) : no_such_node();
    return place && writers_.mount_.watcher.lacks(place->parent, name);
  }
  void committed(const CommittedVersion& version) override {
    const auto node = node_.lock();
    const auto frame = frame_.lock();
    if (node && frame) writers_.committed(*node, *frame, version);
  }
  void became_dirty() override { writers_.flusher_.note_work(); }
  void much_is_dirty() override { writers_.flusher_.wake(); }
  void make_room(std::uint64_t most) override { writers_.flusher_.commit_largest(most); }

 private:
  FrameWriters& writers_;
  const std::weak_ptr<Node> node_;
  const std::weak_ptr<OpenFrame> frame_;
};

codec::Result<std::shared_ptr<WriteBack>> FrameWriters::open_writer(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                                    const FrameOrigin& origin, FrameLocation place) {
  mount_.nodes.begin_writing();
  const auto is_blank = [&] {
    const auto status = mount_.files.status(frame->file()->handle());
    return status && S_ISREG(status->st_mode) && status->st_size == 0;
  };
  const bool may_become_array = mount_.options.b2nd == ArrayView::npy && NameMapper::has_array_suffix(place.name);
  FrameToWrite to_write{std::move(place), frame->file()};
  to_write.fresh = origin.is_new;
  to_write.is_open_for_writing = origin.file != nullptr && origin.file == to_write.frame;
  if (to_write.is_open_for_writing) to_write.written = origin.written;
  to_write.has_placeholders = origin.is_new || is_blank();
  to_write.may_become_array = may_become_array;
  auto opened = WriteBack::open(write_back_, std::make_unique<FrameHost>(*this, node, frame), to_write);
  if (opened || opened.error().kind != codec::ErrorKind::unsupported) return opened;
  return codec::io_error(EROFS, "open", opened.error().reason);
}

codec::Result<void> FrameWriters::begin_writing(Node& node, OpenFrame& frame, const std::shared_ptr<WriteBack>& writer,
                                                const std::string& opened_at) {
  codec::MutexLock lock(mount_.changes);  // no rename until the frame has the writer
  auto place = place_of_frame(node);
  if (!place) return codec::Failure(place.error());
  if (place->path != opened_at) CommitPause(writer).moved(std::move(*place));
  // Pin the node: the kernel may forget it while data waits for a commit, and the next look-up must find it.
  const auto unpin = [this, id = node.id](const Node* /*pinned*/) { node_files_.forget(id, 1); };
  const auto pinned = mount_.nodes.enter_again(node.id);
  frame.first_writer(writer, pinned ? std::shared_ptr<const Node>(pinned.get(), unpin) : nullptr);
  return {};
}

void FrameWriters::stop_writing(NodeId node, const std::shared_ptr<OpenFrame>& frame) {
  const std::shared_ptr<WriteBack> writer = frame->write_back();
  if (!writer) return;
  // flush() has reported the error to close(2), unless a program wrote later through a map.
  const auto done = or_no_memory([&] { return writer->commit(frame::Durability::ordered); });
  if (done && frame->is_last_writer()) try_in_memory([&] { MountChanges(*writer).compact_if_wasteful(); });
  codec::MutexLock lock(frame->leaving);
  frame->remove_writer();
  if (frame->has_writers() || !waits_or_ends(node, *frame, *writer, done)) return;
  if (!done) {
    try_in_memory([&] {
      const std::string bytes = std::to_string(writer->uncommitted().bytes);
      log_warning(writer->snapshot()->path() + ": " + bytes +
                  " uncommitted bytes wait for a commit: " + done.error().reason);
    });
  }
  // Otherwise the data would be lost with the last reference to the writer.
  until_there_is_memory([&] {
    flusher_.keep(writer, [this, node, frame, was_logged = !done](const codec::Result<void>& attempt) {
      waited(node, *frame, was_logged, attempt);
    });
  });
}

void FrameWriters::waited(NodeId node, OpenFrame& frame, bool was_logged, const codec::Result<void>& done) {
  const std::shared_ptr<WriteBack> writer = frame.write_back();
  if (!writer) return;
  codec::MutexLock lock(frame.leaving);
  // If there is a new writer, the close of that writer decides.
  if (!frame.has_writers() && waits_or_ends(node, frame, *writer, done)) return;
  if (done && was_logged) log_warning(writer->snapshot()->path() + ": the data that waited for a commit is committed");
  flusher_.let_go(writer);
}

bool FrameWriters::waits_or_ends(NodeId node, OpenFrame& frame, WriteBack& writer, const codec::Result<void>& done) {
  const auto whole = done ? writer.check_whole() : codec::Result<void>();
  const bool is_missed = done || writer.uncommitted().has_name;
  if (whole && is_missed && writer.status().is_waiting) return true;
  if (!done || !whole) {
    // Not if a new writer has come: its close decides about its data.
    const auto is_left = [&frame] { return !frame.has_writers(); };
    if (!drop_rest(writer, done ? whole.error() : done.error(), is_left)) return false;
    // Programs now see the state on disk, but the kernel has pages of the dropped data.
    if (const auto known = mount_.nodes.find(node)) pages_.carry_out(known->pages.discarded(), node);
  }
  if (frame.end_writing()) writer.close();
  return false;
}

bool FrameWriters::drop_rest(WriteBack& writer, const codec::Error& reason, const std::function<bool()>& may) {
  const auto rest = writer.uncommitted();
  const auto dropped = writer.discard(may);
  if (!dropped) return false;
  if (!*dropped || !rest.has_name) return true;
  mount_.statistics.writing.bytes_lost.fetch_add(rest.bytes, std::memory_order_relaxed);
  try_in_memory([&] {
    log_error(
        fmt::format("{}: {} uncommitted bytes are lost: {}", writer.snapshot()->path(), rest.bytes, reason.reason));
  });
  return true;
}

codec::Result<void> FrameWriters::with_temporary_writer(Node& node, const Work& work) {
  auto frame = share_frame(node);
  if (!frame) return codec::Failure(frame.error());
  auto writer = start_writing(node, *frame);
  if (!writer) return codec::Failure(writer.error());
  const bool was_clean = !(*writer)->status().is_waiting;
  auto done = work(**writer);
  if (done) done = (*writer)->commit(frame::Durability::ordered, CommitExtent::all, CommitWait::lock);
  // No later write completes an incomplete row.
  if (done && (*frame)->is_last_writer()) done = (*writer)->check_whole(&work);
  // A change that fails must not be committed later.
  if (!done && was_clean) static_cast<void>((*writer)->discard([&frame] { return (*frame)->is_last_writer(); }));
  stop_writing(node.id, *frame);
  return done;
}

void FrameWriters::committed(Node& node, OpenFrame& frame, const CommittedVersion& what) {
  const bool was_known = what.before != frame::FileVersion{};
  // The identity of a sparse frame is its directory, which stays when a commit replaces the index.
  const bool known_by_file = node.kind != EntryKind::sparse_frame;
  if (was_known && known_by_file && what.before.inode != what.after.inode)
    mount_.nodes.change_inode(node, what.after.inode);
  frame.committed(known_by_file ? what.file : frame.file(), what.snapshot);
  {
    codec::MutexLock lock(node.mutex);
    node.current = what.snapshot;
  }
  if (!was_known) return;
  const PageCacheState::Drop drop =
      what.gave_up ? node.pages.discarded() : node.pages.committed(what.before, what.after, what.own);
  pages_.carry_out(drop, node.id);
  if (drop == PageCacheState::Drop::nothing && what.preamble_changed) pages_.drop_head(node, what.snapshot->view());
}

codec::Result<FrameLocation> FrameWriters::place_of_frame(const Node& node) {
  if (node.id == kRootNode)
    return FrameLocation{mount_.tree.root(), mount_.tree.single_name(), mount_.tree.single_name()};
  auto place = mount_.nodes.place_of(node.id);
  if (!place) return codec::Failure(place.error());
  auto directory = mount_.directories.open(place->parent);
  if (!directory) return codec::Failure(directory.error());
  return frame_place(*directory, {place->parent, std::move(place->name)});
}

FrameLocation FrameWriters::frame_place(const HeldDirectory& directory, const DirEntry& place) const {
  return {directory, place.name, node_files_.path_in(place.directory, place.name)};
}

/// Returns the handle as the author of a change; nullptr with writeback=on, because the kernel then writes pages
/// through any handle.
Changer FrameWriters::changer(const FileHandle& handle) const {
  return mount_.options.kernel_cache.writeback ? nullptr : &handle;
}

}  // namespace cframefs::fs
