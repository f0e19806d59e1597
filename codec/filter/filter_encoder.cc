#include "codec/filter/filter_encoder.h"

#include <string>
#include <utility>

#include "codec/filter/bitshuffle.h"
#include "codec/filter/bytedelta.h"
#include "codec/filter/delta.h"
#include "codec/filter/shuffle.h"
#include "codec/format/encode_parameters.h"

namespace cframefs::codec {
namespace {

Failure refused(std::uint8_t filter) {
  switch (static_cast<FilterId>(filter)) {
    case FilterId::trunc_prec:
      return unsupported("filter trunc_prec loses bits");
    case FilterId::int_trunc:
      return unsupported("filter int_trunc loses bits");
    case FilterId::ndmean:
      return unsupported("filter ndmean loses bits");
    case FilterId::ndcell:
      return unsupported("filter ndcell cannot be written");
    case FilterId::bytedelta_old:
      return unsupported("filter 34 (early bytedelta) cannot be written");
    default:
      return unsupported("unknown filter " + std::to_string(filter));
  }
}

}  // namespace

Result<void> FilterEncoder::check(const EncodeParameters& parameters) {
  for (const std::uint8_t filter : parameters.filters) {
    switch (static_cast<FilterId>(filter)) {
      case FilterId::none:
      case FilterId::shuffle:
      case FilterId::bitshuffle:
      case FilterId::delta:
      case FilterId::bytedelta:
        break;
      default:
        return refused(filter);
    }
  }
  return {};
}

FilterEncoder::FilterEncoder(const EncodeParameters& parameters, std::int32_t nbytes, std::int32_t blocksize) {
  for (std::size_t slot = 0; slot < parameters.filters.size(); ++slot)
    add(parameters, slot, nbytes, blocksize);
}

void FilterEncoder::add(const EncodeParameters& parameters, std::size_t slot, std::int32_t nbytes,
                        std::int32_t blocksize) {
  const auto id = static_cast<FilterId>(parameters.filters[slot]);
  const auto typesize = static_cast<std::size_t>(header_typesize(parameters));
  const std::uint8_t meta = parameters.filters_meta[slot];
  std::uint8_t stored_meta = 0;
  switch (id) {
    case FilterId::shuffle: {
      // The meta byte had other meanings in some releases: store 0 if it only repeats the typesize.
      const std::size_t width = meta == 0 ? typesize : meta;
      stored_meta = width == typesize ? 0 : meta;
      if (width > 1) steps_.push_back({id, width});
      break;
    }
    case FilterId::bitshuffle:
      steps_.push_back({id, typesize});
      break;
    case FilterId::delta:
      steps_.push_back({id, delta_unit(typesize)});
      break;
    case FilterId::bytedelta: {
      // Store the number of planes: with a meta byte of 0 the chunk could not be decoded without its frame.
      const std::int32_t planes = meta == 0 ? parameters.typesize : meta;
      if (blocksize % planes != 0 || nbytes % blocksize % planes != 0) return;
      stored_meta = planes <= 255 ? static_cast<std::uint8_t>(planes) : 0;
      steps_.push_back({id, static_cast<std::size_t>(planes)});
      break;
    }
    default:  // none; check() rejects all others
      return;
  }
  filters_[slot] = parameters.filters[slot];
  metas_[slot] = stored_meta;
}

ByteView FilterEncoder::apply(ByteView block, ByteView reference, ByteSpan first, ByteSpan second) const {
  ByteView now = block;
  for (const Step& step : steps_) {
    const ByteSpan next = first.first(block.size());
    switch (step.id) {
      case FilterId::shuffle:
        shuffle(step.width, now, next);
        break;
      case FilterId::bitshuffle:
        bitshuffle(step.width, now, next);
        break;
      case FilterId::delta:
        if (reference.empty()) {
          delta_within(step.width, now, next);
        } else {
          delta_against(step.width, reference, now, next);
        }
        break;
      default:  // bytedelta
        bytedelta(step.width, now, next);
        break;
    }
    now = next;
    std::swap(first, second);
  }
  return now;
}

}  // namespace cframefs::codec
