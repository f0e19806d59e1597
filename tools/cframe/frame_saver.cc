#include "tools/cframe/frame_saver.h"

#include <algorithm>
#include <cerrno>

#include <fmt/core.h>

#include "codec/stream/encode_context.h"
#include "frame/cframe/frame_layout.h"
#include "frame/write/compaction.h"

namespace cframefs::tools {

using codec::Error;
using codec::Result;
using codec::SpecialValue;
using frame::ChunkNumber;

namespace {

/// Bytes by which the copy of metalayers that share bytes may exceed the frame.
constexpr std::uint64_t kFreeLayers = std::uint64_t{32} << 20;

/// Largest number of losses that are printed one by one.
constexpr std::int64_t kMaxReported = 10000;

/// A chunk is encoded again if its stored size exceeds twice its uncompressed size by more than this.
constexpr std::uint64_t kMaxSlack = std::uint64_t{1} << 20;

/// Chunks of zeros up to this size are stored if they end within an item.
constexpr std::int32_t kMaxOddZeros = 64 << 20;

}  // namespace

Result<void> FrameSaver::run() {
  if (auto saved = save_chunks(); !saved) return saved;
  frame::ParseBudget budget = frame::ParseBudget::asked(from_.stored_bytes());
  const auto layers = check_vlmetalayers(budget);
  if (!layers) return codec::Failure(layers.error());
  return to_.finish(*layers, [&](std::size_t number) {
    auto stored = from_.stored_vlmetalayer((*layers)[number].name, budget);
    if (stored) budget.release_memory(stored->size());
    return stored;
  });
}

Result<void> FrameSaver::save_chunks() {
  const auto runs = from_.runs(ChunkNumber{0}, ChunkNumber{from_.chunk_count()});
  frame::ChunkRun run;
  while (!io_.stop.load()) {
    const auto more = runs->next(run);
    if (!more) return codec::Failure(more.error());
    if (!*more) return {};
    if (run.step > 1 && run.count > 1) {
      return codec::unsupported(fmt::format("the index repeats its entries every {} chunks", run.step));
    }
    if (append_known(run)) continue;
    if (auto saved = save(run); !saved) return saved;
  }
  return codec::io_error(EINTR, "read");
}

/// Appends the run if the new frame has its chunk already. A frame may have millions of such runs.
bool FrameSaver::append_known(const frame::ChunkRun& run) {
  if (!run.alike) return false;
  const auto& known = known_.slot(run.same);
  if (!known.value || known.same != run.same) return false;
  if (!to_.try_append_run(known.value->entry, plain_bytes(run.first), run.count)) return false;
  if (known.value->is_lost) lost_ += run.count;
  return true;
}

/// Returns the readable variable-length metalayers, which are copied as stored.
Result<std::vector<frame::MetalayerLength>> FrameSaver::check_vlmetalayers(frame::ParseBudget& budget) {
  std::vector<frame::MetalayerLength> layers;
  std::uint64_t left = kFreeLayers + from_.parameters().frame_length;
  for (const std::string& name : from_.vlmetalayer_names()) {
    if (io_.stop.load()) return codec::io_error(EINTR, "read");
    auto length = from_.stored_vlmetalayer_length(name);
    if (length && *length > left) {
      length = codec::unsupported("variable-length metalayer '" + name + "' of a frame whose metalayers share bytes");
    }
    auto checked = length ? from_.check_vlmetalayer(name, budget) : Result<void>(codec::Failure(length.error()));
    if (!checked) {
      if (checked.error().kind == codec::ErrorKind::io) return codec::Failure(checked.error());
      ++lost_;
      report(io_, with_path(checked.error(), path_));
      continue;
    }
    left -= *length;
    layers.push_back({name, *length});
  }
  return layers;
}

std::int32_t FrameSaver::plain_bytes(ChunkNumber chunk) const {
  return static_cast<std::int32_t>(
      std::min(chunksize_, nbytes_ - static_cast<std::uint64_t>(chunk.value) * chunksize_));
}

Result<void> FrameSaver::save(const frame::ChunkRun& run) {
  const std::int32_t nbytes = plain_bytes(run.first);
  const std::int64_t lost = lost_;
  if (auto saved = save_first(run, nbytes); !saved) return saved;
  const Saved saved{to_.last_entry(), lost_ > lost};
  if (run.alike) {
    auto& known = known_.slot(run.same);
    known.same = run.same;
    known.value = saved;
  }
  const std::int64_t left = run.count - 1;
  if (left == 0) return {};
  if (saved.is_lost) lost_ += left;
  return to_.append_run(saved.entry, nbytes, left);
}

/// Saves the first chunk of the run, or zeros in its place.
Result<void> FrameSaver::save_first(const frame::ChunkRun& run, std::int32_t nbytes) {
  if (run.damage != nullptr) return lose(*run.damage, run, nbytes);
  const auto location = from_.locate_chunk(run.first);
  if (!location) return lose(location.error(), run, nbytes);
  if (location->special != SpecialValue::none)
    return to_.append_run(frame::special_entry_of(location->special), nbytes, 1);
  const auto saved = save_stored(run.first);
  return saved ? saved : lose(saved.error(), run, nbytes);
}

Result<void> FrameSaver::save_stored(ChunkNumber chunk) {
  const auto reader = frame::ChunkReader::open(from_, chunk);
  if (!reader) return codec::Failure(reader.error());
  if (auto decoded = decoder_.check(**reader); !decoded) return decoded;
  const codec::ChunkHeader& header = (*reader)->decoder().header();
  const auto cbytes = static_cast<std::uint64_t>(header.cbytes);
  // Gaps between blocks make the stored size unbounded: then encode the chunk again.
  const auto nbytes = static_cast<std::uint64_t>(header.nbytes);
  if (cbytes > 2 * nbytes + kMaxSlack) return save_anew(**reader);
  copied_ += cbytes;
  // This is a fault of the frame, not damage of this chunk.
  shares_bytes_ = copied_ > from_.parameters().cbytes;
  if (shares_bytes_) return codec::unsupported("the chunks of the frame share bytes");
  return to_.append_stored(**reader);
}

Result<void> FrameSaver::save_anew(const frame::ChunkReader& reader) {
  std::vector<std::uint8_t> plain(reader.decoder().nbytes());
  if (auto decoded = decoder_.decode(reader, 0, plain); !decoded) return decoded;
  return encode(plain);
}

Result<void> FrameSaver::encode(codec::ByteView plain) {
  codec::EncodeContext context;
  const auto encoded = codec::encode_chunk(context, frame::encode_parameters(from_.parameters()), plain);
  return encoded ? to_.append(*encoded) : Result<void>(codec::Failure(encoded.error()));
}

/// Saves zeros in place of the first chunk, and reports all chunks of the run as lost.
Result<void> FrameSaver::lose(Error error, const frame::ChunkRun& run, std::int32_t nbytes) {
  if (error.kind == codec::ErrorKind::io || shares_bytes_) return codec::Failure(error);
  ++lost_;
  if (!error.chunk) error.chunk = run.first.value;
  if (reported_++ < kMaxReported) {
    report(io_, with_path(error, path_));
    if (run.count > 1) {
      io_.err.print(
          fmt::format("cframe: {}: the next {} chunks have the same damage\n", printable(path_), run.count - 1));
    }
  }
  return save_zeros(nbytes);
}

/// Saves a chunk of zeros. The reference library reads special chunks only if they consist of whole items.
Result<void> FrameSaver::save_zeros(std::int32_t nbytes) {
  if (nbytes % from_.parameters().typesize == 0 || nbytes > kMaxOddZeros) {
    return to_.append_run(frame::layout::kZerosEntry, nbytes, 1);
  }
  return encode(std::vector<std::uint8_t>(static_cast<std::size_t>(nbytes)));
}

}  // namespace cframefs::tools
