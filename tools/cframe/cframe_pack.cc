// cframe pack: compresses the bytes of any file into a frame.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/core.h>

#include "frame/base/suffixes.h"
#include "frame/io/replacement_file.h"
#include "frame/numpy/npy_file.h"
#include "frame/write/auto_params.h"
#include "tools/cframe/batch.h"
#include "tools/cframe/cframe.h"
#include "tools/cframe/cframe_convert.h"
#include "tools/cframe/encode_options.h"
#include "tools/cframe/tuner.h"
#include "tools/lib/frame_output.h"
#include "tools/lib/input_file.h"
#include "tools/lib/progress.h"
#include "tools/lib/result_name.h"
#include "tools/lib/sizes.h"
#include "tools/stream/frame_packer.h"

namespace cframefs::tools {

namespace {

using codec::Result;

// Bytes of a stream that are searched for data: at least kPeeked, and up to kMaxPeeked if those before are zeros.
constexpr std::size_t kPeeked = std::size_t{2} << 20;
constexpr std::size_t kMaxPeeked = std::size_t{32} << 20;

struct PackOptions {
  BatchOptions batch;
  EncodeOptions wishes;
  std::optional<TuneGoal> tune;
};

/// The input: a file of any kind, or standard input.
class Source final : public Input {
 public:
  static Result<Source> open(const std::string& path, Io& io) {
    Source source;
    const bool is_stream = path == kStandardStream;
    source.name_ = is_stream ? "standard input" : path;
    source.path_ = path;
    if (is_stream) {
      if (io.in == nullptr) return codec::invalid("standard input is not available");
      source.path_ = io.in->path();
      source.input_ = io.in;
      return source;
    }
    auto opened = open_to_read(path);
    if (!opened) return codec::Failure(opened.error());
    source.file_ = std::make_unique<frame::Descriptor>(std::move(*opened));
    const frame::OpenFile file = source.file_->handle();
    const auto status = frame::system_files().status(file);
    if (!status) return codec::Failure(status.error());
    if (S_ISDIR(status->st_mode)) return codec::invalid("is a directory");
    if (S_ISREG(status->st_mode)) source.traits_ = FileTraits::of(*status);
    source.traits_.mode = status->st_mode & 0777;
    if (S_ISREG(status->st_mode)) source.size_ = static_cast<std::uint64_t>(status->st_size);
    source.owned_ = std::make_unique<DescriptorInput>(frame::system_files().system_descriptor(file)->number, io.stop);
    source.input_ = source.owned_.get();
    return source;
  }

  /// Returns the size of a regular file; none for other inputs.
  std::optional<std::uint64_t> size() const { return size_; }
  /// Returns the path of a file, also if it is standard input; empty for a stream.
  std::string path() const override { return path_; }
  const FileTraits& traits() const { return traits_; }

  /// Returns the first `length` bytes, or all if there are fewer. read() returns them again.
  Result<codec::ByteView> peek(std::size_t length) {
    if (head_.size() < length) {
      const std::size_t had = head_.size();
      head_.resize(length);
      const auto got = read_on(codec::ByteSpan(head_).subspan(had));
      if (!got) return codec::Failure(got.error());
      head_.resize(had + *got);
    }
    return codec::ByteView(head_).first(std::min(length, head_.size()));
  }

  Result<std::size_t> read(codec::ByteSpan into) override {
    const std::size_t known = std::min(into.size(), head_.size() - taken_);
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(taken_), known, into.begin());
    taken_ += known;
    if (known == into.size()) return known;
    auto got = read_on(into.subspan(known));
    if (!got) return got;
    return known + *got;
  }

  /// Returns a function that reads at an offset; empty for a stream. Files of size 0 are read as streams, because some
  /// (as in /proc) have content.
  ReadAt read_at() const {
    if (size_.value_or(0) == 0) return nullptr;
    return [this](codec::ByteSpan into, std::uint64_t at) {
      auto got = frame::system_files().pread(file_->handle(), into, frame::FileOffset{at});
      if (!got) got.error().path = name_;
      return got;
    };
  }

  /// Returns samples from the whole of a regular file, or from the beginning of a stream and the first data behind
  /// zeros.
  Result<frame::DataSamples> samples() {
    if (const ReadAt read = read_at()) return frame::take_samples(read, *size_);
    for (std::size_t length = kPeeked;; length *= 2) {
      const auto head = peek(length);
      if (!head) return codec::Failure(head.error());
      if (head->size() < length || length == kMaxPeeked || !frame::repeats_one_value(head->last(length / 2))) {
        return frame::samples_of(*head);
      }
    }
  }

 private:
  Result<std::size_t> read_on(codec::ByteSpan into) {
    auto got = input_->read(into);
    if (!got) got.error().path = name_;
    return got;
  }

