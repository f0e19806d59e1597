// Percent-encoding of text for addresses (RFC 3986 section 2).
//
// Thread safety: functions only. Errors: invalid for text that is not percent-encoded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/base/error.h"

namespace cframefs::frame {

enum class Slash : std::uint8_t { encoded, kept };

/// Returns the text with each byte encoded that is not unreserved (letters, digits, '-', '.', '_', '~'), in upper-case
/// hexadecimal.
std::string percent_encode(std::string_view text, Slash slash = Slash::encoded);

/// Returns the decoded bytes; '+' stays. invalid for a '%' without two hexadecimal digits, and for a NUL, which no file
/// name can hold.
codec::Result<std::string> percent_decode(std::string_view text);

}  // namespace cframefs::frame
