// cframe convert: containers of any format to current frames, and .npy files to n-d arrays and back.
#include "tools/cframe/cframe_convert.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/core.h>

#include "frame/array/array_view.h"
#include "frame/cframe/frame_container.h"
#include "frame/numpy/bloscpack_numpy.h"
#include "frame/numpy/npy_file.h"
#include "frame/write/auto_params.h"
#include "frame/write/item_sizes.h"
#include "frame/write/new_frame_file.h"
#include "tools/cframe/batch.h"
#include "tools/cframe/encode_options.h"
#include "tools/cframe/tuner.h"
#include "tools/lib/frame_output.h"
#include "tools/lib/progress.h"
#include "tools/lib/result_name.h"
#include "tools/lib/store_paths.h"
#include "tools/stream/array_input.h"
#include "tools/stream/array_stream.h"
#include "tools/stream/container_input.h"
#include "tools/stream/fortran_input.h"
#include "tools/stream/frame_packer.h"

namespace cframefs::tools {

namespace {

using codec::Failure;
using codec::Result;

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kBlockBytes = std::uint64_t{64} << 10;

/// How all files of a run are converted.
struct ConvertRules {
  BatchOptions batch;
  std::uint64_t frame_offset = 0;
  std::string beta_bitshuffle = "new";
  EncodeOptions wishes;
  bool for_servers = false;  // --tune=remote
};

/// How one file is converted.
struct ConvertOptions {
  std::string in;       // name for messages
  std::string in_path;  // path to open
  std::string out;
  std::uint64_t frame_offset = 0;
  bool old_bitshuffle = false;
  EncodeOptions wishes;
  bool for_servers = false;
  bool force = false;
  unsigned workers = 1;
};

/// A frame to be written: its parameters, and its uncompressed bytes in the order of its chunks.
struct Plan {
  frame::NewFrame frame;
  std::vector<frame::Metalayer> vlmetalayers;
  std::unique_ptr<Input> input;
  std::uint64_t nbytes = 0;
  bool was_sealed = false;
  std::shared_ptr<const frame::FrameContainer> as_is;  // set: its chunks are copied as stored; `input` is null
};

/// The items of a .npy file. Owns the descriptor.
class NpyInput final : public SeekableInput {
 public:
  NpyInput(frame::ReadFileOps& files, frame::Descriptor file, std::uint64_t begin, std::uint64_t end)
      : files_(files), file_(std::move(file)), begin_(begin), end_(end), at_(begin) {}

  Result<std::size_t> read(codec::ByteSpan into) override {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end_ - at_));
    auto got = files_.pread(file_.handle(), into.first(size), frame::FileOffset{at_});
    if (got) at_ += *got;
    return got;
  }
  void go_to(std::uint64_t at) override { at_ = std::min(begin_ + at, end_); }

 private:
  frame::ReadFileOps& files_;
  const frame::Descriptor file_;
  const std::uint64_t begin_;
  const std::uint64_t end_;
  std::uint64_t at_;
};

/// Returns the parameters of the container if they can be encoded, else the defaults of pack; options override both.
codec::EncodeParameters encoding(const frame::Container& container, const EncodeOptions& wishes) {
  const frame::FrameParameters& parameters = container.parameters();
  codec::EncodeParameters encode = frame::encode_parameters(parameters);
  // Level 0 would disable compression.
  if (!container.records_level()) encode.clevel = 5;
  encode.blocksize = 0;
  encode.use_dict = false;
  if (!codec::check_encodable(encode)) {
    encode = EncodeOptions().parameters();
    encode.typesize = parameters.typesize;
  }
  if (wishes.compcode) encode.compcode = *wishes.compcode;
  if (wishes.clevel) encode.clevel = *wishes.clevel;
  if (wishes.filters) {
    encode.filters = *wishes.filters;
    encode.filters_meta = {};
  }
  if (wishes.typesize != 0) encode.typesize = static_cast<std::int32_t>(wishes.typesize);
  if (wishes.blocksize != 0) encode.blocksize = static_cast<std::int32_t>(wishes.blocksize);
  return encode;
}

