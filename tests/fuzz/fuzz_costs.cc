// What a container costs: opening it in whatever format, and what stat, open, getfattr, a first read, a search for
// holes and `cframe info`, `verify` and `repair` do to it, take no more memory and reads than what is stored justifies.
//
// Budgets are counts, not times: bytes that operator new has handed out at once, bytes and calls of reads. The last
// eight bytes of the input may ask for a hole, whose place and length they tell: what lies in it is not stored. Frames
// end with zeros there, which ask for none.
#include <algorithm>
#include <atomic>

#include "frame/array/array_view.h"
#include "frame/cframe/cframe.h"
#include "frame/compat/bare_chunk.h"
#include "frame/compat/bloscpack.h"
#include "frame/compat/legacy_frame.h"
#include "frame/container/chunk_reader.h"
#include "frame/open/container_info.h"
#include "frame/repair/salvage.h"
#include "frame/store/store.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/memory_meter.h"

namespace cframefs::costs {
namespace {

using frame::ChunkNumber;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::size_t kHoleField = 8;

/// Blocks up to this size are decoded: that one block is as large as it is, its reader has to bear.
constexpr std::uint64_t kMaxBlock = kMiB;
constexpr std::size_t kIndexCache = kMiB;
constexpr std::uint64_t kMaxRuns = 1 << 16;
constexpr std::int64_t kMaxChunks = 64;

/// The input with its hole, and how much of it was read how often.
class CountingSource final : public frame::ByteSource {
 public:
  CountingSource(const std::uint8_t* data, std::size_t size) : bytes_(data, data + size) {
    if (size < kHoleField) return;
    hole_at_ = std::min<std::uint64_t>(codec::load_le<std::uint32_t>(&bytes_[size - 8]), size);
    hole_ = codec::load_le<std::uint32_t>(&bytes_[size - 4]);
  }

  std::uint64_t size() const override { return bytes_.size() + hole_; }
  codec::Result<void> read(frame::FileOffset at, codec::ByteSpan into) const override {
    if (at.value > size() || into.size() > size() - at.value) return codec::corrupt("read past the end");
    calls_.fetch_add(1);
    read_.fetch_add(into.size());
    for (std::size_t done = 0; done < into.size();)
      done += read_part(at.value + done, into.subspan(done));
    return {};
  }

  std::uint64_t calls() const { return calls_; }
  std::uint64_t read_bytes() const { return read_; }

 private:
  /// As far as what is asked for lies on one side of the hole's ends.
  std::size_t read_part(std::uint64_t at, codec::ByteSpan into) const {
    const bool in_hole = at >= hole_at_ && at < hole_at_ + hole_;
    const std::uint64_t end = at < hole_at_ ? hole_at_ : in_hole ? hole_at_ + hole_ : size();
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(end - at, into.size()));
    const std::uint64_t stored = at < hole_at_ ? at : at - hole_;
    if (in_hole) {
      std::fill_n(into.begin(), part, std::uint8_t{0});
    } else {
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(stored), part, into.begin());
    }
    return part;
  }

  const std::vector<std::uint8_t> bytes_;
  std::uint64_t hole_at_ = 0;
  std::uint64_t hole_ = 0;
  mutable std::atomic<std::uint64_t> calls_ = 0;
  mutable std::atomic<std::uint64_t> read_ = 0;
};

/// Ends the program when a step has cost more than it may.
class Budget {
 public:
  Budget(const char* step, const CountingSource& source, std::size_t size)
      : step_(step),
        source_(source),
        size_(size),
        calls_(source.calls()),
        read_(source.read_bytes()),
        idle_(test::reset_peak()) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  ~Budget() {
    hold("bytes held", test::peak_bytes() - std::min(idle_, test::peak_bytes()), memory_ * kMiB + 16 * size_);
    hold("reads", source_.calls() - calls_, 4096 + size_);
    hold("bytes read", source_.read_bytes() - read_, read_free_ * kMiB + 256 * size_);
  }
  /// What it may take whatever is stored.
  Budget& may_take(std::uint64_t memory_mib, std::uint64_t read_mib) {
    memory_ = memory_mib;
    read_free_ = read_mib;
    return *this;
  }

 private:
  void hold(const char* what, std::uint64_t cost, std::uint64_t most) const {
    if (cost <= most) return;
    std::fprintf(stderr, "%s: %llu %s, %llu may be\n", step_, static_cast<unsigned long long>(cost), what,
                 static_cast<unsigned long long>(most));
    std::abort();
  }

  const char* step_;
  const CountingSource& source_;
  const std::size_t size_;
  const std::uint64_t calls_;
  const std::uint64_t read_;
  const std::size_t idle_;
  std::uint64_t memory_ = 16;
  std::uint64_t read_free_ = 1;
};

