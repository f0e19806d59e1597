// Samples of the data of a new frame: its beginning, whose header may declare the size of items, and pieces from the
// whole of it. Pieces that repeat one value are skipped, because they compress well with any parameters.
//
// Memory: at most about 2.7 MiB for any size of the data. Thread safety: functions and plain values. Units: bytes.
// Errors: those of the reader.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::frame {

/// A piece of the data.
struct Sample {
  std::uint64_t offset = 0;
  std::vector<std::uint8_t> bytes;
};

struct DataSamples {
  std::vector<std::uint8_t> head;
  std::vector<Sample> slices;  // short, from the whole of the data; none: the data repeats one value
  std::vector<Sample> runs;    // long enough for blocks; at most two
};

/// Reads at an offset; returns less than `into` only at the end of the data.
using ReadBytes = std::function<codec::Result<std::size_t>(codec::ByteSpan into, std::uint64_t at)>;

/// Returns the samples of `size` bytes. Their size, and so the time of all trials, grows with `size` up to a limit.
codec::Result<DataSamples> take_samples(const ReadBytes& read, std::uint64_t size);
/// Returns the samples of bytes in memory.
DataSamples samples_of(codec::ByteView bytes);

/// Returns true if all bytes are equal, or there are none.
bool repeats_one_value(codec::ByteView bytes);

}  // namespace cframefs::frame