/// Returns all variable-length metalayers, or an error: a conversion must not lose any silently.
Result<std::vector<frame::Metalayer>> vlmetalayers_of(const frame::Container& container) {
  if (const auto& damage = container.metalayer_damage()) return Failure(*damage);
  if (const auto& damage = container.vlmetalayer_damage()) return Failure(*damage);
  std::vector<frame::Metalayer> layers;
  for (const std::string& name : container.vlmetalayer_names()) {
    auto content = container.vlmetalayer(name);
    if (!content) return Failure(content.error());
    layers.push_back({name, std::move(*content)});
  }
  return layers;
}

Result<void> check_wishes_of_array(const EncodeOptions& wishes) {
  if (wishes.typesize == 0 && wishes.chunksize == 0 && wishes.blocksize == 0) return {};
  return codec::invalid("--typesize, --chunksize and --blocksize are not for arrays: they follow from the shape");
}

Failure tune_refused() {
  return codec::invalid("--tune cannot be used for an array: its chunks follow from the shape");
}

/// Plans a new array of C-order items.
Result<Plan> plan_new_array(std::unique_ptr<Input> items, const frame::ItemType& type,
                            const std::vector<std::int64_t>& shape, const EncodeOptions& wishes) {
  const auto layer = frame::plan_array(shape, type, kChunkBytes, kBlockBytes);
  if (!layer) return Failure(layer.error());
  auto input = ArrayInput::create(std::move(items), *layer, type.itemsize);
  if (!input) return Failure(input.error());
  Plan plan;
  plan.frame.encode = wishes.parameters();
  plan.frame.encode.typesize = static_cast<std::int32_t>(type.itemsize);
  plan.frame.encode.blocksize = static_cast<std::int32_t>(frame::block_items(*layer) * type.itemsize);
  plan.frame.chunksize = static_cast<std::int32_t>(frame::chunk_items(*layer) * type.itemsize);
  plan.frame.metalayers.push_back({"b2nd", frame::array_layer_image(*layer)});
  plan.nbytes = (*input)->size();
  plan.input = std::move(*input);
  return plan;
}

/// Plans a new array of items in either order.
Result<Plan> plan_buffer(std::unique_ptr<SeekableInput> items, const frame::ItemType& type,
                         const std::vector<std::int64_t>& shape, bool fortran_order, const EncodeOptions& wishes) {
  if (!fortran_order) return plan_new_array(std::move(items), type, shape, wishes);
  if (!frame::array_bytes(shape, type.itemsize)) return codec::corrupt("the array is larger than any file can be");
  return plan_new_array(in_c_order(std::move(items), shape, type.itemsize), type, shape, wishes);
}

/// Plans an array with the same chunks, encoded again; a Caterva metalayer becomes a b2nd metalayer.
Result<Plan> plan_tiles(const std::shared_ptr<const frame::Container>& container, frame::B2ndMeta layer,
                        const EncodeOptions& wishes) {
  const frame::FrameParameters& parameters = container->parameters();
  // make_view() checks that the metalayer fits the frame.
  if (auto view = frame::make_view(container, frame::ArrayForm::flat, true); !view) return Failure(view.error());
  Plan plan;
  plan.frame.encode = encoding(*container, wishes);
  const auto typesize = static_cast<std::uint64_t>(parameters.typesize);
  plan.frame.encode.blocksize = static_cast<std::int32_t>(frame::block_items(layer) * typesize);
  plan.frame.chunksize = std::max<std::int32_t>(parameters.chunksize, parameters.typesize);
  if (!layer.dtype) {
    const std::string descr = frame::opaque_type(typesize).descr;
    layer.dtype = descr.substr(1, descr.size() - 2);
  }
  auto layers = container->metalayers();
  if (!layers) return Failure(layers.error());
  for (frame::Metalayer& known : *layers) {
    if (known.name == "caterva") known = {"b2nd", frame::array_layer_image(layer)};
  }
  plan.frame.metalayers = std::move(*layers);
  plan.nbytes = parameters.nbytes;
  plan.input = std::make_unique<ContainerInput>(container);
  return plan;
}

