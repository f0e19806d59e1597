// Makes text from files safe for a terminal, a log and JSON.
//
// Thread safety: functions only.
#pragma once

#include <string>
#include <string_view>

#include "codec/base/bytes.h"

namespace cframefs::frame {

bool is_utf8(std::string_view text);

/// Returns the text with each byte that is no part of valid UTF-8 replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

/// Returns true if `bytes` is valid UTF-8 without control characters other than tab and line ends.
bool is_plain_text(codec::ByteView bytes);

/// Returns the text with control characters and invalid UTF-8 written as \xNN.
std::string printable(std::string_view text);

/// Returns two hexadecimal digits per byte.
std::string hex(codec::ByteView bytes);

}  // namespace cframefs::frame
