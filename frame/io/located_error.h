// Adds to an error of a parser where in the file the bytes lie that it has read.
//
// Thread safety: functions only. Units: bytes.
#pragma once

#include <utility>

#include "codec/base/error.h"
#include "frame/base/coordinates.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// Returns the error with the offset in the file, unless it has one. `offset`: in the source.
inline codec::Failure at_offset(const ByteSource& source, FileOffset offset, codec::Error error) {
  if (!error.file_offset) error.file_offset = source.base_offset().value + offset.value;
  return codec::Failure(std::move(error));
}

}  // namespace cframefs::frame
