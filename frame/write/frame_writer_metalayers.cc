// FrameMetalayers, and of FrameWriter the header and the trailer that hold them.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "frame/cframe/trailer.h"
#include "frame/write/frame_metalayers.h"
#include "frame/write/frame_writer-inl.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::load_be;

using Bytes = std::vector<std::uint8_t>;

Result<void> check_name(const std::string& name) {
  if (name.empty() || name.size() > layout::kMaxNameLength) {
    return codec::invalid(fmt::format("the name of the metalayer has {} bytes, 1 to {} are allowed", name.size(),
                                      layout::kMaxNameLength));
  }
  return {};
}

auto find_layer(std::vector<Metalayer>& layers, const std::string& name) {
  return std::find_if(layers.begin(), layers.end(), [&name](const Metalayer& layer) { return layer.name == name; });
}

/// A longer metalayer could be written, but not read.
Failure too_long(std::size_t length) {
  return codec::invalid(
      fmt::format("the variable-length metalayer has {} bytes, at most {} are supported", length, kMaxVlmetalayer));
}

/// Sets the content of a metalayer, or adds the metalayer if it does not exist.
Result<void> put_layer(std::vector<Metalayer>& layers, const std::string& name, Bytes content) {
  const auto found = find_layer(layers, name);
  if (found != layers.end()) {
    found->content = std::move(content);
    return {};
  }
  if (layers.size() >= layout::kMaxMetalayers) {
    return codec::invalid(fmt::format("a frame has at most {} metalayers of a kind", layout::kMaxMetalayers));
  }
  layers.push_back(Metalayer{name, std::move(content)});
  return {};
}

}  // namespace

/// Returns the variable-length metalayers of the committed state. Each content is the chunk, not decoded.
Result<std::vector<Metalayer>> FrameWriter::stored_vlmetalayers() const {
  if (is_blank_) return std::vector<Metalayer>();
  const Trailer& trailer = container_->trailer();
  if (trailer.map.damage) return Failure(*trailer.map.damage);
  const auto bytes = read_bytes(files_, file_->handle(), FileOffset{trailer.begin}, trailer.length);
  if (!bytes) return Failure(bytes.error());
  // Bytes of the trailer that no content has claimed yet. Overlapping contents could otherwise claim more memory than
  // the trailer has bytes.
  std::uint64_t left = trailer.length;
  std::vector<Metalayer> layers;
  for (const MapEntry& entry : trailer.map.entries) {
    const auto damaged = [&entry] {
      return codec::corrupt("variable-length metalayer '" + entry.name + "' is damaged");
    };
    const auto at = static_cast<std::uint64_t>(entry.offset);
    if (entry.offset < 0 || at > bytes->size() || bytes->size() - at < layout::kContentPrefix) return damaged();
    const std::uint64_t length = load_be<std::uint32_t>(&(*bytes)[at + 1]);
    if (length > bytes->size() - at - layout::kContentPrefix) return damaged();
    if (length > left) return codec::corrupt("variable-length metalayer '" + entry.name + "' overlaps another");
    left -= length;
    const ByteView content = ByteView(*bytes).subspan(at + layout::kContentPrefix, length);
    layers.push_back(Metalayer{entry.name, {content.begin(), content.end()}});
  }
  return layers;
}

Result<void> FrameMetalayers::set_variable(const std::string& name, ByteView content) {
  if (content.size() > kMaxVlmetalayer) return too_long(content.size());
  return set_stored(name, metalayer_chunk(content));
}

Result<void> FrameMetalayers::set_stored(const std::string& name, Bytes chunk) {
  if (auto fine = check_name(name); !fine) return fine;
  return change_variable([&](std::vector<Metalayer>& layers) -> Result<void> {
    std::vector<std::uint64_t> lengths = {chunk.size()};
    for (const Metalayer& layer : layers) {
      if (layer.name != name) lengths.push_back(layer.content.size());
    }
    if (auto fits = check_metalayer_room(lengths); !fits) return fits;
    return put_layer(layers, name, std::move(chunk));
  });
}

/// Applies `change` to the pending metalayers, in place. REQUIRES: `change` leaves the metalayers as they are if it
/// fails.
Result<void> FrameMetalayers::change_variable(const std::function<Result<void>(std::vector<Metalayer>&)>& change) {
  if (writer_.vlmetalayers_) return change(*writer_.vlmetalayers_);
  auto layers = writer_.stored_vlmetalayers();
  if (!layers) return Failure(layers.error());
  if (auto changed = change(*layers); !changed) return changed;
  writer_.vlmetalayers_ = std::move(*layers);
  return {};
}

Result<void> FrameMetalayers::remove_variable(const std::string& name) {
  return change_variable([&name](std::vector<Metalayer>& layers) -> Result<void> {
    const auto found = find_layer(layers, name);
    if (found == layers.end()) return codec::invalid("variable-length metalayer '" + name + "' does not exist");
    layers.erase(found);
    return {};
  });
}

Result<void> FrameMetalayers::set_fixed(const std::string& name, ByteView content) {
  if (auto fine = check_name(name); !fine) return fine;
  if (writer_.container_->metalayer_damage()) return Failure(*writer_.container_->metalayer_damage());
  auto layers =
      writer_.metalayers_ ? Result<std::vector<Metalayer>>(*writer_.metalayers_) : writer_.container_->metalayers();
  if (!layers) return Failure(layers.error());
  if (auto put = put_layer(*layers, name, {content.begin(), content.end()}); !put) return put;
  if (auto fits = check_metalayer_room(*layers); !fits) return fits;
  writer_.metalayers_ = std::move(*layers);
  return {};
}

Bytes FrameWriter::next_header() const {
  return metalayers_ ? with_metalayers(header_, *metalayers_) : header_;
}

bool FrameWriter::next_has_vlmetalayers() const {
  return vlmetalayers_ ? !vlmetalayers_->empty() : !container_->trailer().map.entries.empty();
}

/// Offsets in a trailer count from its first byte, so an unchanged trailer is copied byte for byte.
Result<Bytes> FrameWriter::next_trailer() const {
  if (vlmetalayers_ || is_blank_) return trailer_image(vlmetalayers_.value_or(std::vector<Metalayer>()));
  return container_->stored_trailer();
}

}  // namespace cframefs::frame
