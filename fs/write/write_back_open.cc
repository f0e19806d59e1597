// The disk's side of a write-back: opening the frame, and following changes by other programs.
#include <cerrno>
#include <limits>
#include <utility>

#include "frame/cframe/sparse_frame.h"
#include "frame/io/system_version.h"
#include "frame/write/frame_replacement.h"
#include "fs/util/no_memory.h"
#include "fs/write/lock_patience.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// Chunk size of a frame that has none because it was always empty.
constexpr std::uint64_t kChunkSize = std::uint64_t{1} << 20;

}  // namespace

WriteBack::WriteBack(WriteBackShared& shared, std::unique_ptr<WriteBackHost> host, const FrameToWrite& frame)
    : shared_(shared),
      host_(std::move(host)),
      may_become_array_(frame.may_become_array),
      place_(frame.place),
      parameters_from_(frame.has_placeholders ? Parameters::chosen_by_host : Parameters::fixed) {}

WriteBack::~WriteBack() {
  count_dead_bytes(0);
}

codec::Result<std::shared_ptr<WriteBack>> WriteBack::open(WriteBackShared& shared, std::unique_ptr<WriteBackHost> host,
                                                          const FrameToWrite& frame) {
  const std::shared_ptr<WriteBack> file(new WriteBack(shared, std::move(host), frame));
  const std::lock_guard commits(file->commit_mutex_);
  for (codec::ByteView image = frame.written.image;; image = {}) {
    if (auto opened = file->open_writer(frame.frame, frame.fresh, frame.is_open_for_writing, image); !opened)
      return codec::Failure(opened.error());
    codec::MutexLock lock(file->mutex_);
    const frame::FileVersion* known = image.empty() ? nullptr : &frame.written.version;
    if (auto adopted = file->adopt_state(true, known); !adopted) return codec::Failure(adopted.error());
    if (!image.empty() && !file->has_same_content(frame.written.version)) {
      // Another program has changed the file since: read it. The first writer would release the lock of the second.
      file->writer_.reset();
      file->identity_ = {};
      continue;
    }
    file->dirty_ = DirtyLayer(file->layer_unit(), file->size_below());
    if (file->may_become_array_ && !file->array_ && file->dirty_.size() == 0) file->head_.truncated(true);
    return file;
  }
}

std::uint64_t WriteBack::layer_unit() const {
  if (array_ && array_->is_flat()) return ArrayChanges::kPieceBytes;
  return writer_->pending().chunksize() > 0 ? static_cast<std::uint64_t>(writer_->pending().chunksize()) : kChunkSize;
}

codec::Result<void> WriteBack::open_writer(const std::shared_ptr<const frame::Descriptor>& frame, bool fresh,
                                           bool is_open_for_writing, codec::ByteView image) {
  frame::WriterOptions options;
  options.fresh = fresh;
  options.stays_open = true;
  // Not for a new file, and not when a writer that has the lock opens the frame again.
  options.waits_for_writers = image.empty() && !writer_;
  options.lock_timeout = std::chrono::milliseconds(0);
  options.checksums = shared_.checksums;
  options.sparse_registry = shared_.sparse_registry;
  options.lacks_entry = [this](const std::string& name) { return host_->lacks_entry(name); };
  const auto open = [&] {
    const frame::OpenFile directory = place_.directory->handle();
    return is_open_for_writing
               ? frame::FrameWriter::open_shared(shared_.files, directory, place_.name, frame, shared_.index_cache,
                                                 options, image)
               : frame::FrameWriter::open(shared_.files, directory, place_.name, frame, shared_.index_cache, options);
  };
  auto writer = open();
  if (!writer && writer.error().sys == EBUSY) {
    const LockPatience patience(shared_.waits_for_lock, shared_.lock_timeout);
    options.lock_timeout = patience.length();
    writer = open();
  }
  if (!writer && writer.error().sys == EBUSY) {
    // What is written waits for the lock (semantics.md C4).
    options.waits_for_writers = false;
    writer = open();
  }
  if (!writer && writer.error().sys == EACCES) {
    // The program that creates a file may write it even if its mode is read-only, because it has the file open.
    auto status = shared_.files.status(frame->handle());
    if (!status) return codec::Failure(status.error());
    const mode_t mode = status->st_mode & 07777U;
    if (shared_.files.change_mode(frame->handle(), mode | S_IRUSR | S_IWUSR)) {
      writer = open();
      static_cast<void>(shared_.files.change_mode(frame->handle(), mode));
    }
  }
  if (!writer) {
    codec::Error error = writer.error();
    if (error.path.empty()) error.path = place_.path;
    return codec::Failure(std::move(error));
  }
  const frame::FrameParameters& parameters = (*writer)->parameters();
  if ((*writer)->pending().chunksize() <= 0 && parameters_from_ == Parameters::fixed) {
    auto array = frame::GrowableArray::of(*(*writer)->container());
    if (!array) return codec::Failure(array.error());
    const std::uint64_t chunksize = *array && (*array)->can_change() ? (*array)->chunk_bytes() : kChunkSize;
    defaults_ = {frame::encode_parameters(parameters), static_cast<std::int32_t>(chunksize), {}};
    parameters_from_ = Parameters::defaults;
  }
  writer_ = std::move(*writer);
  watch_overwrites();
  encode_ = frame::encode_parameters(parameters);
  return {};
}

