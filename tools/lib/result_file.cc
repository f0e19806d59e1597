#include "tools/lib/result_file.h"

#include <cerrno>
#include <vector>

#include "frame/remote/http/address.h"
#include "tools/lib/temporary_file.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

constexpr std::size_t kOutputPiece = std::size_t{1} << 20;

Failure of_output(codec::Error error) {
  if (error.path.empty()) error.path = "standard output";
  return Failure(std::move(error));
}

}  // namespace

Result<ResultFile> ResultFile::create(const std::string& argument, bool replace, const FileTraits& like, Io& io,
                                      const char* remedy) {
  ResultFile made(io);
  if (argument == kStandardStream) {
    if (io.out_is_terminal) return of_output(codec::invalid("is a terminal: redirect it, or name a file").value());
    auto file = make_unnamed_file(frame::system_files());
    if (!file) return of_output(file.error());
    made.unnamed_ = std::move(*file);
    return made;
  }
  if (frame::is_address(argument)) {
    Failure refused = codec::invalid("is on a server, where only pack and convert write, and only to buckets");
    refused.value().path = frame::shown_address(argument);
    return refused;
  }
  auto file = NewFile::create(frame::system_files(), argument, replace, like.mode, remedy);
  if (!file) return Failure(file.error());
  file->keep_times(like.times);
  made.named_.emplace(std::move(*file));
  return made;
}

Result<void> ResultFile::publish() {
  if (named_) return named_->publish();
  std::vector<std::uint8_t> piece(kOutputPiece);
  for (std::uint64_t at = 0;;) {
    const auto got = frame::system_files().pread(handle(), piece, frame::FileOffset{at});
    if (!got) return of_output(got.error());
    auto put = io_->out.write(codec::ByteView(piece).first(*got));
    // EPIPE: the reader has read enough.
    if (!put && put.error().sys == EPIPE) return {};
    if (!put) return of_output(put.error());
    if (*got < piece.size()) return {};
    at += *got;
  }
}

}  // namespace cframefs::tools
