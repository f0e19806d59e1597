// ndlz: a two-dimensional block of bytes, cut into cells of 4 x 4 or 8 x 8, each stored as one token and what follows
// it (codecs.md section 8). A cell repeats another, or some of its rows do, or it is one value, or it is stored as it
// is.
//
// Thread safety: pure functions. Units: bytes. Errors: corruption; unsupported for other cells.
#pragma once

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::codec {

/// Decodes `stream` into all of `out`. `side`: of a cell, 4 or 8.
Result<void> decode_ndlz(std::uint8_t side, ByteView stream, ByteSpan out);

}  // namespace cframefs::codec
