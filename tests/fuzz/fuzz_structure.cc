// A contiguous frame whose parts are changed together: chunks are moved, shared, cut and joined, the index says where
// they are, and the seal describes what is there, so that hostile parts get past the first checks.
//
// The input is a frame, and after its last byte a script of 8-byte edits: u8 kind | u8 part | u16 place | u32 value. An
// input without a script is tried with made ones. The target knows what each chunk must be after the edits: its old
// bytes, its old bytes or an error (a chunk that was damaged after it was sealed), or anything.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "frame/cframe/cframe.h"
#include "frame/cframe/frame_layout.h"
#include "frame/container/chunk_reader.h"
#include "tests/fuzz/check_container.h"
#include "tests/fuzz/frame_parts.h"
#include "tests/fuzz/fuzz_target.h"

#ifdef CFRAMEFS_LIBFUZZER
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
#endif

namespace {

using namespace cframefs;
using test::Bytes;
using test::FrameParts;

constexpr std::size_t kMaxFrame = std::size_t{1} << 20;
constexpr std::size_t kMaxEntries = 256;
constexpr std::size_t kEditBytes = 8;
constexpr std::size_t kMaxEdits = 32;

enum class Kind : std::uint8_t {
  // The chunks stay what they are.
  swap_entries,
  share_chunk,
  make_zeros,
  move_chunk,
  put_gap,
  index_form,
  seal,
  // A sealed chunk is damaged: seen, or without effect.
  damage_chunk,
  // Anything may come of it, except what check_container() forbids.
  change_chunk,
  change_chunk_head,
  cut_chunk,
  join_chunks,
  change_entry,
  add_entry,
  drop_entry,
  change_header,
  change_page,
  change_root,
  change_seal,
  damage_index,
  damage_trailer,
  damage_anything,
  count,
};

constexpr auto kFirstHostile = static_cast<std::uint8_t>(Kind::change_chunk);

struct Edit {
  Kind kind = Kind::count;
  std::uint8_t part = 0;
  std::uint16_t place = 0;
  std::uint32_t value = 0;
};

/// What a chunk must be.
struct Expected {
  enum class Claim : std::uint8_t { same, same_or_error, anything } claim = Claim::same;
  Bytes plain;
};

bool may_be_frame(codec::ByteView input) {
  return input.size() >= frame::layout::kMinHeaderLength + frame::layout::kMinTrailerLength;
}

std::uint64_t frame_length(codec::ByteView input) {
  return codec::load_be<std::uint64_t>(&input[frame::layout::kFrameLengthAt]);
}

std::shared_ptr<const frame::Container> open(codec::ByteView bytes) {
  const auto opened =
      frame::open_cframe(frame::memory_source({bytes.begin(), bytes.end()}), std::make_shared<frame::IndexCache>());
  if (!opened) return nullptr;
  return *opened;
}

std::optional<Bytes> decoded(const frame::Container& container, std::size_t entry) {
  const auto reader = frame::ChunkReader::open(container, frame::ChunkNumber{static_cast<std::int64_t>(entry)});
  if (!reader || (*reader)->decoder().nbytes() > test::kBudget) return std::nullopt;
  codec::DecodeContext context;
  Bytes plain((*reader)->decoder().nbytes());
  if (!frame::decode_whole(context, **reader, plain)) return std::nullopt;
  return plain;
}

/// The values that break arithmetic, beside the one that the script has.
std::uint64_t hostile_value(std::uint32_t value) {
  constexpr std::array<std::uint64_t, 8> kValues = {1,          ~std::uint64_t{0},  0x7fffffff,         0x80000000,
                                                    0xffffffff, 0x8000000000000000, 0x7fffffffffffffff, 0x100000000};
  return value < 64 ? kValues.at(value % kValues.size()) : value;
}

class ScriptedFrame {
 public:
  ScriptedFrame(FrameParts parts, std::vector<Expected> expected)
      : parts_(std::move(parts)), expected_(std::move(expected)) {
    for (const Expected& chunk : expected_)
      sizes_.push_back(chunk.plain.size());
  }

