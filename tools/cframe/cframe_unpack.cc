// cframe unpack: writes the content that a frame shows on a mount into a file, with holes for chunks of zeros.
#include <algorithm>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fcntl.h>

#include "frame/array/array_view.h"
#include "frame/base/suffixes.h"
#include "frame/numpy/bloscpack_numpy.h"
#include "tools/cframe/batch.h"
#include "tools/cframe/cframe.h"
#include "tools/lib/progress.h"
#include "tools/lib/result_file.h"
#include "tools/lib/result_name.h"
#include "tools/stream/array_stream.h"

namespace cframefs::tools {

namespace {

using codec::Result;
using frame::Container;
using frame::FlatOffset;
using frame::FlatView;

// Number of bytes that suffices to recognise a container.
constexpr std::uint64_t kFirstBytes = 64;

struct UnpackOptions {
  BatchOptions batch;
  std::uint64_t frame_offset = 0;
  frame::ArrayForm b2nd = frame::ArrayForm::npy;
};

/// Writes the bytes of a view into an empty file.
class Unpacker {
 public:
  Unpacker(const FlatView& view, frame::OpenFile file, unsigned workers, Io& io)
      : view_(view),
        container_(view.container()),
        total_(view.size()),
        file_(file),
        workers_(workers),
        io_(io),
        progress_(io, "unpacking", Progress::Unit::bytes) {}

  Result<void> run() {
    // Holes need chunks of one size in order: then the chunk number gives the offset.
    const bool even = view_.is_chunks_only() && container_.parameters().chunksize > 0;
    while (at_ < total_) {
      if (auto skipped = even ? skip_hole() : Result<void>(); !skipped) return skipped;
      if (at_ == total_) break;
      const auto end = even ? edge(true) : total_;
      if (!end) return codec::Failure(end.error());
      if (auto done = write_until(*end); !done) return done;
    }
    progress_.finish();
    return frame::system_files().truncate(file_, total_);
  }

  /// Returns true if run() failed in a write to the output.
  bool write_failed() const { return write_failed_; }

 private:
  /// Returns the offset of the first chunk from at_ on that is zeros (`hole`) or not. REQUIRES: a chunk begins at at_.
  Result<std::uint64_t> edge(bool hole) const {
    const auto chunksize = static_cast<std::uint64_t>(container_.parameters().chunksize);
    const auto next = container_.next_chunk(frame::ChunkNumber{static_cast<std::int64_t>(at_ / chunksize)}, hole);
    if (!next) return codec::Failure(next.error());
    return std::min(static_cast<std::uint64_t>(next->value) * chunksize, total_);
  }

  Result<void> skip_hole() {
    const auto data = edge(false);
    if (!data) return codec::Failure(data.error());
    at_ = *data;
    return {};
  }

  Result<void> write_until(std::uint64_t end) {
    const Sink sink = [this](codec::ByteView bytes) {
      auto put = frame::system_files().pwrite(file_, bytes, frame::FileOffset{at_});
      write_failed_ = !put;
      if (!put) return put;
      at_ += bytes.size();
      progress_.update(at_, total_);
      return put;
    };
    return stream_view(view_, FlatOffset{at_}, end - at_, workers_, sink, io_.stop);
  }

  const FlatView& view_;
  const Container& container_;
  const std::uint64_t total_;
  const frame::OpenFile file_;
  const unsigned workers_;
  Io& io_;
  Progress progress_;
  std::uint64_t at_ = 0;
  bool write_failed_ = false;
};

/// Checks that the suffix of `out` fits the content.
Result<void> check_name(const FlatView& view, const std::string& out, const std::atomic<bool>& stop) {
  std::vector<std::uint8_t> first;
  const Sink sink = [&first](codec::ByteView bytes) -> Result<void> {
    first.insert(first.end(), bytes.begin(), bytes.end());
    return {};
  };
  const std::uint64_t looked_at = std::min<std::uint64_t>(view.size(), kFirstBytes);
  if (auto read = stream_view(view, FlatOffset{0}, looked_at, 1, sink, stop); !read) return read;
  return check_plain_name(out, first, view.size());
}

int unpack_file(const UnpackOptions& options, const FileTask& task, MadeFile& made, Io& io) {
  const auto input = InputFile::open(task.in, io);
  if (!input) return report_failure(io, input.error(), task.in);
  auto container = open_frame(*input, options.frame_offset);
  if (!container) return report_failure(io, container.error(), input->name());
  const std::uint64_t stored = (*container)->stored_bytes();
  const auto view = frame::make_view(std::move(*container), options.b2nd, task.in.ends_with(".b2nd"));
  if (!view) return report_failure(io, view.error(), input->name());
  if (task.out == kStandardStream) {
    return write_out(**view, FlatOffset{0}, (*view)->size(), task.workers, input->name(), io);
  }
  if (auto apart = check_no_overlap(input->path(), task.out); !apart) return report(io, apart.error());
  if (auto named = check_name(**view, task.out, io.stop); !named) {
    return report_failure(io, named.error(), input->name());
  }
  const auto traits = traits_of(input->path());
  if (!traits) return report_failure(io, traits.error(), input->name());
  auto file = ResultFile::create(task.out, task.replace, input->is_stream() ? FileTraits() : *traits, io);
  if (!file) return report_failure(io, file.error(), task.out);
  Unpacker unpacker(**view, file->handle(), task.workers, io);
  if (auto unpacked = unpacker.run(); !unpacked) {
    return report_failure(io, unpacked.error(), unpacker.write_failed() ? task.out : input->name());
  }
  if (auto published = file->publish(); !published) return report_failure(io, published.error(), task.out);
  made = {(*view)->size(), stored, {}};
  return done;
}

/// Returns the name that a mount shows: without the suffix, and .npy for an array.
Result<std::string> plain_name(const std::string& in, const UnpackOptions& options) {
  auto name = without_suffix(in);
  if (!name || options.b2nd != frame::ArrayForm::npy) return name;
  if (in.ends_with(frame::kArraySuffix)) return name->append(kNpySuffix);
  if (!in.ends_with(frame::kPackSuffix)) return name;
  const auto container = open_frame(InputFile(in), options.frame_offset);
  if (!container) return codec::Failure(container.error());
  const auto pack = frame::numpy_pack_of(**container);
  return pack && *pack ? name->append(kNpySuffix) : name;
}

int run_unpack(const UnpackOptions& options, Io& io) {
  FileMaker maker;
  maker.doing = "unpacking";
  maker.done = "unpacked";
  maker.reads_frames = true;
  maker.takes = is_container_entry;
  maker.name = [&options](const std::string& in) { return plain_name(in, options); };
  maker.make = [&options](const FileTask& task, MadeFile& made, Io& one) {
    return unpack_file(options, task, made, one);
  };
  return run_files(options.batch, maker, io);
}

}  // namespace

SubcommandRun declare_unpack(CLI::App& app) {
  auto options = std::make_shared<UnpackOptions>();
  add_batch_options(app, options->batch, "Frame, or directory of a sparse frame, or - for standard input",
                    "the file, or - for standard output");
  add_size_option(app, "--frame-offset", options->frame_offset, "Offset of the frame in the file (0)");
  add_array_form_option(app, options->b2nd);
  return [options](Io& io) { return run_unpack(*options, io); };
}

}  // namespace cframefs::tools