/// Plans a copy of the stored chunks: if they differ in size, a metalayer may describe each of them.
Result<Plan> plan_copy(std::shared_ptr<const frame::FrameContainer> container, const EncodeOptions& wishes) {
  if (wishes.any()) {
    return codec::invalid(
        "its metalayers may describe its chunks of different sizes, so the chunks are copied as stored: --codec, "
        "--clevel, --filter, --typesize, --chunksize and --blocksize cannot be used");
  }
  const frame::FrameParameters& parameters = container->parameters();
  Plan plan;
  plan.frame.encode = frame::encode_parameters(parameters);
  plan.frame.chunksize = parameters.chunksize;
  plan.frame.vl_blocks = parameters.vl_blocks;
  auto layers = container->metalayers();
  if (!layers) return Failure(layers.error());
  plan.frame.metalayers = std::move(*layers);
  plan.nbytes = parameters.nbytes;
  plan.as_is = std::move(container);
  return plan;
}

Result<Plan> plan_plain(const std::shared_ptr<const frame::Container>& container, const ConvertOptions& options) {
  const EncodeOptions& wishes = options.wishes;
  const frame::FrameParameters& parameters = container->parameters();
  const auto current = frame::as_shared_frame(container);
  const bool is_current =
      parameters.kind == frame::ContainerKind::cframe || parameters.kind == frame::ContainerKind::sframe;
  if (current && is_current && (parameters.variable_chunks || parameters.vl_blocks) &&
      !container->metalayer_places().empty()) {
    if (options.for_servers) return codec::invalid("its chunks are copied as stored: --tune cannot be used");
    return plan_copy(current, wishes);
  }
  Plan plan;
  codec::EncodeContext context;
  std::uint64_t chunksize =
      wishes.chunksize != 0 ? wishes.chunksize : static_cast<std::uint64_t>(std::max(parameters.chunksize, 0));
  if (options.for_servers && wishes.chunksize == 0) {
    const auto chosen = choose_remote_chunksize(container, encoding(*container, wishes));
    if (!chosen) return Failure(chosen.error());
    chunksize = static_cast<std::uint64_t>(*chosen);
  }
  plan.frame = frame::choose_frame(context, encoding(*container, wishes), static_cast<std::int64_t>(chunksize), {});
  auto layers = container->metalayers();
  if (!layers) return Failure(layers.error());
  plan.frame.metalayers = std::move(*layers);
  plan.nbytes = parameters.nbytes;
  plan.input = std::make_unique<ContainerInput>(container);
  return plan;
}

Result<Plan> plan_container(const ConvertOptions& options, const std::shared_ptr<const frame::Container>& container) {
  const bool wants_array = options.out.ends_with(".b2nd");
  auto layers = vlmetalayers_of(*container);
  if (!layers) return Failure(layers.error());
  auto array = frame::b2nd_meta_of(*container);
  if (!array) return Failure(array.error());
  const auto pack = frame::numpy_pack_of(*container);
  if (!pack) return Failure(pack.error());
  if (*array || (wants_array && *pack)) {
    if (options.for_servers) return tune_refused();
    if (auto fine = check_wishes_of_array(options.wishes); !fine) return Failure(fine.error());
  } else if (wants_array) {
    return codec::invalid("is not an array, but a .b2nd file must be one");
  }
  Result<Plan> plan = *array        ? plan_tiles(container, std::move(**array), options.wishes)
                      : wants_array ? plan_buffer(std::make_unique<ContainerInput>(container), (*pack)->type,
                                                  (*pack)->shape, (*pack)->fortran_order, options.wishes)
                                    : plan_plain(container, options);
  const auto* const frame = container->as_frame();
  if (plan) plan->was_sealed = frame != nullptr && frame->seal() != nullptr;
  // The b2nd metalayer replaces the metadata of a packed NumPy array.
  if (plan && (!*pack || !wants_array)) plan->vlmetalayers = std::move(*layers);
  return plan;
}

