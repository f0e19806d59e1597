// FrameWriter: locks and checks for foreign changes; and FrameReplacement.
#include <cerrno>
#include <utility>

#include "frame/write/frame_replacement.h"
#include "frame/write/frame_writer-inl.h"

namespace cframefs::frame {

using codec::Failure;
using codec::stale;

void FrameWriter::wait_for_locks(std::chrono::milliseconds patience, bool past_frame) {
  options_.lock_timeout = patience;
  past_frame_lock_ = past_frame;
}

Result<AdvisoryLock> FrameWriter::lock() {
  AdvisoryLock::Target target{entry_dir(), {}, {}, file_->handle()};
  if (has_name_) {
    target.side_car = directory_ ? kSparseSideCar : side_car_path(path_);
    target.guard = guard_path(path_);
    target.lacks_side_car = !directory_ && options_.lacks_entry && options_.lacks_entry(target.side_car);
  }
  return AdvisoryLock::acquire(files_, target,
                               {options_.lock_timeout, options_.alone, past_frame_lock_, options_.stays_open});
}

Result<void> FrameWriter::check_header() const {
  const auto changed = stale("another program changed the frame");
  if (is_blank_) {
    const auto status = files_.status(file_->handle());
    if (!status) return Failure(status.error());
    return status->st_size == 0 ? Result<void>() : changed;
  }
  const auto now = read_bytes(files_, file_->handle(), FileOffset{0}, header_.size());
  if (!now) return Failure(now.error());
  return *now == header_ ? Result<void>() : changed;
}

/// A program that wrote without the lock changed the header. A program that replaced the file changed what the name
/// refers to.
Result<void> FrameWriter::check_unchanged() const {
  if (directory_ && !has_name_) return stale("the sparse frame and its files were removed");
  if (auto same = check_header(); !same) return same;
  return check_named();
}

/// Returns stale if the frame's name does not refer to this file any more.
Result<void> FrameWriter::check_named() const {
  if (!has_name_) return {};
  const auto ours = files_.status(file_->handle());
  if (!ours) return Failure(ours.error());
  const auto named = files_.status_at(entry_dir(), entry_name());
  if (!named) {
    if (named.error().sys == ENOENT) return stale("another program removed the frame");
    return Failure(named.error());
  }
  if (named->st_ino != ours->st_ino || named->st_dev != ours->st_dev)
    return stale("another program replaced the frame");
  return {};
}

/// Returns `wanted` with the frame's metalayers of both kinds.
Result<NewFrame> FrameReplacement::with_all_metalayers(NewFrame wanted) const {
  if (const auto& damage = writer_.container_->metalayer_damage()) return Failure(*damage);
  auto fixed = writer_.container_->metalayers();
  if (!fixed) return Failure(fixed.error());
  auto variable = writer_.stored_vlmetalayers();
  if (!variable) return Failure(variable.error());
  wanted.metalayers = std::move(*fixed);
  wanted.vlmetalayers = std::move(*variable);
  return wanted;
}

Result<void> FrameReplacement::replace_empty(const NewFrame& wanted) {
  if (is_failed(writer_.state_)) return codec::io_error(EIO, "commit after a failed sync");
  if (writer_.parameters().nbytes != 0 || !writer_.has_name_)
    return codec::invalid("only an empty frame with a name can be replaced");
  writer_.abandon();
  const std::shared_ptr<const Descriptor> locked = writer_.file_;  // keeps the locked file open while `held` exists
  const auto held = writer_.lock();
  if (!held) return codec::Failure(held.error());
  if (auto same = writer_.check_unchanged(); !same) return same;
  auto replacement =
      ReplacementFile::create(writer_.files_, writer_.entry_dir(), writer_.entry_name(), writer_.file_->handle());
  if (!replacement) return codec::Failure(replacement.error());
  const auto with_layers = with_all_metalayers(wanted);
  if (!with_layers) return codec::Failure(with_layers.error());
  std::vector<std::uint8_t> image = empty_frame(*with_layers);
  if (writer_.directory_) image[layout::kFrameTypeAt] = writer_.header_[layout::kFrameTypeAt];
  FrameWriter::Next next;
  next.file = replacement->file();
  next.header.assign(image.begin(), image.begin() + codec::load_be<std::int32_t>(&image[layout::kHeaderLengthAt]));
  if (auto put = writer_.files_.pwrite(replacement->handle(), image, FileOffset{0}); !put) return put;
  if (auto opened = writer_.open_next(next); !opened) return opened;
  if (!is_fresh(writer_.state_)) {
    if (auto synced = replacement->sync(); !synced) return synced;
  }
  if (auto same = writer_.check_unchanged(); !same) return same;
  if (auto placed = writer_.put_in_place(*replacement, next); !placed) return placed;
  writer_.adopt(std::move(next));
  if (is_fresh(writer_.state_)) return {};
  // The next commit may be acknowledged as durable, so the name of the new file must be durable before.
  auto synced = sync_directory_of(writer_.files_, writer_.entry_dir(), writer_.entry_name());
  if (!synced) writer_.fail();
  return synced;
}

Result<std::unique_ptr<FrameBeside>> FrameReplacement::make_beside(const NewFrame& wanted) {
  if (writer_.directory_ || !writer_.has_name_)
    return codec::unsupported("only a contiguous frame with a name can be replaced");
  auto held = writer_.lock();
  if (!held) return codec::Failure(held.error());
  if (auto same = writer_.check_unchanged(); !same) return codec::Failure(same.error());
  auto file =
      ReplacementFile::create(writer_.files_, writer_.entry_dir(), writer_.entry_name(), writer_.file_->handle());
  if (!file) return codec::Failure(file.error());
  if (auto put = writer_.files_.pwrite(file->handle(), empty_frame(wanted), FileOffset{0}); !put) {
    return codec::Failure(put.error());
  }
  auto beside = std::make_unique<FrameBeside>(FrameBeside{writer_.file_, std::move(*held), std::move(*file), nullptr});
  WriterOptions options = writer_.options_;
  options.fresh = is_fresh(writer_.state_);
  auto writer = FrameWriter::open(writer_.files_, writer_.dir_, beside->file.temporary_name(), writer_.cache_, options);
  if (!writer) return codec::Failure(writer.error());
  beside->writer = std::move(*writer);
  return beside;
}

Result<void> FrameReplacement::give_place_to(FrameBeside& next) {
  if (!is_fresh(writer_.state_)) {
    if (auto synced = next.file.sync(); !synced) return synced;
  }
  if (auto same = writer_.check_unchanged(); !same) return same;
  // The temporary frame has a side-car if the environment asks for locking.
  static_cast<void>(writer_.files_.remove_at(writer_.dir_, side_car_path(next.file.temporary_name()), false));
  if (auto published = next.file.publish(); !published) return published;
  next.writer->moved(writer_.dir_, writer_.path_);
  if (is_fresh(writer_.state_)) return {};
  auto synced = sync_directory_of(writer_.files_, writer_.entry_dir(), writer_.entry_name());
  if (!synced) next.writer->fail();
  return synced;
}

}  // namespace cframefs::frame
