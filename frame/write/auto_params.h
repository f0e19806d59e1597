// Chooses the parameters of a new frame that the caller leaves open: typesize, filters and block size, by trial
// compression of samples of the data, and the chunk size.
//
// A first round compresses the short slices of the samples at a fast level, with each typesize and filter. A second one
// uses the frame's codec and level, and blocks of the frame's length: it compresses the slices with the best settings
// of the first round, then the runs with longer blocks, and, if these gain, once more with each setting that came
// close. Among settings of about the same result the one that decodes faster is chosen.
//
// Cost: a first round of about 20 times the slices, a second one of up to 3 times the slices and 2 to 5 times the runs
// (data_samples.h); both are a share of the data, with a limit. Thread safety: functions; one thread at a time per
// context. Units: bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/chunk_encoder.h"
#include "frame/cframe/frame_encoding.h"
#include "frame/write/data_samples.h"

namespace cframefs::frame {

/// Whether EncodeParameters::filters are given by the user or to be chosen.
enum class Filters : std::uint8_t { given, open };

/// Returns settings of typesize and filters in the order of their result, at most `most`, at least one; those whose
/// result is clearly worse than the first one's are left out. Chooses parameters.typesize if it is 0, and the filters
/// if they are open; all else is that of `parameters`.
std::vector<codec::EncodeParameters> rank_pipelines(codec::EncodeContext& context,
                                                    const codec::EncodeParameters& parameters, Filters filters,
                                                    const DataSamples& samples, std::size_t most);

/// Returns the largest multiple of the typesize up to `wanted`, or up to 1 MiB if `wanted` is 0; at least the typesize.
/// REQUIRES: typesize > 0, both at most codec::kMaxChunkBytes.
std::int32_t choose_chunksize(std::int32_t typesize, std::int64_t wanted);

/// Returns the parameters of a frame for data of which these are samples. Chooses encode.typesize, encode.blocksize and
/// `chunksize` if they are 0, and the filters if they are open.
NewFrame choose_frame(codec::EncodeContext& context, codec::EncodeParameters encode, std::int64_t chunksize,
                      const DataSamples& samples, Filters filters = Filters::given);

}  // namespace cframefs::frame
