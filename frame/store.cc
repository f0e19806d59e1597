#include "frame/store.h"

#include <algorithm>
#include <array>
#include <utility>

#include "frame/array_layer.h"
#include "frame/cframe.h"
#include "frame/chunk_reader.h"
#include "frame/msgpack.h"
#include "frame/zip_member.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using nlohmann::json;

constexpr std::string_view kEmbedName = "embed.b2e";
constexpr std::string_view kMapLayer = "estore_metadata";
constexpr std::size_t kMostLeaves = std::size_t{1} << 20;
constexpr std::uint64_t kMostBlock = std::uint64_t{64} << 20;

/// Whether a path from a file stays beneath the store, and can be a path at all.
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

/// Of what lies at `path`.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string_view last_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

/// A part of the plain bytes of the embed frame.
class EmbeddedSource final : public ByteSource {
 public:
  EmbeddedSource(const Store& store, std::uint64_t begin, std::uint64_t size)
      : store_(store), begin_(begin), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > size_ || into.size() > size_ - at.value) return corrupt("the entry ends before these bytes");
    return store_.read_embedded(begin_ + at.value, into);
  }

 private:
  const Store& store_;
  const std::uint64_t begin_;
  const std::uint64_t size_;
};

bool Store::is_hidden(std::string_view name) {
  return name == kEmbedName || name.starts_with(kMetadataName) || name.ends_with(".tmp");
}

void Store::add_folders(const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
    folders_.insert(path.substr(0, slash));
}

/// Of what is there already the first stays. REQUIRES: is_sound(path).
void Store::add(const std::string& path, Leaf leaf) {
  const std::string_view name = last_name(path);
  if (name == kMetadataName || name == std::string(kMetadataName) + ".b2f") {
    add_folders(path);
    metadata_.emplace(folder_of(path), std::move(leaf));
  } else if (!is_hidden(name)) {
    add_folders(path);
    leaves_.emplace(path, std::move(leaf));
  }
}

Result<std::shared_ptr<const Store>> Store::open_zip(std::shared_ptr<const ByteSource> source,
                                                     std::shared_ptr<InflateMemory> memory) {
  auto members = read_zip_directory(*source);
  if (!members) return Failure(members.error());
  const auto is_embed = [](const ZipMember& member) { return member.name == kEmbedName; };
  if (!*members || std::none_of((*members)->begin(), (*members)->end(), is_embed)) {
    return std::shared_ptr<const Store>();
  }
  auto store = std::make_shared<Store>();
  store->source_ = std::move(source);
  store->memory_ = std::move(memory);
  std::optional<ZipMember> embed;
  for (ZipMember& member : **members) {
    if (is_embed(member)) {
      embed = std::move(member);
    } else if (is_sound(member.name)) {
      const std::string name = member.name;
      Leaf leaf;
      leaf.size = member.size;
      leaf.stored = member.stored;
      leaf.member = std::move(member);
      store->add(name, std::move(leaf));
    }
  }
  auto frame = store->open_member(*embed);
  if (!frame) return Failure(frame.error());
  if (auto taken = store->take_embed(std::move(*frame)); !taken) return Failure(taken.error());
  return std::shared_ptr<const Store>(std::move(store));
}

Result<std::shared_ptr<const Store>> Store::open_embed(std::shared_ptr<const ByteSource> source) {
  auto store = std::make_shared<Store>();
  if (auto taken = store->take_embed(std::move(source)); !taken) return Failure(taken.error());
  return std::shared_ptr<const Store>(std::move(store));
}

Result<void> Store::take_embed(std::shared_ptr<const ByteSource> source) {
  auto opened = open_cframe(std::move(source), std::make_shared<IndexCache>());
  if (!opened) return Failure(opened.error());
  embed_ = std::move(*opened);
  const std::vector<std::string> layers = embed_->vlmetalayer_names();
  // It is not there in a store that never held anything.
  if (std::find(layers.begin(), layers.end(), kMapLayer) == layers.end()) return {};
  const auto content = embed_->vlmetalayer(std::string(kMapLayer));
  if (!content) return Failure(content.error());
  const auto map = parse_msgpack(*content);
  if (!map || !map->is_object() || !map->contains("embed_map") || !(*map)["embed_map"].is_object()) {
    return corrupt("the map of the embedded frames is damaged");
  }
  return take_entries((*map)["embed_map"]);
}

