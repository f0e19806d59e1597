// Writing frames: their writers, the node after a commit, and the operations on open files, which go to the frame's
// WriteBack or to the passed-through file.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/xattr.h>

#include "frame/io/free_name.h"
#include "frame/open/layer_attributes.h"
#include "frame/store/store_files.h"
#include "fs/filesystem.h"
#include "fs/util/log.h"
#include "fs/util/no_memory.h"
#include "fs/write/frame_defaults.h"

namespace cframefs::fs {
namespace {

// Writes at or beyond this offset share no page, and no large folio, with the header of an array.
constexpr std::uint64_t kFarFromHead = std::uint64_t{8} << 20;
// Attempts to open a frame for writing while it is being renamed.
constexpr int kWriterAttempts = 5;

}  // namespace

std::shared_ptr<Node> Filesystem::committing_at(const DirEntry& place) const {
  for (const auto& node : mount_.nodes.at_place(place.directory, place.name)) {
    const auto writer = write_back_of(*node);
    if (writer && writer->is_committing()) return node;
  }
  return nullptr;
}

std::shared_ptr<WriteBack> Filesystem::write_back_at(const DirEntry& place) const {
  for (const auto& node : mount_.nodes.at_place(place.directory, place.name)) {
    if (auto writer = write_back_of(*node)) return writer;
  }
  return nullptr;
}

std::shared_ptr<WriteBack> Filesystem::committing_entry(NodeId parent, const std::string& name) const {
  // Resolve the name by nodes that have a writer only, without disk access.
  const auto kind_of = [&](const std::string& stored) -> codec::Result<EntryKind> {
    const auto nodes = mount_.nodes.at_place(parent, stored);
    const auto written =
        std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return write_back_of(*node); });
    return written == nodes.end() ? EntryKind::none : (*written)->kind;
  };
  const auto stored = mount_.tree.rules().resolve_shown(name, kind_of);
  auto writer = stored ? write_back_at({parent, stored->name}) : nullptr;
  return writer && writer->has_commit_under_way() ? writer : nullptr;
}

FrameLocation Filesystem::frame_place(const HeldDirectory& directory, const DirEntry& place) const {
  return {directory, place.name, node_files_.path_in(place.directory, place.name)};
}

WriteBack::Choose Filesystem::chooser() const {
  return [this](codec::ByteView first) { return auto_params(mount_.options, first); };
}

