#include "frame/store/store.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "frame/base/parse_budget.h"
#include "frame/cframe/cframe.h"
#include "frame/cframe/fixed_metalayers.h"
#include "frame/cframe/frame_header.h"
#include "frame/container/chunk_reader.h"
#include "frame/store/embed_map.h"
#include "frame/store/zip_member.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

constexpr std::string_view kEmbedName = "embed.b2e";
constexpr std::string_view kMapLayer = "estore_metadata";
constexpr std::size_t kMaxLeaves = std::size_t{1} << 20;
constexpr std::uint64_t kMaxBlock = std::uint64_t{32} << 20;
/// The most bytes of a frame's fixed header and map of metalayers.
constexpr std::uint64_t kLongestStart =
    layout::kFixedHeaderLength + layout::kMapEntriesAt + layout::kMaxMetalayers * layout::kMaxMapEntry + 3;

/// Returns true if an untrusted path is valid and stays inside the store.
bool is_sound(std::string_view path) {
  if (path.empty() || path.size() > 4096) return false;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
    if (name.find_first_of(std::string_view("\0\\", 2)) != std::string_view::npos) return false;
    if (slash + 1 == path.size()) return false;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return true;
}

std::string_view last_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

/// A range of the uncompressed bytes of the embed frame.
class EmbeddedSource final : public ByteSource {
 public:
  EmbeddedSource(std::shared_ptr<const Store> store, std::uint64_t begin, std::uint64_t size)
      : store_(std::move(store)), begin_(begin), size_(size) {}
  std::uint64_t size() const override { return size_; }
  std::uint64_t stored() const override { return std::min(size_, store_->embed_->stored_bytes()); }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > size_ || into.size() > size_ - at.value) return corrupt("read past the end of an embedded frame");
    return store_->read_embedded(begin_ + at.value, into);
  }

 private:
  const std::shared_ptr<const Store> store_;
  const std::uint64_t begin_;
  const std::uint64_t size_;
};

bool Store::is_hidden(std::string_view name) {
  return name == kEmbedName || name.starts_with(StoreIndex::kMetadataName) || name.ends_with(".tmp");
}

/// Adds a leaf or a group's metadata; ignores other hidden names. REQUIRES: is_sound(path).
Result<void> Store::add(const std::string& path, const Leaf& leaf, std::uint32_t order, ParseBudget& budget) {
  const std::string_view name = last_name(path);
  const std::string_view metadata = StoreIndex::kMetadataName;
  const bool is_metadata = name == metadata || name == std::string(metadata) + ".b2f";
  if (!is_metadata && is_hidden(name)) return {};
  if (index_.size() >= kMaxLeaves) {
    return codec::unsupported(fmt::format("store of more than {} frames", kMaxLeaves));
  }
  return index_.add(path, leaf, order, budget);
}

Result<bool> Store::is_store_zip(const ByteSource& source) {
  const auto embed = find_zip_member(source, kEmbedName);
  if (!embed) return Failure(embed.error());
  return embed->has_value();
}

Result<std::shared_ptr<const Store>> Store::open_zip(std::shared_ptr<const ByteSource> source,
                                                     std::shared_ptr<InflateMemory> memory) {
  const auto embed = find_zip_member(*source, kEmbedName);
  if (!embed) return Failure(embed.error());
  if (!*embed) return std::shared_ptr<const Store>();
  ParseBudget budget = ParseBudget::unasked(source->stored());
  auto store = std::make_shared<Store>();
  store->source_ = std::move(source);
  store->memory_ = std::move(memory);
  std::uint32_t order = 0;
  const auto walked = visit_zip_directory(*store->source_, [&](const ZipMember& member) -> Result<void> {
    if (member.name == kEmbedName || !is_sound(member.name)) return {};
    Leaf leaf;
    leaf.size = member.size;
    leaf.stored = member.stored;
    leaf.place = member.header;
    leaf.checksum = member.checksum;
    leaf.method = member.method;
    leaf.encrypted = member.encrypted;
    return store->add(member.name, leaf, order++, budget);
  });
  if (!walked) return Failure(walked.error());
  store->index_.settle();
  if ((*embed)->method == ZipMethod::deflated) {
    // Opening reads the end of the frame first, which inflates all of it.
    if (auto may = budget.spend_work((*embed)->size, "the deflated embed frame"); !may) return Failure(may.error());
  }
  auto frame = store->open_member(**embed);
  if (!frame) return Failure(frame.error());
  if (auto taken = store->parse_embed(std::move(*frame), budget); !taken) return Failure(taken.error());
  return std::shared_ptr<const Store>(std::move(store));
}

Result<std::shared_ptr<const Store>> Store::open_embed(std::shared_ptr<const ByteSource> source) {
  auto store = std::make_shared<Store>();
  ParseBudget budget = ParseBudget::unasked(source->stored());
  if (auto taken = store->parse_embed(std::move(source), budget); !taken) return Failure(taken.error());
  return std::shared_ptr<const Store>(std::move(store));
}