Result<void> Store::take_entries(const json& map) {
  const std::uint64_t available = embed_->parameters().nbytes;
  for (const auto& [key, entry] : map.items()) {
    if (!entry.is_object() || !key.starts_with('/') || !is_sound(std::string_view(key).substr(1))) continue;
    const auto offset = entry.find("offset");
    const auto length = entry.find("length");
    if (offset == entry.end() || length == entry.end()) continue;  // a remote reference
    if (!offset->is_number_unsigned() || !length->is_number_unsigned()) {
      return corrupt("the place of embedded frame '" + key + "' is damaged");
    }
    Leaf leaf;
    leaf.embedded = true;
    leaf.offset = offset->get<std::uint64_t>();
    leaf.size = length->get<std::uint64_t>();
    leaf.stored = leaf.size;
    if (leaf.offset > available || leaf.size > available - leaf.offset) {
      return corrupt("embedded frame '" + key + "' lies past the end");
    }
    if (leaves_.size() + metadata_.size() >= kMostLeaves) return codec::unsupported("too many frames in one store");
    const std::string stem = key.substr(1);
    if (is_hidden(last_name(stem))) {
      add(stem, std::move(leaf));
      continue;
    }
    // What it is shows only in its metalayers.
    const auto frame =
        open_cframe(std::make_unique<EmbeddedSource>(*this, leaf.offset, leaf.size), std::make_shared<IndexCache>());
    const auto array = frame ? array_layer_of(**frame) : Result<std::optional<ArrayLayer>>(std::optional<ArrayLayer>());
    const bool is_array = !array || array->has_value();  // a damaged layer is of an array, too
    // A file of the same key wins.
    if (!leaves_.contains(stem + ".b2nd") && !leaves_.contains(stem + ".b2f")) {
      add(stem + (is_array ? ".b2nd" : ".b2f"), std::move(leaf));
    }
  }
  return {};
}

const Store::Leaf* Store::find(const std::string& path) const {
  const auto found = leaves_.find(path);
  return found == leaves_.end() ? nullptr : &found->second;
}

const Store::Leaf* Store::metadata_of(const std::string& folder) const {
  const auto found = metadata_.find(folder);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::map<std::string, bool> Store::list(const std::string& folder) const {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  std::map<std::string, bool> names;
  const auto take = [&](const std::string& path, bool is_folder) {
    if (path.size() <= prefix.size() || !path.starts_with(prefix)) return;
    const std::string name = path.substr(prefix.size());
    if (name.find('/') == std::string::npos) names.emplace(name, is_folder);
  };
  for (const std::string& path : folders_)
    take(path, true);
  for (auto leaf = leaves_.lower_bound(prefix); leaf != leaves_.end() && leaf->first.starts_with(prefix); ++leaf)
    take(leaf->first, false);
  return names;
}

Result<std::unique_ptr<ByteSource>> Store::open(const Leaf& leaf) const {
  if (leaf.embedded) return std::make_unique<EmbeddedSource>(*this, leaf.offset, leaf.size);
  auto member = open_member(*leaf.member);
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

/// Decodes the block of the embed frame that holds plain byte `at` into block_.
Result<void> Store::load_block(std::uint64_t at) const {
  const auto span = embed_->locate(FlatOffset{at});
  if (!span) return Failure(span.error());
  const auto reader = ChunkReader::open(*embed_, span->chunk);
  if (!reader) return Failure(reader.error());
  const codec::ChunkDecoder& decoder = (*reader)->decoder();
  const std::uint64_t inner = at - span->begin.value;
  if (inner >= decoder.nbytes()) return corrupt("a chunk of the embed frame is too short");
  const std::uint32_t block = decoder.block_at(static_cast<std::uint32_t>(inner));
  const codec::ByteRange range = decoder.block_range(block);
  if (range.size() > kMostBlock) return codec::unsupported("the embed frame has blocks that are too large");
  codec::DecodeContext context;
  std::vector<std::uint8_t> reference;
  if (decoder.needs_reference() && block > 0) {
    reference.resize(decoder.block_range(0).size());
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

Result<void> Store::read_embedded(std::uint64_t at, ByteSpan into) const {
  const std::lock_guard lock(block_mutex_);
  while (!into.empty()) {
    if (at < block_begin_ || at - block_begin_ >= block_.size()) {
      if (auto done = load_block(at); !done) return done;
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