  void run(std::span<const Edit> script) {
    for (const Edit& edit : script)
      change_parts(edit);
    test::AssembledFrame frame = test::put_together(parts_);
    for (const Edit& edit : script)
      damage(frame, edit);
    check(frame.bytes);
  }

 private:
  using Claim = Expected::Claim;

  test::FrameEntry& entry(std::uint64_t number) { return parts_.entries[number % parts_.entries.size()]; }
  Expected& expected(std::uint64_t number) { return expected_[number % expected_.size()]; }
  bool has_chunks() const { return !parts_.chunks.empty(); }
  bool has_chunks_of_one_size() const {
    return codec::load_be<std::int32_t>(&parts_.header[frame::layout::kChunksizeAt]) != 0;
  }
  void expect_anything() { is_hostile_ = true; }

  /// Nothing is claimed any more of the entries of this chunk.
  void distrust(std::size_t chunk, Claim claim) {
    for (std::size_t i = 0; i < parts_.entries.size(); ++i) {
      if (parts_.entries[i].chunk == chunk) expected_[i].claim = std::max(expected_[i].claim, claim);
    }
  }

  void change_parts(const Edit& edit) {
    switch (edit.kind) {
      case Kind::swap_entries:
        return swap_entries(edit.part, edit.place);
      case Kind::share_chunk:
        return share_chunk(edit.part, edit.place);
      case Kind::make_zeros:
        return make_zeros(edit.part);
      case Kind::index_form:
        parts_.index_form = static_cast<test::IndexForm>(edit.value % 2);
        return;
      case Kind::seal:
        parts_.seal_form = static_cast<test::SealForm>(edit.value % 3);
        parts_.chunks_per_page = 1 + edit.place % 8;
        return;
      case Kind::add_entry:
        if (parts_.entries.size() >= kMaxEntries) return;
        parts_.entries.push_back(entry(edit.part));
        expected_.push_back({Claim::anything, {}});
        sizes_.resize(std::max(sizes_.size(), expected_.size()));
        return expect_anything();
      case Kind::drop_entry:
        if (parts_.entries.size() < 2) return;
        parts_.entries.pop_back();
        expected_.pop_back();
        return expect_anything();
      case Kind::change_entry:
        return change_entry(entry(edit.part), hostile_value(edit.value));
      case Kind::change_header:
        return change_header(edit);
      case Kind::change_page:
        parts_.pages.push_back({edit.place, hostile_value(edit.value)});
        return expect_anything();
      case Kind::change_root:
        parts_.root.push_back({edit.place, hostile_value(edit.value)});
        return expect_anything();
      case Kind::change_seal:
        parts_.seal.push_back({edit.place, hostile_value(edit.value)});
        return expect_anything();
      default:
        return change_chunks(edit);
    }
  }

  void change_chunks(const Edit& edit) {
    if (!has_chunks()) return;
    const std::size_t chunk = edit.part % parts_.chunks.size();
    const std::size_t other = edit.value % parts_.chunks.size();
    Bytes& bytes = parts_.chunks[chunk];
    switch (edit.kind) {
      case Kind::move_chunk:
        return std::swap(parts_.order[chunk], parts_.order[edit.place % parts_.order.size()]);
      case Kind::put_gap:
        parts_.gaps[chunk].assign(edit.place % 300, static_cast<std::uint8_t>(edit.value));
        return;
      case Kind::change_chunk:
        test::poke(bytes, {edit.place, hostile_value(edit.value)});
        break;
      case Kind::change_chunk_head: {
        constexpr std::size_t kChunkHead = 64;  // header, and some block starts
        test::poke(codec::ByteSpan(bytes).first(std::min(kChunkHead, bytes.size())),
                   {edit.place, hostile_value(edit.value)});
        break;
      }
      case Kind::cut_chunk:
        bytes.resize(edit.place % (bytes.size() + 1));
        break;
      case Kind::join_chunks: {
        const Bytes tail = parts_.chunks[other];
        const std::size_t at = edit.place % (std::min(bytes.size(), tail.size()) + 1);
        bytes.resize(at);
        bytes.insert(bytes.end(), tail.begin() + static_cast<std::ptrdiff_t>(at), tail.end());
        break;
      }
      default:
        return;
    }
    distrust(chunk, Claim::anything);
    // The sizes of all chunks tell where each begins.
    if (!has_chunks_of_one_size()) expect_anything();
  }

