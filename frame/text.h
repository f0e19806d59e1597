// Text that came out of a file, made fit for a terminal.
//
// Thread safety: functions only.
#pragma once

#include <string>
#include <string_view>

#include "codec/bytes.h"

namespace cframefs::tools {

/// Valid UTF-8 without control characters other than tab and line ends.
bool is_plain_text(codec::ByteView bytes);

/// The text with everything that could steer a terminal, and what is no UTF-8, written as \xNN.
std::string printable(std::string_view text);

/// Two digits a byte.
std::string hex(codec::ByteView bytes);

}  // namespace cframefs::tools