/// Chooses the filters for an array by samples of the items, which are `size` bytes from `begin` on.
Result<codec::FilterSlots> filters_for_items(frame::ReadFileOps& files, const frame::Descriptor& file,
                                             std::uint64_t begin, std::uint64_t size, codec::EncodeParameters encode) {
  const auto samples = frame::take_samples(
      [&](codec::ByteSpan into, std::uint64_t at) {
        const std::uint64_t left = size - std::min(at, size);
        const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left));
        return files.pread(file.handle(), into.first(length), frame::FileOffset{begin + at});
      },
      size);
  if (!samples) return Failure(samples.error());
  codec::EncodeContext context;
  encode.blocksize = static_cast<std::int32_t>(kBlockBytes);  // that of the array follows from its shape
  return frame::choose_frame(context, encode, 0, *samples, frame::Filters::open).encode.filters;
}

/// Plans the conversion of a .npy file. Returns none if IN is not one.
Result<std::optional<Plan>> plan_npy(const ConvertOptions& options) {
  const auto found = files_for(options.in_path);
  if (!found) return Failure(found.error());
  frame::ReadFileOps& files = **found;
  const auto fd = files.open_named(options.in_path, O_RDONLY | O_NONBLOCK);
  if (!fd) return Failure(fd.error());
  frame::Descriptor file(files, *fd);
  const auto status = files.status(file.handle());
  if (!status) return Failure(status.error());
  if (!S_ISREG(status->st_mode)) return std::optional<Plan>();
  std::vector<std::uint8_t> head(
      std::min<std::size_t>(static_cast<std::size_t>(status->st_size), frame::kMaxNpyHeader));
  const auto got = files.pread(file.handle(), head, frame::FileOffset{0});
  if (!got) return Failure(got.error());
  head.resize(*got);
  if (!frame::has_npy_magic(head)) return std::optional<Plan>();
  const auto npy = frame::parse_npy_file(head);
  if (!npy) return Failure(npy.error());
  if (!options.out.ends_with(".b2nd") && options.out != kStandardStream) {
    return codec::invalid("is a .npy file, which convert makes a .b2nd file: name OUT .b2nd, or use pack for a frame");
  }
  if (options.for_servers) return tune_refused();
  if (auto fine = check_wishes_of_array(options.wishes); !fine) return Failure(fine.error());
  const auto bytes = frame::array_bytes(npy->shape, npy->type.itemsize);
  const auto size = static_cast<std::uint64_t>(status->st_size);
  if (!bytes || npy->data_at > size || *bytes > size - npy->data_at)
    return codec::corrupt(fmt::format("the .npy file is truncated: it has {} bytes", size));
  EncodeOptions wishes = options.wishes;
  const bool is_usual = npy->type.itemsize >= 1 && npy->type.itemsize <= frame::kMaxItemSize;
  if (!wishes.filters && is_usual) {
    codec::EncodeParameters encode = wishes.parameters();
    encode.typesize = static_cast<std::int32_t>(npy->type.itemsize);
    const auto filters = filters_for_items(files, file, npy->data_at, *bytes, encode);
    if (!filters) return Failure(filters.error());
    wishes.filters = *filters;
  }
  auto items = std::make_unique<NpyInput>(files, std::move(file), npy->data_at, npy->data_at + *bytes);
  auto plan = plan_buffer(std::move(items), npy->type, npy->shape, npy->fortran_order, wishes);
  if (!plan) return Failure(plan.error());
  return std::optional<Plan>(std::move(*plan));
}

int copy_frame(const ConvertOptions& options, const Plan& plan, const FileTraits& like, MadeFile& made, Io& io) {
  auto file = FrameOutput::create(options.out, options.force, like, plan.as_is->stored_bytes(), io);
  if (!file) return report_failure(io, file.error(), options.out);
  frame::NewFrameFile frame(file->target(), plan.frame);
  if (auto taken = frame.take_chunks(*plan.as_is); !taken) return report_failure(io, taken.error(), options.in);
  if (auto done = frame.finish(plan.vlmetalayers); !done) return report_failure(io, done.error(), options.out);
  if (auto published = file->publish(); !published) return report_failure(io, published.error(), options.out);
  made = {frame.nbytes(), frame.stored(), file->entity_tag()};
  return done;
}