  void swap_entries(std::uint64_t a, std::uint64_t b) {
    std::swap(entry(a), entry(b));
    std::swap(expected(a), expected(b));
    check_size(a);
    check_size(b);
  }

  void share_chunk(std::uint64_t from, std::uint64_t to) {
    entry(to) = entry(from);
    expected(to) = expected(from);
    check_size(to);
  }

  /// Claims nothing of an entry that has a chunk of another size than is due there, or of a size that is not known: one
  /// that was damaged from the beginning.
  void check_size(std::uint64_t number) {
    const Expected& chunk = expected(number);
    if (chunk.claim == Claim::same && chunk.plain.size() == sizes_[number % expected_.size()]) return;
    expected(number).claim = Claim::anything;
    if (!has_chunks_of_one_size()) expect_anything();
  }

  void make_zeros(std::uint64_t number) {
    entry(number) = {std::nullopt, frame::layout::kZerosEntry};
    Bytes& plain = expected(number).plain;
    std::fill(plain.begin(), plain.end(), std::uint8_t{0});
    check_size(number);
    // Only one chunk without a header has a size that is known.
    if (!has_chunks_of_one_size()) expect_anything();
  }

  void change_entry(test::FrameEntry& changed, std::uint64_t added) {
    changed.value = static_cast<std::int64_t>(static_cast<std::uint64_t>(changed.value) + added);
    expect_anything();
  }

  void change_header(const Edit& edit) {
    namespace layout = frame::layout;
    constexpr std::array<std::size_t, 10> kFields = {
        layout::kNbytesAt, layout::kTypesizeAt,     layout::kBlocksizeAt, layout::kChunksizeAt, layout::kFiltersAt,
        layout::kCodecAt,  layout::kGeneralFlagsAt, layout::kFrameTypeAt, layout::kSplitModeAt, layout::kMetalayersAt};
    const std::size_t field = kFields.at(edit.part % kFields.size());
    test::poke(codec::ByteSpan(parts_.header).subspan(field), {edit.place % 8U, hostile_value(edit.value)});
    expect_anything();
  }

  void damage(test::AssembledFrame& frame, const Edit& edit) {
    const codec::ByteSpan bytes = frame.bytes;
    const test::Poke change = {edit.place, hostile_value(edit.value)};
    switch (edit.kind) {
      case Kind::damage_chunk: {
        if (!has_chunks()) return;
        const std::size_t chunk = edit.part % frame.chunks.size();
        const codec::ByteRange range = frame.chunks[chunk];
        test::poke(bytes.subspan(range.begin, range.size()), change);
        const bool is_sealed = parts_.seal_form != test::SealForm::none;
        distrust(chunk, is_sealed ? Claim::same_or_error : Claim::anything);
        if (!has_chunks_of_one_size()) expect_anything();
        return;
      }
      case Kind::damage_index:
        test::poke(bytes.subspan(frame.index.begin, frame.index.size()), change);
        break;
      case Kind::damage_trailer:
        test::poke(bytes.subspan(frame.trailer.begin), change);
        break;
      case Kind::damage_anything:
        test::poke(bytes, {change.place * std::uint64_t{edit.part}, change.value});
        break;
      default:
        return;
    }
    expect_anything();
  }