  std::string name_;
  std::string path_;
  std::unique_ptr<frame::Descriptor> file_;
  std::unique_ptr<DescriptorInput> owned_;
  Input* input_ = nullptr;
  std::optional<std::uint64_t> size_;
  FileTraits traits_;
  std::vector<std::uint8_t> head_;
  std::size_t taken_ = 0;
};

std::string ratio_text(double plain, double stored) {
  char text[32];
  std::snprintf(text, sizeof text, "ratio %.2f", stored > 0 ? plain / stored : 0.0);
  return text;
}

/// Chooses the parameters of the frame by options and data.
Result<frame::NewFrame> choose(const PackOptions& options, Source& source, Io& io) {
  codec::EncodeContext context;
  const EncodeOptions& wishes = options.wishes;
  const auto chunksize = static_cast<std::int64_t>(wishes.chunksize);
  const bool is_open = options.tune || !wishes.filters || wishes.typesize == 0 || wishes.blocksize == 0;
  frame::DataSamples samples;
  if (is_open) {
    auto taken = source.samples();
    if (!taken) return codec::Failure(taken.error());
    samples = std::move(*taken);
  }
  if (options.tune && options.tune != TuneGoal::remote && !samples.runs.empty()) {
    const auto tuned = tune(context, wishes, samples, *options.tune);
    if (!tuned) return codec::Failure(tuned.error());
    io.err.print(fmt::format("cframe: of {} settings: {} ({} on samples)\n", tuned->tried, options_text(tuned->encode),
                             ratio_text(tuned->ratio, 1)));
    return frame::choose_frame(context, tuned->encode, chunksize, {});
  }
  const auto filters = wishes.filters ? frame::Filters::given : frame::Filters::open;
  auto chosen = frame::choose_frame(context, wishes.parameters(), chunksize, samples, filters);
  if (options.tune != TuneGoal::remote || chunksize != 0) return chosen;
  const auto remote = choose_remote_chunksize(context, chosen.encode, samples);
  if (!remote) return codec::Failure(remote.error());
  io.err.print(fmt::format("cframe: --chunksize {}\n", *remote));
  return frame::choose_frame(context, wishes.parameters(), *remote, samples, filters);
}

int pack_file(const PackOptions& options, const FileTask& task, MadeFile& made, Io& io) {
  // Every reader treats a file with this suffix as an array.
  if (task.out.ends_with(frame::kArraySuffix)) {
    if (!options.tune) return pack_array(task, options.wishes, made, io);
    return report(io, codec::invalid("--tune cannot be used for an array; use --codec, --clevel and --filter").value());
  }
  if (auto named = check_frame_name(task.out, {}); !named) return report(io, named.error());
  auto source = Source::open(task.in, io);
  if (!source) return report_failure(io, source.error(), task.in);
  if (auto apart = check_no_overlap(source->path(), task.out); !apart) return report(io, apart.error());
  if (task.replace) {
    if (auto fine = check_replaceable(task.out); !fine) return report(io, fine.error());
  }
  auto file = FrameOutput::create(task.out, task.replace, source->traits(), source->size().value_or(0), io);
  if (!file) return report_failure(io, file.error(), task.out);
  auto frame = choose(options, *source, io);
  if (!frame) return report_failure(io, frame.error(), task.in);
  frame->has_seal = options.wishes.checksums == frame::Checksums::on;

  Progress progress(io, "packing", Progress::Unit::bytes);
  const auto show = [&](const Packed& packed) {
    progress.note(ratio_text(static_cast<double>(packed.nbytes), static_cast<double>(packed.stored)));
    progress.update(packed.nbytes, source->size().value_or(Progress::kUnknown));
  };
  const auto packed = pack_frame(*source, *frame, file->target(), task.workers, show, io.stop, {}, source->read_at());
  progress.finish();
  if (!packed) return report_failure(io, packed.error(), task.out);
  if (auto published = file->publish(); !published) return report_failure(io, published.error(), task.out);
  made = {packed->nbytes, packed->stored, file->entity_tag()};
  return done;
}

/// Returns IN.b2frame; for a .npy file the name of an array.
Result<std::string> frame_name(const std::string& in, bool tune) {
  const std::string name = in.substr(in.rfind('/') + 1);
  if (!frame::container_suffix(name).empty())
    return codec::invalid("has the suffix of a frame: name OUT to pack it once more");
  const bool is_array = !tune && name.size() > kNpySuffix.size() && name.ends_with(kNpySuffix);
  if (is_array) return in.substr(0, in.size() - kNpySuffix.size()).append(frame::kArraySuffix);
  return in + ".b2frame";
}

int run_pack(const PackOptions& options, Io& io) {
  if (auto checked = validate_combination(options.wishes); !checked) return report(io, checked.error());
  FileMaker maker;
  maker.doing = "packing";
  maker.done = "packed";
  maker.takes = [](const DirectoryEntry& entry) {
    return entry.kind == EntryKind::file &&
           !entry.path.substr(entry.path.rfind('/') + 1).starts_with(frame::kTemporaryPrefix);
  };
  maker.name = [&options](const std::string& in) { return frame_name(in, options.tune.has_value()); };
  maker.make = [&options](const FileTask& task, MadeFile& made, Io& one) {
    return pack_file(options, task, made, one);
  };
  return run_files(options.batch, maker, io);
}

}  // namespace

SubcommandRun declare_pack(CLI::App& app) {
  auto options = std::make_shared<PackOptions>();
  add_batch_options(app, options->batch, "File, or - for standard input",
                    "the frame, s3://BUCKET/KEY, or - for standard output");
  add_frame_options(app, options->wishes);
  add_checksums_option(app, options->wishes.checksums);
  add_tune_option(app, options->tune);
  return [options](Io& io) { return run_pack(*options, io); };
}

}  // namespace cframefs::tools