int make_frame(const ConvertOptions& options, Plan& plan, const FileTraits& like, MadeFile& made, Io& io) {
  if (auto named = check_frame_name(options.out, plan.frame.metalayers); !named) return report(io, named.error());
  const frame::Checksums checksums = options.wishes.checksums;
  plan.frame.has_seal = checksums == frame::Checksums::on || (checksums == frame::Checksums::keep && plan.was_sealed);
  if (plan.as_is) return copy_frame(options, plan, like, made, io);
  if (auto fine = codec::check_encodable(plan.frame.encode); !fine) return report_failure(io, fine.error(), options.in);
  auto file = FrameOutput::create(options.out, options.force, like, plan.nbytes, io);
  if (!file) return report_failure(io, file.error(), options.out);
  Progress progress(io, "converting", Progress::Unit::bytes);
  const auto show = [&](const Packed& packed) { progress.update(packed.nbytes, plan.nbytes); };
  const auto packed =
      pack_frame(*plan.input, plan.frame, file->target(), options.workers, show, io.stop, plan.vlmetalayers);
  progress.finish();
  if (!packed) return report_failure(io, packed.error(), options.in);
  if (packed->nbytes != plan.nbytes) {
    return report_failure(
        io, codec::corrupt(fmt::format("ends after {} of {} bytes", packed->nbytes, plan.nbytes)).value(), options.in);
  }
  if (auto published = file->publish(); !published) return report_failure(io, published.error(), options.out);
  made = {packed->nbytes, packed->stored, file->entity_tag()};
  return done;
}

/// Writes an array as a .npy file.
int make_npy(const ConvertOptions& options, std::shared_ptr<const frame::Container> container, const FileTraits& like,
             MadeFile& made, Io& io) {
  const std::uint64_t stored = container->stored_bytes();
  const auto view = frame::make_view(std::move(container), frame::ArrayForm::npy, options.in.ends_with(".b2nd"));
  if (!view) return report_failure(io, view.error(), options.in);
  if ((*view)->head().empty()) {
    return report_failure(io, codec::invalid("is not an array, but a .npy file must be one").value(), options.in);
  }
  auto file = FrameOutput::create(options.out, options.force, like, (*view)->size(), io);
  if (!file) return report_failure(io, file.error(), options.out);
  Progress progress(io, "converting", Progress::Unit::bytes);
  std::uint64_t at = 0;
  bool write_failed = false;
  const Sink sink = [&](codec::ByteView bytes) {
    auto put = file->target().write(bytes, frame::FileOffset{at});
    write_failed = !put;
    at += bytes.size();
    progress.update(at, (*view)->size());
    return put;
  };
  const auto streamed = stream_view(**view, frame::FlatOffset{0}, (*view)->size(), options.workers, sink, io.stop);
  progress.finish();
  if (!streamed) return report_failure(io, streamed.error(), write_failed ? options.out : options.in);
  if (auto published = file->publish(); !published) return report_failure(io, published.error(), options.out);
  made = {(*view)->size(), stored, file->entity_tag()};
  return done;
}

/// `npy_only`: refuses an input that is not a .npy file.
int convert_file(ConvertOptions options, bool npy_only, MadeFile& made, Io& io) {
  const auto input = InputFile::open(options.in, io);
  if (!input) return report_failure(io, input.error(), options.in);
  options.in = input->name();
  options.in_path = input->path();
  if (auto apart = check_no_overlap(options.in_path, options.out); !apart) return report(io, apart.error());
  if (options.force) {
    if (auto fine = check_replaceable(options.out); !fine) return report(io, fine.error());
  }
  auto traits = traits_of(options.in_path);
  if (!traits) return report_failure(io, traits.error(), options.in);
  if (input->is_stream()) *traits = FileTraits();
  auto npy = plan_npy(options);
  if (!npy) return report_failure(io, npy.error(), options.in);
  if (*npy) return make_frame(options, **npy, *traits, made, io);
  if (npy_only) {
    const codec::Failure refused = codec::invalid("is not a .npy file, but a .b2nd file must be an array");
    return report(io, with_path(refused.value(), options.in));
  }
  auto container = open_frame(*input, options.frame_offset, options.old_bitshuffle);
  if (!container) return report_failure(io, container.error(), options.in);
  if (options.out.ends_with(".npy")) return make_npy(options, std::move(*container), *traits, made, io);
  auto plan = plan_container(options, *container);
  if (!plan) return report_failure(io, plan.error(), options.in);
  return make_frame(options, *plan, *traits, made, io);
}

