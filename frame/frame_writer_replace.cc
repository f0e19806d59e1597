// Another empty frame in the place of an empty one: what it is like is known only when its first data is.
#include <utility>

#include "frame/advisory_lock.h"
#include "frame/frame_writer-inl.h"
#include "frame/replacement_file.h"

namespace cframefs::frame {

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

}  // namespace cframefs::frame