  void check(const Bytes& bytes) const {
    const std::shared_ptr<const frame::Container> container = open(bytes);
    FUZZ_CHECK(container || is_hostile_);
    if (!container) return;
    test::check_container(container);
    if (is_hostile_) return;
    FUZZ_CHECK(static_cast<std::size_t>(container->chunk_count()) == expected_.size());
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      if (expected_[i].claim == Claim::anything) continue;
      const auto plain = decoded(*container, i);
      if (expected_[i].claim == Claim::same) FUZZ_CHECK(plain.has_value());
      if (plain) FUZZ_CHECK(*plain == expected_[i].plain);
    }
  }

  FrameParts parts_;
  std::vector<Expected> expected_;  // of each entry
  std::vector<std::size_t> sizes_;  // of the chunks that are due, at least one for each entry
  bool is_hostile_ = false;         // nothing is claimed of any entry
};

std::vector<Edit> parse_script(codec::ByteView bytes) {
  std::vector<Edit> script;
  for (std::size_t at = 0; at + kEditBytes <= bytes.size() && script.size() < kMaxEdits; at += kEditBytes) {
    const auto kind = static_cast<Kind>(bytes[at] % static_cast<std::uint8_t>(Kind::count));
    script.push_back({kind, bytes[at + 1], codec::load_le<std::uint16_t>(&bytes[at + 2]),
                      codec::load_le<std::uint32_t>(&bytes[at + 4])});
  }
  return script;
}

/// Every other script has only edits of which the target knows what must come.
Bytes make_script(std::mt19937& random, bool is_hostile) {
  Bytes script(kEditBytes * (1 + random() % 8));
  for (std::uint8_t& byte : script)
    byte = static_cast<std::uint8_t>(random());
  for (std::size_t at = 0; !is_hostile && at < script.size(); at += kEditBytes)
    script[at] = static_cast<std::uint8_t>(script[at] % kFirstHostile);
  return script;
}

#ifndef CFRAMEFS_LIBFUZZER
void run_made_scripts(const FrameParts& parts, const std::vector<Expected>& expected) {
  constexpr int kMadeScripts = 128;
  std::mt19937 random(static_cast<std::mt19937::result_type>(parts.header.size() + parts.chunks.size()));
  for (int i = 0; i < kMadeScripts; ++i) {
    const Bytes script = make_script(random, i % 2 == 1);
    ScriptedFrame(parts, expected).run(parse_script(script));
  }
}
#endif

}  // namespace

#ifdef CFRAMEFS_LIBFUZZER
/// Three times in four changes only the script.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  const codec::ByteView input(data, size);
  if (seed % 4 == 0 || !may_be_frame(input) || frame_length(input) > size)
    return LLVMFuzzerMutate(data, size, max_size);
  const std::uint64_t frame = frame_length(input);
  if (size == frame) {
    std::mt19937 random(seed);
    const Bytes script = make_script(random, seed % 2 == 1);
    if (max_size - size < script.size()) return size;
    std::copy(script.begin(), script.end(), data + size);
    return size + script.size();
  }
  return frame + LLVMFuzzerMutate(data + frame, size - frame, max_size - frame);
}
#endif

FUZZ_TARGET(structure)(const std::uint8_t* data, std::size_t size) {
  const codec::ByteView input(data, size);
  if (!may_be_frame(input) || size > kMaxFrame) return 0;
  const std::shared_ptr<const frame::Container> container = open(input);
  if (!container || container->parameters().nbytes > test::kBudget) return 0;
  const auto parts = test::take_apart(input, *container, test::kChunks);
  if (!parts) return 0;
  std::vector<Expected> expected;
  for (std::size_t i = 0; i < parts->entries.size(); ++i) {
    auto plain = decoded(*container, i);
    const Expected::Claim claim = plain ? Expected::Claim::same : Expected::Claim::anything;
    expected.push_back({claim, std::move(plain).value_or(Bytes())});
  }
  const std::vector<Edit> script = parse_script(input.subspan(frame_length(input)));
  if (!script.empty()) {
    ScriptedFrame(*parts, std::move(expected)).run(script);
    return 0;
  }
#ifndef CFRAMEFS_LIBFUZZER
  run_made_scripts(*parts, expected);
#endif
  return 0;
}
