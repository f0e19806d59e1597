// Locks, and other frames that take this one's place: an empty one, which is made again when its first data is known,
// and one that is written beside it.
#include <utility>

#include "frame/frame_beside.h"
#include "frame/frame_writer-inl.h"

namespace cframefs::frame {

void FrameWriter::wait_for_locks(std::chrono::milliseconds patience, bool past_frame) {
  options_.lock_patience = patience;
  past_frame_lock_ = past_frame;
}

Result<AdvisoryLock> FrameWriter::lock() {
  AdvisoryLock::Target target{dir_, {}, {}, file_->fd()};
  if (has_name_) {
    target.side_car = side_car_path(path_, folder_ != nullptr);
    target.guard = guard_path(path_);
  }
  return AdvisoryLock::acquire(files_, target,
                               {options_.lock_patience, options_.alone, past_frame_lock_, options_.stays_open});
}

Result<void> FrameWriter::replace_empty(const NewFrame& wanted) {
  if (failed_) return codec::io_error(EIO, "commit after a sync that failed");
  if (parameters().nbytes != 0 || !has_name_) return codec::invalid("only an empty frame is replaced");
  abandon();
  const std::shared_ptr<const Descriptor> locked = file_;  // open for as long as it is
  const auto held = lock();
  if (!held) return codec::Failure(held.error());
  if (auto same = check_unchanged(); !same) return same;
  auto replacement = ReplacementFile::create(files_, entry_dir(), entry_name(), file_->fd());
  if (!replacement) return codec::Failure(replacement.error());
  std::vector<std::uint8_t> image = empty_frame(wanted);
  if (folder_) image[layout::kFrameTypeAt] = header_[layout::kFrameTypeAt];
  Next next;
  next.file = replacement->file();
  next.header.assign(image.begin(), image.begin() + codec::load_be<std::int32_t>(&image[layout::kHeaderLengthAt]));
  if (auto put = files_.pwrite(replacement->fd(), image, FileOffset{0}); !put) return put;
  if (auto opened = open_next(next); !opened) return opened;
  if (ever_synced_) {
    if (auto synced = replacement->sync(); !synced) return synced;
  }
  if (auto same = check_unchanged(); !same) return same;
  if (auto published = replacement->publish(); !published) return published;
  adopt(std::move(next));
  if (!ever_synced_) return {};
  // What is committed into it next may be acknowledged as durable: its name must be so before.
  auto synced = sync_folder_of(files_, entry_dir(), entry_name());
  if (!synced) failed_ = true;
  return synced;
}

Result<std::unique_ptr<FrameWriter::Beside>> FrameWriter::make_beside(const NewFrame& wanted) {
  if (folder_ || !has_name_) return codec::unsupported("only a contiguous frame with a name is replaced");
  auto held = lock();
  if (!held) return codec::Failure(held.error());
  if (auto same = check_unchanged(); !same) return codec::Failure(same.error());
  auto file = ReplacementFile::create(files_, entry_dir(), entry_name(), file_->fd());
  if (!file) return codec::Failure(file.error());
  if (auto put = files_.pwrite(file->fd(), empty_frame(wanted), FileOffset{0}); !put) {
    return codec::Failure(put.error());
  }
  auto beside = std::make_unique<Beside>(Beside{file_, std::move(*held), std::move(*file), nullptr});
  WriterOptions options = options_;
  options.fresh = !ever_synced_;
  auto writer = open(files_, dir_, beside->file.temporary_name(), cache_, options);
  if (!writer) return codec::Failure(writer.error());
  beside->writer = std::move(*writer);
  return beside;
}

Result<void> FrameWriter::give_place_to(Beside& next) {
  if (ever_synced_) {
    if (auto synced = next.file.sync(); !synced) return synced;
  }
  if (auto same = check_unchanged(); !same) return same;
  // There is one where the environment asks for locking.
  static_cast<void>(files_.remove_at(dir_, side_car_path(next.file.temporary_name(), false), false));
  if (auto published = next.file.publish(); !published) return published;
  next.writer->moved(dir_, path_);
  return ever_synced_ ? sync_folder_of(files_, entry_dir(), entry_name()) : Result<void>();
}

}  // namespace cframefs::frame
