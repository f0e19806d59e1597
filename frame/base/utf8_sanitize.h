// Text that came out of a file, made fit for a terminal, a log and JSON.
//
// Thread safety: functions only.
#pragma once

#include <string>
#include <string_view>

#include "codec/base/bytes.h"

namespace cframefs::frame {

/// Length of the UTF-8 character that the text begins with, 0 if it begins with none. REQUIRES: text is not empty.
std::size_t utf8_length(codec::ByteView text);

/// Valid UTF-8 without control characters other than tab and line ends.
bool is_plain_text(codec::ByteView bytes);

/// The text with everything that could steer a terminal, and what is no UTF-8, written as \xNN.
std::string printable(std::string_view text);

/// Two digits a byte.
std::string hex(codec::ByteView bytes);

}  // namespace cframefs::frame
