// The options for the parameters of a new frame; they have the names of the mount options.
//
// Thread safety: plain values and functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codec/chunk_encoder.h"
#include "codec/format/filter_registry.h"
#include "frame/write/checksums.h"

namespace CLI {
class App;
}  // namespace CLI

namespace cframefs::tools {

struct EncodeOptions {
  // None: the default, or the result of --tune. No filters: chosen by samples of the data, if there are any.
  std::optional<std::uint8_t> compcode;
  std::optional<int> clevel;
  std::optional<codec::FilterSlots> filters;
  std::uint64_t typesize = 0;   // 0: auto
  std::uint64_t chunksize = 0;  // 0: auto
  std::uint64_t blocksize = 0;  // 0: auto
  frame::Checksums checksums = frame::Checksums::on;

  bool any() const { return compcode || clevel || filters || typesize != 0 || chunksize != 0 || blocksize != 0; }
  /// Returns the parameters; defaults: zstd, 5, shuffle.
  codec::EncodeParameters parameters() const;
};

/// Declares --codec, --clevel, --filter, --typesize, --chunksize and --blocksize.
void add_frame_options(CLI::App& app, EncodeOptions& wishes);

/// Declares --checksums.
void add_checksums_option(CLI::App& app, frame::Checksums& into);

/// Returns `invalid` if options conflict.
codec::Result<void> validate_combination(const EncodeOptions& wishes);

}  // namespace cframefs::tools