/// An entry of the map of the embed frame.
struct Store::Entry {
  std::string stem;  // the key as a path
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t number = 0;
};

Result<void> Store::parse_embed(std::shared_ptr<const ByteSource> source, ParseBudget& budget) {
  auto opened = open_cframe(std::move(source), std::make_shared<IndexCache>());
  if (!opened) return Failure(opened.error());
  embed_ = std::move(*opened);
  const std::vector<std::string> layers = embed_->vlmetalayer_names();
  const std::string name(kMapLayer);
  // A store that never held a frame has no map.
  if (std::find(layers.begin(), layers.end(), name) == layers.end()) return {};
  const auto length = embed_->vlmetalayer_length(name);
  if (!length) return Failure(length.error());
  // The content, and a string in the parser, which may be as long.
  const char* const thing = "the map of the embedded frames";
  if (auto fits = budget.take_memory(2 * *length, thing); !fits) return fits;
  if (auto may = budget.spend_work(2 * *length, thing); !may) return may;
  auto content = embed_->vlmetalayer(name);
  if (!content) return Failure(content.error());
  auto entries = read_entries(*content, budget);
  if (!entries) return Failure(entries.error());
  content->clear();
  content->shrink_to_fit();
  budget.release_memory(2 * *length);
  if (embed_->parameters().variable_chunks) {
    const auto chunks = static_cast<std::uint64_t>(embed_->chunk_count());
    if (auto may = budget.spend_work(chunks * ParseBudget::kStep, "the chunks of the embed frame"); !may) return may;
  }
  // Sorted by offset, so that each block is decoded only once.
  std::sort(entries->begin(), entries->end(), [](const Entry& one, const Entry& other) {
    return one.offset != other.offset ? one.offset < other.offset : one.number < other.number;
  });
  for (const Entry& entry : *entries) {
    if (auto added = add_entry(entry, budget); !added) return added;
  }
  index_.settle();
  return {};
}

Result<std::vector<Store::Entry>> Store::read_entries(ByteView map, ParseBudget& budget) const {
  const std::uint64_t available = embed_->parameters().nbytes;
  std::vector<Entry> entries;
  const auto wanted = [](const std::string& key) {
    return key.starts_with('/') && is_sound(std::string_view(key).substr(1));
  };
  const auto add_entry = [&](const EmbeddedPlace& place) -> Result<void> {
    if (place.offset > available || place.length > available - place.offset) {
      return corrupt(fmt::format("embedded frame '{}' of {} bytes at {} lies past the end at {}", place.key,
                                 place.length, place.offset, available));
    }
    const std::uint64_t held = sizeof(Entry) + place.key.size();
    if (auto fits = budget.take_memory(held, "the map of the embedded frames"); !fits) return fits;
    const auto number = static_cast<std::uint32_t>(entries.size());
    entries.push_back({place.key.substr(1), place.offset, place.length, number});
    return {};
  };
  if (auto done = visit_embed_map(map, wanted, add_entry); !done) return Failure(done.error());
  return entries;
}

Result<void> Store::add_entry(const Entry& entry, ParseBudget& budget) {
  Leaf leaf;
  leaf.embedded = true;
  leaf.place = entry.offset;
  leaf.size = entry.length;
  leaf.stored = std::min(entry.length, embed_->stored_bytes());
  // Zip members have lower orders and win over entries of the map. Of entries with the same key the last one wins.
  const std::uint32_t order = std::numeric_limits<std::uint32_t>::max() - entry.number;
  if (is_hidden(last_name(entry.stem))) return add(entry.stem, leaf, order, budget);
  // A zip member with the same key wins.
  if (index_.find(entry.stem + ".b2nd") != nullptr || index_.find(entry.stem + ".b2f") != nullptr) return {};
  const auto array = is_array(entry, budget);
  if (!array) return Failure(array.error());
  return add(entry.stem + (*array ? ".b2nd" : ".b2f"), leaf, order, budget);
}

/// Returns true if the header of the embedded frame names an array metalayer. Reads only the header, because opening
/// the frame would also read its end. Returns false for data that is not a frame.
Result<bool> Store::is_array(const Entry& entry, ParseBudget& budget) const {
  const auto length = static_cast<std::size_t>(std::min(entry.length, kLongestStart));
  if (auto may = budget.spend_work(length, "the headers of embedded frames"); !may) return Failure(may.error());
  std::vector<std::uint8_t> start(length);
  if (auto done = read_embedded(entry.offset, start, &budget); !done) {
    if (budget.is_exceeded() || done.error().kind == codec::ErrorKind::io) return Failure(done.error());
    return false;
  }
  if (length < layout::kMinHeaderLength || !parse_fixed_header(start)) return false;
  const MetalayerMap map = parse_map(ByteView(start).subspan(layout::kMetalayersAt), layout::kMaxMetalayers);
  return map.find("b2nd") != nullptr || map.find("caterva") != nullptr;
}