using Opened = codec::Result<std::shared_ptr<const frame::Container>>;

void read_first_block(const frame::Container& container) {
  const auto span = container.chunk_at(frame::FlatOffset{0});
  if (!span) return;
  const auto reader = frame::ChunkReader::open(container, span->chunk);
  if (!reader || (*reader)->decoder().block_count() == 0) return;
  const auto size = static_cast<std::size_t>((*reader)->decoder().block_range(0).size());
  if (size > kMaxBlock) return;
  const auto location = container.locate_chunk(span->chunk);
  const bool has_digest = location && location->verifier;  // of the whole chunk
  if (has_digest && (*reader)->decoder().nbytes() > kMaxBlock) return;
  codec::DecodeContext context;
  std::vector<std::uint8_t> plain(size);
  const codec::ByteSpan out = plain;
  static_cast<void>((*reader)->decode(context, 0, std::span(&out, 1), {}));
}

void seek(const frame::FlatView& view) {
  for (const bool hole : {true, false}) {
    for (const std::uint64_t at : {std::uint64_t{0}, view.size() / 2})
      static_cast<void>(view.seek(frame::FlatOffset{at}, hole));
  }
}

/// What info and verify walk through.
void walk_runs(const frame::Container& container) {
  const auto runs = container.runs(ChunkNumber{0}, ChunkNumber{container.chunk_count()});
  frame::ChunkRun run;
  std::int64_t next = 0;
  for (std::uint64_t i = 0; i < kMaxRuns; ++i) {
    const auto more = runs->next(run);
    if (!more || !*more) return;
    FUZZ_CHECK(run.count > 0 && run.step > 0 && run.first.value >= next);
    FUZZ_CHECK((run.count - 1) * run.step + run.first.value < container.chunk_count());
    next = run.step == 1 ? run.first.value + run.count : run.first.value + 1;
    if (i < kMaxChunks) static_cast<void>(frame::ChunkReader::open(container, run.first));
  }
}

void check(const char* format, const CountingSource& source, std::size_t size, const Opened& opened, bool is_array) {
  if (!opened) return;
  const frame::Container& container = **opened;
  std::shared_ptr<const frame::FlatView> view;
  {
    const Budget budget(format, source, size);
    const auto made = frame::make_view(*opened, frame::ArrayForm::npy, is_array);
    if (made) view = *made;
  }
  if (view) {
    Budget budget("a search for holes", source, size);
    budget.may_take(16, 16);
    seek(*view);
  }
  {
    Budget budget("a first read", source, size);
    budget.may_take(48, 16);
    read_first_block(container);
  }
  {
    Budget budget("attributes", source, size);
    budget.may_take(64, 16);
    static_cast<void>(frame::info_json(container));
    for (const std::string& name : container.vlmetalayer_names())
      static_cast<void>(container.vlmetalayer(name));
  }
  Budget budget("info", source, size);
  budget.may_take(32, 16);
  walk_runs(container);
}

void check_formats(const std::shared_ptr<CountingSource>& source, std::size_t size) {
  const auto cache = std::make_shared<frame::IndexCache>(kIndexCache);
  const auto open = [&](const auto& attempt) -> Opened {
    const Budget budget("opening", *source, size);
    return attempt();
  };
  check("cframe", *source, size, open([&]() -> Opened { return frame::open_cframe(source, cache); }), false);
  check("array", *source, size, open([&]() -> Opened { return frame::open_cframe(source, cache); }), true);
  check("legacy", *source, size, open([&]() -> Opened { return frame::open_legacy_frame(source, cache, false); }),
        false);
  check("bloscpack", *source, size, open([&]() -> Opened { return frame::open_bloscpack(source); }), false);
  check("chunk", *source, size, open([&]() -> Opened { return frame::open_bare_chunk(source, true); }), false);
}

}  // namespace
}  // namespace cframefs::costs

FUZZ_TARGET(costs)(const std::uint8_t* data, std::size_t size) {
  using namespace cframefs;
  using namespace cframefs::costs;
  const auto source = std::make_shared<CountingSource>(data, size);
  check_formats(source, size);
  // A search decodes what looks like chunks, in blocks of 32 MiB at most; it reads a hole from end to end.
  if (source->size() <= 4 * size + kMiB) {
    Budget budget("a search for chunks", *source, size);
    budget.may_take(96, 300);
    static_cast<void>(frame::open_damaged(source, std::make_shared<frame::IndexCache>(kIndexCache)));
  }
  {
    const Budget budget("an embed store", *source, size);
    static_cast<void>(frame::Store::open_embed(source));
  }
  const Budget budget("a zip store", *source, size);
  static_cast<void>(frame::Store::open_zip(source, std::make_shared<frame::InflateMemory>()));
  return 0;
}