void WriteBack::close() {
  const std::lock_guard commits(commit_mutex_);
  {
    // From here on this object would take the next writer's commits for another program's changes.
    codec::MutexLock lock(mutex_);
    state_.enter(Standing::closed);
  }
  writer_->stop_staying_open();
}

codec::Result<frame::FileVersion> WriteBack::identity_on_disk() const {
  const bool is_sparse = entry_ != file_;
  // Each commit replaces the index of a sparse frame, those of other programs, too. Once it is removed, file_ remains.
  auto status = is_sparse ? shared_.files.status_at(entry_->handle(), frame::kSparseIndexName)
                          : shared_.files.status(file_->handle());
  if (!status && is_sparse && status.error().sys == ENOENT) status = shared_.files.status(file_->handle());
  if (!status) return codec::Failure(status.error());
  return frame::version_of(*status);
}

codec::Result<frame::FileVersion> WriteBack::own_version(const frame::Descriptor& file,
                                                         const frame::FileVersion* known) const {
  const auto status = shared_.files.status(file.handle());
  if (!status) return codec::Failure(status.error());
  frame::FileVersion version = frame::version_of(*status);
  // A failed writer does not know what its last attempt has left of the header.
  if (is_failed(writer_->state()) || (known != nullptr && version.has_content_of(*known))) return version;
  // Look at the header after the version: a later change gives the file another version.
  const auto same = writer_->check_header();
  if (!same && same.error().kind == codec::ErrorKind::stale) version.size = std::numeric_limits<std::uint64_t>::max();
  return version;
}

codec::Result<void> WriteBack::adopt_state(bool own, const frame::FileVersion* known) {
  std::shared_ptr<const frame::Descriptor> file = writer_->file();
  const auto version = own_version(*file, known);
  if (!version) return codec::Failure(version.error());
  const frame::FileVersion identity = *version;
  auto view = host_->view_of(writer_->container(), place_.path);
  if (!view) return codec::Failure(view.error());
  auto snapshot = std::make_shared<const FrameSnapshot>(host_->next_snapshot(), identity, std::move(*view), place_.path,
                                                        shared_.read_path.cache());
  auto array = ArrayChanges::of(*snapshot);
  if (!array) return codec::Failure(array.error());
  const codec::ByteView head = snapshot->view().head();
  const codec::ByteView old_head = snapshot_ ? snapshot_->view().head() : head;
  const bool same_head = std::equal(head.begin(), head.end(), old_head.begin(), old_head.end());
  // Whatever may lack memory comes before the first change of this object: a caller may call again, and the host is
  // told what the version was before.
  host_->committed({snapshot, file, identity_, identity, own, !same_head});
  if (!own) ++foreign_states_;
  file_ = std::move(file);
  entry_ = writer_->entry();
  identity_ = identity;
  if (new_array_ != NewArray::in_dirty) array_ = std::move(*array);
  if (array_) {
    early_parameters_.reset();
  } else if (parameters_from_ == Parameters::fixed) {
    early_parameters_ = encode_;
  }
  snapshot_ = std::move(snapshot);
  return {};
}

codec::Result<void> WriteBack::adopt_in_memory(bool own) {
  codec::Result<void> done;
  until_there_is_memory([&]() NO_THREAD_SAFETY_ANALYSIS { done = adopt_state(own); });
  return done;
}

codec::Result<void> WriteBack::reload() {
  const std::lock_guard commits(commit_mutex_);
  return reload_held();
}

codec::Result<void> WriteBack::reload_held() {
  {
    codec::MutexLock lock(mutex_);
    auto disk = identity_on_disk();
    if (!disk) return codec::Failure(disk.error());
    if (*disk == identity_ || !state_.is_usable()) return check_usable();
    if (has_same_content(*disk)) {
      note_identity(*disk);
      return {};
    }
    auto named = has_name_ ? shared_.files.status_at(place_.directory->handle(), place_.name)
                           : codec::Result<struct stat>(codec::io_error(ENOENT, "stat"));
    const auto ours = shared_.files.status(entry_->handle());
    const bool same_file = named && ours && named->st_ino == ours->st_ino && named->st_dev == ours->st_dev;
    if (!same_file || is_dirty()) {
      state_.lose_track();
      return check_usable();
    }
  }
  if (auto opened = open_writer(writer_->entry(), false); !opened) return opened;
  codec::MutexLock lock(mutex_);
  if (is_dirty()) {
    state_.lose_track();
    return check_usable();
  }
  if (auto adopted = adopt_in_memory(false); !adopted) return adopted;
  dirty_ = DirtyLayer(layer_unit(), size_below());
  return {};
}

codec::Result<void> WriteBack::open_again() {
  const std::unique_lock commits(commit_mutex_, std::try_to_lock);
  return commits.owns_lock() ? open_failed_again() : codec::io_error(EAGAIN, "open");
}

/// REQUIRES: commit_mutex_.
codec::Result<void> WriteBack::open_failed_again() {
  if (!is_failed(writer_->state()) || !has_name_) return {};
  {
    // The frame must be in the version of the last commit.
    codec::MutexLock lock(mutex_);
    if (auto usable = check_usable(); !usable) return usable;
    const auto disk = identity_on_disk();
    if (!disk) return codec::Failure(disk.error());
    if (!has_same_content(*disk)) state_.lose_track();
    if (auto usable = check_usable(); !usable) return usable;
  }
  if (auto opened = open_writer(writer_->entry(), is_fresh(writer_->state())); !opened) return opened;
  codec::MutexLock lock(mutex_);
  return adopt_in_memory(true);
}

}  // namespace cframefs::fs
