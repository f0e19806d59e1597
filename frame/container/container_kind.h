// The formats of containers.
//
// Thread safety: a function without state.
#pragma once

#include <cstdint>
#include <string_view>

namespace cframefs::frame {

/// cframe, sframe: contiguous and sparse frames; legacy: frames of the 2.0 betas; chunk: a file that is one chunk.
enum class ContainerKind : std::uint8_t { none, cframe, sframe, legacy, bloscpack, chunk };

/// Returns the name that programs print; empty for none.
std::string_view kind_name(ContainerKind kind);

}  // namespace cframefs::frame
