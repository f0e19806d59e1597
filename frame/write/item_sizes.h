// Finds out how long the items of data are: from the header of a .npy or .wav file, or by distances at which bytes
// repeat.
//
// Headers are hostile input: every field is checked. Thread safety: functions. Units: bytes. Errors: none; a header
// that cannot be parsed declares nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/write/data_samples.h"

namespace cframefs::frame {

/// The largest typesize of a chunk header.
inline constexpr std::int32_t kMaxItemSize = 255;

/// Returns the sizes of items that the header of a file declares: the item of a .npy file; the sample and the frame (a
/// sample of each channel) of a .wav file. Empty for other data, and for items longer than kMaxItemSize.
std::vector<std::int32_t> declared_item_sizes(codec::ByteView head);

/// Returns the shortest distance at which about as many bytes are equal as at any other, 2 to kMaxItemSize: the length
/// of the records, if the data consists of records. Returns 0 if no distance stands out.
std::int32_t repeating_distance(const std::vector<Sample>& slices);

}  // namespace cframefs::frame
