// Makes text from files safe for a terminal, a log and JSON.
//
// Thread safety: functions only.
#pragma once

#include <string>
#include <string_view>

#include "codec/base/bytes.h"

namespace cframefs::frame {

/// Returns the length of the UTF-8 character at the start of `bytes`; 0 if there is none. REQUIRES: bytes is not empty.
std::size_t utf8_length(codec::ByteView bytes);

/// Returns true if `bytes` is valid UTF-8 without control characters other than tab and line ends.
bool is_plain_text(codec::ByteView bytes);

/// Returns the text with control characters and invalid UTF-8 written as \xNN.
std::string printable(std::string_view text);

/// Returns two hexadecimal digits per byte.
std::string hex(codec::ByteView bytes);

}  // namespace cframefs::frame
