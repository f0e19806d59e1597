// The options that shape a frame that a program makes; named as the mount options are.
//
// Thread safety: plain values and functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codec/chunk_encoder.h"
#include "codec/format/codec_registry.h"

namespace CLI {
class App;
}  // namespace CLI

namespace cframefs::tools {

struct EncodeOptions {
  // Without a value: the default, or whatever is tuned.
  std::optional<std::uint8_t> compcode;
  std::optional<int> clevel;
  std::optional<codec::FilterSlots> filters;
  std::uint64_t typesize = 0;   // 0: auto
  std::uint64_t chunksize = 0;  // 0: auto
  std::uint64_t blocksize = 0;  // 0: auto

  bool any() const { return compcode || clevel || filters || typesize != 0 || chunksize != 0 || blocksize != 0; }
  /// With the defaults where nothing was wished: zstd, 5, shuffle.
  codec::EncodeParameters parameters() const;
};

/// Declares --codec, --clevel, --filter, --typesize, --chunksize and --blocksize.
void add_frame_options(CLI::App& app, EncodeOptions& wishes);

/// What one wish forbids another. invalid.
codec::Result<void> validate_combination(const EncodeOptions& wishes);

}  // namespace cframefs::tools