Result<std::unique_ptr<ByteSource>> Store::open(const Leaf& leaf) const {
  if (leaf.embedded) return std::make_unique<EmbeddedSource>(shared_from_this(), leaf.place, leaf.size);
  ZipMember zip_member;
  zip_member.name = index_.path_of(leaf);
  zip_member.size = leaf.size;
  zip_member.stored = leaf.stored;
  zip_member.header = leaf.place;
  zip_member.checksum = leaf.checksum;
  zip_member.method = leaf.method;
  zip_member.encrypted = leaf.encrypted;
  auto member = open_member(zip_member);
  if (!member) return Failure(member.error());
  return range_source(std::move(*member), FileOffset{0}, leaf.size);
}

Result<std::shared_ptr<const ByteSource>> Store::open_member(const ZipMember& member) const {
  const bool deflated = member.method == ZipMethod::deflated;
  if (deflated) {
    if (auto kept = members_.find(member.header)) return *kept;
  }
  auto opened = open_zip_member(source_, member, memory_);
  if (!opened || !deflated) return opened;
  return members_.insert(member.header, std::move(*opened), 1);
}

/// Returns the reader of `chunk`. Caches the last reader, or the error of opening it: opening the chunk for each block
/// would cost time proportional to the square of the number of blocks.
Result<std::shared_ptr<const ChunkReader>> Store::chunk_reader(ChunkNumber chunk, ParseBudget* budget) const {
  if (reader_ && reader_chunk_ == chunk) return *reader_;
  auto opened = ChunkReader::open(*embed_, chunk);
  if (!opened && opened.error().kind == codec::ErrorKind::io) return opened;
  reader_ = opened;
  reader_chunk_ = chunk;
  if (opened && budget != nullptr) {
    const std::uint64_t cost = (*opened)->footprint() + ParseBudget::kStep;
    if (auto may = budget->spend_work(cost, "a chunk of the embed frame"); !may) return Failure(may.error());
  }
  return opened;
}

/// Decodes the block of the embed frame that holds uncompressed byte `at` into block_.
Result<void> Store::load_block(std::uint64_t at, ParseBudget* budget) const {
  const auto span = embed_->chunk_at(FlatOffset{at});
  if (!span) return Failure(span.error());
  const auto reader = chunk_reader(span->chunk, budget);
  if (!reader) return Failure(reader.error());
  const codec::ChunkDecoder& decoder = (*reader)->decoder();
  const std::uint64_t inner = at - span->begin.value;
  if (inner >= decoder.nbytes()) {
    return corrupt(fmt::format("a chunk of the embed frame has only {} uncompressed bytes", decoder.nbytes()));
  }
  const std::uint32_t block = decoder.block_at(static_cast<std::uint32_t>(inner));
  const codec::ByteRange range = decoder.block_range(block);
  if (range.size() > kMaxBlock) {
    return codec::unsupported(
        fmt::format("a block of the embed frame has {} bytes, at most {} are supported", range.size(), kMaxBlock));
  }
  const std::uint64_t first = decoder.needs_reference() && block > 0 ? decoder.block_range(0).size() : 0;
  const std::uint64_t held = range.size() + first + decoder.stored_range(block).size();
  if (budget != nullptr) {
    const char* const thing = "a block of the embed frame";
    if (auto fits = budget->take_memory(held, thing); !fits) return fits;
    if (auto may = budget->spend_work(held + ParseBudget::kStep, thing); !may) return may;
    budget->release_memory(held);
  }
  block_.clear();
  block_.shrink_to_fit();
  codec::DecodeContext context;
  std::vector<std::uint8_t> reference;
  if (first > 0) {
    reference.resize(first);
    const std::array<ByteSpan, 1> outs = {ByteSpan(reference)};
    if (auto done = (*reader)->decode(context, 0, outs, {}); !done) return done;
  }
  std::vector<std::uint8_t> plain(range.size());
  const std::array<ByteSpan, 1> outs = {ByteSpan(plain)};
  if (auto done = (*reader)->decode(context, block, outs, reference); !done) return done;
  block_ = std::move(plain);
  block_begin_ = span->begin.value + range.begin;
  return {};
}

Result<void> Store::read_embedded(std::uint64_t at, ByteSpan into, ParseBudget* budget) const {
  const codec::MutexLock lock(block_mutex_);
  while (!into.empty()) {
    if (at < block_begin_ || at - block_begin_ >= block_.size()) {
      if (auto done = load_block(at, budget); !done) return done;
    }
    const std::uint64_t within = at - block_begin_;
    const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), block_.size() - within));
    std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(within), step, into.begin());
    into = into.subspan(step);
    at += step;
  }
  return {};
}

}  // namespace cframefs::frame
