#include "frame/cframe/b2nd_meta.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "frame/cframe/frame_layout.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

constexpr std::uint8_t kWithDtype = 0x97;  // array of 7
constexpr std::uint8_t kWithout = 0x95;    // array of 5
constexpr std::uint8_t kNumpyNotation = 0;

/// Reads big-endian fields from the front. After the first missing or wrong field, ok() is false for good.
class Fields {
 public:
  explicit Fields(ByteView bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }

  ByteView next_bytes(std::size_t size) {
    if (!ok_ || rest_.size() < size) {
      ok_ = false;
      return {};
    }
    return std::exchange(rest_, rest_.subspan(size)).first(size);
  }
  template <class T>
  T number() {
    const ByteView bytes = next_bytes(sizeof(T));
    return ok_ ? codec::load_be<T>(bytes.data()) : T{};
  }
  void expect(std::uint8_t marker) {
    if (number<std::uint8_t>() != marker) ok_ = false;
  }
  /// Reads one number for each dimension. C-Blosc2 computes the marker as 0x90 + ndim. For 16 dimensions this gives
  /// 0xa0, which is not a msgpack array marker, so `ndim` decides the length of the list.
  template <class T>
  std::vector<T> list(std::size_t ndim, std::uint8_t marker) {
    std::vector<T> numbers;
    expect(static_cast<std::uint8_t>(layout::kFixArray + ndim));
    for (std::size_t i = 0; i < ndim && ok_; ++i) {
      expect(marker);
      numbers.push_back(number<T>());
    }
    return numbers;
  }

 private:
  ByteView rest_;
  bool ok_ = true;
};

/// Replaces a blockshape of zeros by the chunkshape. The first caterva files have no blocks: a chunk holds its items in
/// C order, which equals one block of the chunk's shape.
void infer_blocks(B2ndMeta& layer) {
  const auto is_zero = [](std::int32_t extent) { return extent == 0; };
  if (std::all_of(layer.blockshape.begin(), layer.blockshape.end(), is_zero)) layer.blockshape = layer.chunkshape;
}

}  // namespace

Result<B2ndMeta> parse_array_layer(ByteView content) {
  Fields fields(content);
  const auto outer = fields.number<std::uint8_t>();
  if (outer != kWithDtype && outer != kWithout) {
    return corrupt(fmt::format("the array's metalayer begins with byte {}, must be 149 or 151", outer));
  }
  fields.number<std::uint8_t>();  // version: only one exists, and readers ignore the field
  const std::size_t ndim = fields.number<std::uint8_t>();
  if (ndim > kMaxDimensions)
    return corrupt(fmt::format("array of {} dimensions, at most {} are allowed", ndim, kMaxDimensions));
  B2ndMeta layer;
  layer.shape = fields.list<std::int64_t>(ndim, layout::kInt64);
  layer.chunkshape = fields.list<std::int32_t>(ndim, layout::kInt32);
  layer.blockshape = fields.list<std::int32_t>(ndim, layout::kInt32);
  if (outer == kWithDtype) {
    const auto notation = fields.number<std::uint8_t>();
    fields.expect(layout::kString32);
    const ByteView text = fields.next_bytes(fields.number<std::uint32_t>());
    if (notation == kNumpyNotation) layer.dtype.emplace(text.begin(), text.end());
  }
  if (!fields.ok()) return corrupt("the array's metalayer is damaged or truncated");
  if (outer == kWithout) infer_blocks(layer);
  return layer;
}

Result<std::optional<Metalayer>> array_metalayer_of(const Metalayers& layers) {
  for (const char* name : {"b2nd", "caterva"}) {
    for (const MetalayerPlace& place : layers.metalayer_places()) {
      if (place.name != name) continue;
      if (place.length > kMaxArrayLayer) {
        return codec::unsupported(
            fmt::format("the array's metalayer has {} bytes, at most {} are supported", place.length, kMaxArrayLayer));
      }
      auto content = layers.metalayer(place);
      if (!content) return Failure(content.error());
      return std::optional(Metalayer{place.name, std::move(*content)});
    }
  }
  return std::optional<Metalayer>();
}

Metalayer file_bytes_layer() {
  constexpr std::uint8_t kTrue = 0xc3;  // in msgpack
  return {std::string(kFileBytesLayer), {kTrue}};
}

bool holds_file_bytes(const Metalayers& layers) {
  const auto& places = layers.metalayer_places();
  return std::any_of(places.begin(), places.end(), [](const auto& place) { return place.name == kFileBytesLayer; });
}

Result<std::optional<B2ndMeta>> b2nd_meta_of(const Metalayers& layers) {
  const auto layer = array_metalayer_of(layers);
  if (!layer) return Failure(layer.error());
  if (*layer) {
    auto parsed = parse_array_layer((*layer)->content);
    if (!parsed) return Failure(parsed.error());
    return std::optional<B2ndMeta>(std::move(*parsed));
  }
  // A lost metalayer still proves that this is an array, of unknown shape. Its chunks must not be shown as plain bytes.
  for (const std::string& lost : layers.lost_metalayers()) {
    if (lost == "b2nd" || lost == "caterva") return Failure(*layers.metalayer_damage());
  }
  return std::optional<B2ndMeta>();
}

}  // namespace cframefs::frame