codec::Result<std::shared_ptr<WriteBack>> Filesystem::start_writing(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                                    const NewFile& made) {
  if (mount_.read_only) return codec::io_error(EROFS, "open");
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
    auto writer = open_writer(node, frame, made, std::move(*place));
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

codec::Result<std::shared_ptr<WriteBack>> Filesystem::open_writer(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                                  const NewFile& made, FrameLocation place) {
  const auto on_committed = [this, weak_node = std::weak_ptr<Node>(mount_.nodes.find(node.id)),
                             weak_frame = std::weak_ptr<OpenFrame>(frame)](const WriteBack::Committed& what) {
    const auto of_node = weak_node.lock();
    const auto of_frame = weak_frame.lock();
    if (of_node && of_frame) committed(*of_node, *of_frame, what);
  };
  WriteBack::Choose choose = made.choose;
  const auto status = mount_.files.status(frame->file()->fd());
  if (!choose && status && S_ISREG(status->st_mode) && status->st_size == 0) choose = chooser();
  auto opened =
      WriteBack::open(write_back_, std::move(place), frame->file(), made.fresh, std::move(choose), on_committed);
  if (opened || opened.error().kind != codec::ErrorKind::unsupported) return opened;
  mount_.once.error(opened.error());
  return codec::io_error(EROFS, "open");
}

codec::Result<void> Filesystem::begin_writing(Node& node, OpenFrame& frame, const std::shared_ptr<WriteBack>& writer,
                                              const std::string& opened_at) {
  codec::MutexLock lock(mount_.changes);  // no rename until the frame has the writer
  auto place = place_of_frame(node);
  if (!place) return codec::Failure(place.error());
  if (place->path != opened_at) WriteBack::Pause(writer).moved(std::move(*place));
  // Pin the node: the kernel may forget it while data waits for a commit, and the next look-up must find it.
  const auto unpin = [this, id = node.id](const Node* /*pinned*/) { node_files_.forget(id, 1); };
  const auto pinned = mount_.nodes.enter_again(node.id);
  frame.first_writer(writer, pinned ? std::shared_ptr<const Node>(pinned.get(), unpin) : nullptr);
  return {};
}

void Filesystem::stop_writing(NodeId node, const std::shared_ptr<OpenFrame>& frame) {
  const std::shared_ptr<WriteBack> writer = frame->write_back();
  if (!writer) return;
  // flush() has reported the error to close(2), unless a program wrote later through a map.
  const auto done = writer->commit(frame::Durability::ordered);
  if (done && frame->is_last_writer()) try_in_memory([&] { writer->compact_if_wasteful(); });
  codec::MutexLock lock(frame->leaving);
  frame->remove_writer();
  if (frame->has_writers() || !waits_or_ends(node, *frame, *writer, done)) return;
  if (!done) {
    const std::string bytes = std::to_string(writer->uncommitted().bytes);
    log_warning(writer->snapshot()->path() + ": " + bytes +
                " uncommitted bytes wait for a commit: " + done.error().reason);
  }
  flusher_.keep(writer, [this, node, frame, was_logged = !done](const codec::Result<void>& attempt) {
    waited(node, *frame, was_logged, attempt);
  });
}

void Filesystem::waited(NodeId node, OpenFrame& frame, bool was_logged, const codec::Result<void>& done) {
  const std::shared_ptr<WriteBack> writer = frame.write_back();
  if (!writer) return;
  codec::MutexLock lock(frame.leaving);
  // If there is a new writer, the close of that writer decides.
  if (!frame.has_writers() && waits_or_ends(node, frame, *writer, done)) return;
  if (done && was_logged) log_warning(writer->snapshot()->path() + ": the data that waited for a commit is committed");
  flusher_.let_go(writer);
}

bool Filesystem::waits_or_ends(NodeId node, OpenFrame& frame, WriteBack& writer, const codec::Result<void>& done) {
  const auto whole = done ? writer.check_whole() : codec::Result<void>();
  const bool is_missed = done || writer.uncommitted().has_name;
  if (whole && is_missed && writer.is_waiting()) return true;
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

bool Filesystem::drop_rest(WriteBack& writer, const codec::Error& reason, const std::function<bool()>& may) {
  const auto rest = writer.uncommitted();
  const auto dropped = writer.discard(may);
  if (!dropped) return false;
  if (!*dropped || !rest.has_name) return true;
  mount_.statistics.bytes_lost.fetch_add(rest.bytes, std::memory_order_relaxed);
  log_error(writer.snapshot()->path() + ": " + std::to_string(rest.bytes) +
            " uncommitted bytes are lost: " + reason.reason);
  return true;
}

codec::Result<void> Filesystem::with_temporary_writer(Node& node, const Work& work) {
  auto frame = share_frame(node);
  if (!frame) return codec::Failure(frame.error());
  auto writer = start_writing(node, *frame, {});
  if (!writer) return codec::Failure(writer.error());
  const bool was_clean = !(*writer)->is_waiting();
  auto done = work(**writer);
  if (done) done = (*writer)->commit(frame::Durability::ordered, WriteBack::Extent::all, WriteBack::Wait::lock);
  // No later write completes an incomplete row.
  if (done && (*frame)->is_last_writer()) done = (*writer)->check_whole(&work);
  // A change that fails must not be committed later.
  if (!done && was_clean) static_cast<void>((*writer)->discard([&frame] { return (*frame)->is_last_writer(); }));
  stop_writing(node.id, *frame);
  return done;
}

void Filesystem::committed(Node& node, OpenFrame& frame, const WriteBack::Committed& what) {
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

codec::Result<FrameLocation> Filesystem::place_of_frame(const Node& node) {
  if (node.id == kRootNode)
    return FrameLocation{mount_.tree.root(), mount_.tree.single_name(), mount_.tree.single_name()};
  auto place = mount_.nodes.place_of(node.id);
  if (!place) return codec::Failure(place.error());
  auto directory = mount_.directories.open(place->parent);
  if (!directory) return codec::Failure(directory.error());
  return frame_place(*directory, {place->parent, std::move(place->name)});
}

codec::Result<struct stat> Filesystem::create_frame(const HeldDirectory& directory, const std::string& name,
                                                    mode_t mode) {
  const std::string temporary = temporary_name(NameMapper::suffix_of(name));
  constexpr mode_t kRights = 0777;
  auto fd = mount_.files.create_at(directory->fd(), temporary, O_WRONLY | O_EXCL, mode & kRights);
  if (!fd) return codec::Failure(fd.error());
  const frame::Descriptor file(mount_.files, *fd);
  auto done =
      mount_.files.pwrite(file.fd(), frame::empty_frame(placeholder_params(mount_.options)), frame::FileOffset{0});
  if (done && (mode & ~kRights) != 0) {
    // Set these bits after the write, which would have cleared them.
    const auto made = mount_.files.status(file.fd());
    done = made ? mount_.files.change_mode(file.fd(), (made->st_mode & kRights) | (mode & ~kRights))
                : codec::Failure(made.error());
  }
  // The frame gets its name once it is complete.
  if (done) done = frame::give_free_name(mount_.files, directory->fd(), temporary, name);
  if (done) return mount_.files.status(file.fd());
  static_cast<void>(mount_.files.remove_at(directory->fd(), temporary, false));
  return codec::Failure(done.error());
}

/// Returns the error of a failed create. stale if the name was taken: the kernel then looks it up, and checks whether
/// the caller may open that file.
codec::Failure Filesystem::not_created(const codec::Error& error, int flags) {
  const bool is_taken = error.sys == EEXIST && (flags & O_EXCL) == 0;
  return is_taken ? codec::stale("another file with this name was created") : codec::Failure(error);
}

codec::Result<Filesystem::NewEntry> Filesystem::create_entry(NodeId parent, const std::string& name, int flags,
                                                             mode_t mode, const Caller& caller, ChangePermit& permit) {
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  auto directory = directory_for_new(parent, name);
  if (!directory) return not_created(directory.error(), flags);
  NewEntry entry;
  entry.directory = std::move(*directory);
  entry.name = mount_.tree.rules().new_name(name);
  entry.is_frame = mount_.tree.rules().has_container_suffix(entry.name);
  // With names=keep, the suffix of an array or of another container format.
  if (entry.is_frame && !NameMapper::names_new_frame(entry.name)) return codec::io_error(EOPNOTSUPP, "create");
  mode = mode_for_new(entry.directory, mode & 07777U, caller);
  auto file = as_caller(caller, mode, [&]() NO_THREAD_SAFETY_ANALYSIS {
    return entry.is_frame ? create_frame(entry.directory, entry.name, mode)
                          : create_plain(entry.directory, entry.name, mode);
  });
  if (!file) return not_created(file.error(), flags);
  entry.status = *file;
  auto attributes = lookup(parent, name);
  if (!attributes) {
    take_back(entry);
    return codec::Failure(attributes.error());
  }
  entry.attributes = std::move(*attributes);
  return entry;
}

codec::Result<CreatedFile> Filesystem::create(NodeId parent, const std::string& name, int flags, mode_t mode,
                                              const Caller& caller, ChangePermit& permit) {
  auto entry = create_entry(parent, name, flags, mode, caller, permit);
  if (!entry) return codec::Failure(entry.error());
  auto opened = open_created(*entry, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
  if (opened) return CreatedFile{entry->attributes, std::move(*opened)};
  node_files_.forget(entry->attributes.node, 1);
  codec::MutexLock lock(mount_.changes);
  take_back(*entry);
  return codec::Failure(opened.error());
}

codec::Result<std::unique_ptr<FileHandle>> Filesystem::open_created(const NewEntry& entry, int flags) {
  auto handle = std::make_unique<FileHandle>();
  handle->node = mount_.nodes.find(entry.attributes.node);
  // Open only the created file: the kernel does not check the caller's rights to a file that has replaced it.
  if (!handle->node || !handle->node->is_at(entry.status)) return codec::stale("another file has replaced it");
  if (!entry.is_frame) return open(entry.attributes.node, flags);
  return open_frame(std::move(handle), flags, {true, chooser()});
}

void Filesystem::take_back(const NewEntry& entry) {
  const auto there = mount_.files.status_at(entry.directory->fd(), entry.name);
  if (!there || there->st_ino != entry.status.st_ino || there->st_dev != entry.status.st_dev) return;
  static_cast<void>(mount_.files.remove_at(entry.directory->fd(), entry.name, false));
}

/// Returns the handle as the author of a change; nullptr with writeback=on, because the kernel then writes pages
/// through any handle.
WriteBack::Changer Filesystem::changer(const FileHandle& handle) const {
  return mount_.options.writeback ? nullptr : &handle;
}

codec::Result<void> Filesystem::write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool from_page_cache,
                                      ChangePermit& permit) {
  if (!handle.writable) return codec::io_error(EBADF, "write");
  const bool append = handle.append && !from_page_cache && !mount_.options.writeback;
  if (!handle.frame) {
    if (auto begun = permit.begin(); !begun) return begun;
    return write_plain(handle, at, bytes, append);
  }
  const auto writer = handle.frame->write_back();
  if (from_page_cache) writer->wait_for_head(at);
  auto place = writer->write(append ? std::nullopt : std::optional(at), bytes, permit, changer(handle));
  if (!place) return codec::Failure(place.error());
  pages_.note_written(handle, at, *place, bytes.size());
  // The kernel keeps a page that is written in part locked until the reply; the header may share it with the first
  // rows.
  pages_.note_new_head(*handle.node, *writer, at >= kFarFromHead);
  return {};
}

codec::Result<void> Filesystem::allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length) {
  if (!handle.writable) return codec::io_error(EBADF, "fallocate");
  if (!handle.frame) return allocate_plain(handle, mode, at, length);
  const auto writer = handle.frame->write_back();
  auto done = writer->allocate(mode, at, length);
  if (done) pages_.note_new_head(*handle.node, *writer, true);
  return done;
}

codec::Result<void> Filesystem::flush(FileHandle& handle) {
  if (!handle.writable) return {};
  if (!handle.frame) return handle.file ? mount_.files.flush(handle.file->fd()) : codec::Result<void>();
  const auto writer = handle.frame->write_back();
  auto done = writer->commit(frame::Durability::ordered, WriteBack::Extent::all, WriteBack::Wait::lock);
  if (done) done = writer->check_whole(changer(handle));
  return done ? mount_.files.flush(handle.frame->file()->fd()) : done;
}

void Filesystem::release(std::unique_ptr<FileHandle> handle) {
  if (handle->frame && handle->writable) stop_writing(handle->node->id, handle->frame);
  pages_.leave(*handle);
}

codec::Result<void> Filesystem::sync(FileHandle& handle, bool data_only) {
  if (handle.file) return mount_.files.sync(handle.file->fd(), data_only);
  if (!handle.frame) return {};
  if (const auto writer = handle.frame->write_back()) {
    auto done = writer->commit(frame::Durability::durable, WriteBack::Extent::all, WriteBack::Wait::lock);
    return done ? writer->check_whole(changer(handle)) : done;
  }
  return mount_.files.sync(handle.frame->file()->fd(), data_only);
}

namespace {

/// Sets or removes one part of a long variable-length metalayer.
codec::Result<void> change_part(frame::FrameWriter& writer, const frame::LayerPart& part, const std::string* value,
                                int flags) {
  const auto container = writer.container();
  const std::vector<std::string> names = container->vlmetalayer_names();
  const bool has_layer = std::find(names.begin(), names.end(), part.layer) != names.end();
  const auto length = has_layer ? container->vlmetalayer_length(part.layer) : codec::Result<std::uint64_t>(0);
  if (!length) return codec::Failure(length.error());
  const auto without = frame::length_without(*length, part);
  if (without && (flags & XATTR_CREATE) != 0) return codec::io_error(EEXIST, "setxattr");
  if (!without && (flags & XATTR_REPLACE) != 0) return codec::io_error(ENODATA, "setxattr");
  // Succeed if the part is gone: removing an earlier part has removed it, too.
  if (value == nullptr && !without) return {};
  if (value == nullptr && *without == 0) return writer.remove_vlmetalayer(part.layer);
  if (*length > frame::kMaxLayerParts * frame::kLayerPart) return codec::io_error(E2BIG, "setxattr");
  auto content = has_layer ? container->vlmetalayer(part.layer) : std::vector<std::uint8_t>();
  if (!content) return codec::Failure(content.error());
  if (value == nullptr) {
    content->resize(*without);
  } else {
    const std::vector<std::uint8_t> bytes(value->begin(), value->end());
    content = frame::with_layer_part(std::move(*content), part, bytes);
    if (!content) return codec::Failure(content.error());
  }
  return writer.set_vlmetalayer(part.layer, *content);
}

}  // namespace

codec::Result<void> Filesystem::change_layer(Node& node, const std::string& name, const std::string* value, int flags,
                                             ChangePermit& permit) {
  if (const auto part = frame::layer_part_of(name)) {
    const auto change = [&](frame::FrameWriter& writer) { return change_part(writer, *part, value, flags); };
    return with_temporary_writer(node, [&](WriteBack& file) { return file.commit_metadata(change, permit); });
  }
  const bool variable = name.starts_with(frame::kVlmetaAttribute);
  if (!variable && (!name.starts_with(frame::kMetaAttribute) || value == nullptr))
    return codec::io_error(EPERM, "setxattr");
  const std::string layer = name.substr(variable ? frame::kVlmetaAttribute.size() : frame::kMetaAttribute.size());
  const auto change = [&](frame::FrameWriter& writer) -> codec::Result<void> {
    const auto container = writer.container();
    bool exists = false;
    std::size_t length = 0;
    if (variable) {
      for (const std::string& known : container->vlmetalayer_names())
        exists = exists || known == layer;
    } else {
      for (const frame::MetalayerPlace& known : container->metalayer_places()) {
        if (known.name != layer) continue;
        exists = true;
        length = known.length;
      }
    }
    if (exists && (flags & XATTR_CREATE) != 0) return codec::io_error(EEXIST, "setxattr");
    if (!exists && (value == nullptr || !variable || (flags & XATTR_REPLACE) != 0)) {
      return codec::io_error(ENODATA, "setxattr");
    }
    if (!variable && (layer == "b2nd" || layer == "caterva")) {
      return codec::invalid("metalayer '" + layer + "' cannot be set: writes to the array change its shape");
    }
    if (value == nullptr) return writer.remove_vlmetalayer(layer);
    const std::vector<std::uint8_t> content(value->begin(), value->end());
    if (variable) return writer.set_vlmetalayer(layer, content);
    // Another length would move everything behind the metalayer.
    if (content.size() != length) {
      return codec::invalid("fixed metalayer '" + layer + "' has " + std::to_string(length) + " bytes, not " +
                            std::to_string(content.size()) + ", and its length cannot change");
    }
    return writer.set_metalayer(layer, content);
  };
  return with_temporary_writer(node, [&](WriteBack& file) { return file.commit_metadata(change, permit); });
}

}  // namespace cframefs::fs
