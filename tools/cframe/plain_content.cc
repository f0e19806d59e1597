#include "tools/cframe/plain_content.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>

#include "frame/base/suffixes.h"
#include "tools/lib/store_paths.h"
#include "tools/stream/array_stream.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

constexpr std::size_t kRecognisedStart = 64;  // bytes that suffice to recognise a container
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

Result<PlainContent> PlainContent::open(const std::string& argument, frame::ArrayForm form, Io& io) {
  auto input = InputFile::open(argument, io);
  if (!input) return Failure(with_path(input.error(), argument));
  PlainContent content(std::move(*input));
  auto container = open_frame(content.input_, 0);
  if (!container) {
    const codec::ErrorKind kind = container.error().kind;
    const bool is_named_frame = !frame::container_suffix(content.name()).empty();
    if (is_named_frame || kind == codec::ErrorKind::io || kind == codec::ErrorKind::invalid)
      return Failure(container.error());
    auto opened = content.open_file();
    if (!opened) return Failure(with_path(opened.error(), content.name()));
    if (*opened) return Failure(container.error());
    return content;
  }
  auto view = frame::make_view(std::move(*container), form, content.name().ends_with(frame::kArraySuffix));
  if (!view) return Failure(with_path(view.error(), content.name()));
  content.view_ = std::move(*view);
  content.size_ = content.view_->size();
  return content;
}

/// Returns true if the file begins like a container.
Result<bool> PlainContent::open_file() {
  const auto found = files_for(input_.path());
  if (!found) return Failure(found.error());
  frame::ReadFileOps& files = **found;
  const auto fd = files.open_named(input_.path(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return Failure(fd.error());
  file_ = std::make_shared<const frame::Descriptor>(files, *fd);
  const auto status = files.status(file_->handle());
  if (!status) return Failure(status.error());
  if (!S_ISREG(status->st_mode)) return codec::invalid("is not a regular file");
  size_ = static_cast<std::uint64_t>(status->st_size);
  std::vector<std::uint8_t> first(kRecognisedStart);
  const auto got = files.pread(file_->handle(), first, frame::FileOffset{0});
  if (!got) return Failure(got.error());
  return frame::begins_container(codec::ByteView(first).first(*got), size_);
}

Result<void> PlainContent::stream(std::uint64_t begin, std::uint64_t length, unsigned workers, const Sink& sink,
                                  const std::atomic<bool>& stop) const {
  if (view_) return stream_view(*view_, frame::FlatOffset{begin}, length, workers, sink, stop);
  const auto found = files_for(input_.path());
  if (!found) return Failure(found.error());
  frame::ReadFileOps& files = **found;
  std::vector<std::uint8_t> piece(kPieceBytes);
  const std::uint64_t end = begin + length;
  for (std::uint64_t at = begin; at < end;) {
    if (stop.load()) return codec::io_error(EINTR, "read");
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), end - at));
    const auto got = files.pread(file_->handle(), codec::ByteSpan(piece).first(wanted), frame::FileOffset{at});
    if (!got) return Failure(got.error());
    if (*got < wanted) return codec::stale(fmt::format("the file was cut off at {} of {} bytes", at + *got, size_));
    if (auto passed = sink(codec::ByteView(piece).first(wanted)); !passed) return passed;
    at += wanted;
  }
  return {};
}

}  // namespace cframefs::tools
