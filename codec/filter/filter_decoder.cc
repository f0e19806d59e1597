#include "codec/filter/filter_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "codec/filter/bitshuffle.h"
#include "codec/filter/bytedelta.h"
#include "codec/filter/delta.h"
#include "codec/filter/shuffle.h"
#include "codec/format/decode_params.h"

namespace cframefs::codec {
namespace {

bool old_bitshuffle(const ChunkHeader& header, const DecodeParams& params) {
  return header.version <= 3 || (header.version == 4 && params.old_bitshuffle);
}

std::size_t bytedelta_planes(const ChunkHeader& header, const DecodeParams& params, std::uint8_t meta) {
  if (meta != 0) return meta;
  const std::int32_t typesize = params.frame_typesize > 0 ? params.frame_typesize : header.typesize;
  return static_cast<std::size_t>(typesize);
}

bool only_shuffle_and_old_bytedelta(const ChunkHeader& header) {
  std::array<std::uint8_t, kFilterSlots> filters = header.filters;
  const auto end = std::remove(filters.begin(), filters.end(), static_cast<std::uint8_t>(FilterId::none));
  return end - filters.begin() == 2 && filters[0] == static_cast<std::uint8_t>(FilterId::shuffle) &&
         filters[1] == static_cast<std::uint8_t>(FilterId::bytedelta_old);
}

}  // namespace

Result<FilterDecoder> FilterDecoder::create(const ChunkHeader& header, const DecodeParams& params) {
  FilterDecoder pipeline;
  // The records of an instrumented chunk are not filtered.
  if (header.instrumented) return pipeline;
  for (int slot = kFilterSlots - 1; slot >= 0; --slot) {
    if (Result<void> added = pipeline.add(header, params, slot); !added) return Failure(added.error());
  }
  pipeline.shuffle_and_old_bytedelta_ = only_shuffle_and_old_bytedelta(header);
  return pipeline;
}

Result<void> FilterDecoder::add(const ChunkHeader& header, const DecodeParams& params, int slot) {
  const auto index = static_cast<std::size_t>(slot);
  const auto typesize = static_cast<std::size_t>(header.typesize);
  const std::uint8_t meta = header.filters_meta[index];
  const auto id = static_cast<FilterId>(header.filters[index]);
  switch (id) {
    case FilterId::none:
    case FilterId::trunc_prec:
    case FilterId::int_trunc:
      return {};  // lossy: the cut bits cannot be restored
    case FilterId::shuffle: {
      // The meaning of the meta byte changed over time (filters.md section 1).
      const bool repeats = header.version <= 4;
      const std::size_t times = repeats ? meta + std::size_t{1} : 1;
      const std::size_t width = repeats || meta == 0 ? typesize : meta;
      if (width > 1) steps_.push_back({id, width, times, false});
      return {};
    }
    case FilterId::bitshuffle:
      steps_.push_back({id, typesize, 1, old_bitshuffle(header, params)});
      return {};
    case FilterId::delta:
      steps_.push_back({id, delta_unit(typesize), 1, false});
      needs_reference_ = true;
      return {};
    case FilterId::bytedelta:
    case FilterId::bytedelta_old:
      steps_.push_back({id, bytedelta_planes(header, params, meta), 1, false});
      return {};
    case FilterId::ndcell:
    case FilterId::ndmean:
      return add_cells(header, params, index);
  }
  return unsupported("unknown filter " + std::to_string(header.filters[index]));
}

/// Adds ndcell or ndmean. Both are undone by reordering the items; ndmean stored only the mean of each cell.
Result<void> FilterDecoder::add_cells(const ChunkHeader& header, const DecodeParams& params, std::size_t slot) {
  const std::int32_t itemsize = params.frame_typesize > 0 ? params.frame_typesize : header.typesize;
  auto cells = CellOrder::create(params.blockshape, header.filters_meta[slot], static_cast<std::size_t>(itemsize));
  if (!cells) return Failure(cells.error());
  steps_.push_back({static_cast<FilterId>(header.filters[slot]), static_cast<std::size_t>(itemsize), 1, false,
                    std::make_shared<const CellOrder>(std::move(*cells))});
  return {};
}

bool FilterDecoder::moves_bytes(const Step& step, std::size_t length) {
  if (step.cells) return true;
  const std::size_t items = length / step.width;
  if (step.id == FilterId::shuffle) return items > 1;
  if (step.id == FilterId::bitshuffle) return items >= 8 && !(step.old_layout && items % 8 != 0);
  return false;
}

std::size_t FilterDecoder::missing_tail(std::size_t length) const {
  std::size_t most = 0;
  for (const Step& step : steps_) {
    if (step.id == FilterId::bytedelta_old) most = std::max(most, length % step.width);
  }
  return most;
}

Result<void> FilterDecoder::restore_tail(ByteSpan previous, ByteSpan filtered) const {
  // With other filters in the pipeline the content of the writer's buffer is not known.
  const Failure lost = unsupported("filter 34 (bytedelta) did not store the end of the block");
  if (!shuffle_and_old_bytedelta_) return lost;
  const std::size_t tail = missing_tail(filtered.size());
  const std::size_t begin = filtered.size() - tail;
  if (previous.size() - missing_tail(previous.size()) < filtered.size()) return lost;
  undo_bytedelta(steps_.front().width, BytedeltaKind::restarted, previous);
  std::copy_n(previous.begin() + static_cast<std::ptrdiff_t>(begin), tail,
              filtered.begin() + static_cast<std::ptrdiff_t>(begin));
  return {};
}

std::size_t FilterDecoder::swap_count(std::size_t length) const {
  return static_cast<std::size_t>(
      std::count_if(steps_.begin(), steps_.end(), [&](const Step& step) { return moves_bytes(step, length); }));
}

Result<void> FilterDecoder::undo(ByteSpan out, ByteSpan other, ByteView reference) const {
  const std::size_t length = out.size();
  ByteSpan now = swap_count(length) % 2 == 0 ? out : other;
  ByteSpan next = swap_count(length) % 2 == 0 ? other : out;
  for (const Step& step : steps_) {
    switch (step.id) {
      case FilterId::shuffle:
      case FilterId::bitshuffle:
        if (!moves_bytes(step, length)) break;
        if (step.id == FilterId::bitshuffle) {
          bitunshuffle(step.width, now, next);
        } else if (step.times == 1) {
          unshuffle(step.width, now, next);
        } else {
          unshuffle_repeatedly(step.width, step.times, now, next);
        }
        std::swap(now, next);
        break;
      case FilterId::delta:
        if (reference.empty()) {
          undo_delta_within(step.width, now);
        } else {
          // Block 0 can be too short only in chunks with variable-length blocks. The result of the reference library
          // then depends on the order in which its threads decode.
          if (reference.size() < length) return unsupported("delta of a block that is longer than block 0");
          undo_delta_against(step.width, reference, now);
        }
        break;
      case FilterId::ndcell:
      case FilterId::ndmean:
        if (length != step.cells->size())
          return corrupt("block of " + std::to_string(length) + " bytes does not match the block shape of the array");
        step.cells->undo(now, next);
        std::swap(now, next);
        break;
      case FilterId::bytedelta:
        undo_bytedelta(step.width, BytedeltaKind::whole, now);
        break;
      default:  // bytedelta_old; create() rejects all others
        undo_bytedelta(step.width, BytedeltaKind::restarted, now);
        break;
    }
  }
  return {};
}

std::size_t FilterDecoder::window_scratch(std::size_t length) const {
  // Twice the items that the window touches: once shuffled, once in order.
  return steps_.empty() ? 0 : 2 * (length + 2 * steps_.front().width);
}

void FilterDecoder::undo_window(ByteView filtered, std::size_t begin, ByteSpan out, ByteSpan scratch) const {
  if (out.empty()) return;
  std::size_t done = 0;
  if (!steps_.empty() && moves_bytes(steps_.front(), filtered.size())) {
    const std::size_t width = steps_.front().width;
    const std::size_t items = filtered.size() / width;
    const std::size_t first = begin / width;
    const std::size_t last = std::min((begin + out.size() + width - 1) / width, items);
    if (first < last) {
      const std::size_t count = last - first;
      const ByteSpan rows = scratch.first(count * width);
      const ByteSpan ordered = scratch.subspan(rows.size(), rows.size());
      for (std::size_t row = 0; row < width; ++row)
        std::memcpy(&rows[row * count], &filtered[row * items + first], count);
      unshuffle(width, rows, ordered);
      const std::size_t skipped = begin - first * width;
      done = std::min(out.size(), ordered.size() - skipped);
      std::memcpy(out.data(), &ordered[skipped], done);
    }
  }
  // Bytes that do not fill an item are not shuffled.
  if (done < out.size()) std::memcpy(&out[done], &filtered[begin + done], out.size() - done);
}

}  // namespace cframefs::codec