ConvertOptions options_of(const FileTask& task, const EncodeOptions& wishes) {
  ConvertOptions options;
  options.in = task.in;
  options.out = task.out;
  options.wishes = wishes;
  options.force = task.replace;
  options.workers = task.workers;
  return options;
}

bool is_npy_name(const std::string& path) {
  return path.size() > kNpySuffix.size() && path.ends_with(kNpySuffix);
}

/// Returns the name of the result: .b2nd for an array, else .b2frame.
Result<std::string> converted_name(const std::string& in, const ConvertRules& rules) {
  if (is_npy_name(in)) return in.substr(0, in.size() - kNpySuffix.size()) + ".b2nd";
  auto name = without_suffix(in);
  if (!name) return name;
  const auto container = open_frame(InputFile(in), rules.frame_offset, rules.beta_bitshuffle == "old");
  if (!container) return Failure(container.error());
  const auto array = frame::b2nd_meta_of(**container);
  if (!array) return Failure(array.error());
  const auto pack = frame::numpy_pack_of(**container);
  if (!pack) return Failure(pack.error());
  return *name + (*array || *pack ? ".b2nd" : ".b2frame");
}

int run_convert(const ConvertRules& rules, Io& io) {
  if (auto checked = validate_combination(rules.wishes); !checked) return report(io, checked.error());
  FileMaker maker;
  maker.doing = "converting";
  maker.done = "converted";
  maker.reads_frames = true;
  maker.name = [&rules](const std::string& in) { return converted_name(in, rules); };
  maker.takes = [&rules](const DirectoryEntry& entry) {
    if (entry.kind == EntryKind::file && is_npy_name(entry.path)) return true;
    if (!is_container_entry(entry)) return false;
    // Without --to, a current frame would become itself.
    if (rules.batch.to) return true;
    const auto name = converted_name(entry.path, rules);
    return !name || *name != entry.path;
  };
  maker.make = [&rules](const FileTask& task, MadeFile& made, Io& one) {
    ConvertOptions options = options_of(task, rules.wishes);
    options.frame_offset = rules.frame_offset;
    options.old_bitshuffle = rules.beta_bitshuffle == "old";
    options.for_servers = rules.for_servers;
    return convert_file(std::move(options), false, made, one);
  };
  return run_files(rules.batch, maker, io);
}

}  // namespace

int pack_array(const FileTask& task, const EncodeOptions& wishes, MadeFile& made, Io& io) {
  return convert_file(options_of(task, wishes), true, made, io);
}

SubcommandRun declare_convert(CLI::App& app) {
  auto rules = std::make_shared<ConvertRules>();
  add_batch_options(app, rules->batch, "Frame, Bloscpack file, chunk, or .npy file, or - for standard input",
                    "a frame, .b2nd or .npy file, s3://BUCKET/KEY, or - for standard output");
  add_size_option(app, "--frame-offset", rules->frame_offset, "Offset of the frame in the file (0)");
  app.add_option("--beta-bitshuffle", rules->beta_bitshuffle,
                 "Bit order in frames of 2.0.0-beta.3 to beta.5: new for beta.5, old for the others (new)")
      ->check(CLI::IsMember({"new", "old"}))
      ->type_name("new|old");
  add_frame_options(app, rules->wishes);
  add_checksums_option(app, rules->wishes.checksums);
  add_remote_tune_option(app, rules->for_servers);
  return [rules](Io& io) { return run_convert(*rules, io); };
}

}  // namespace cframefs::tools
