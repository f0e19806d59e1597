// Users and passwords of hosts, in the syntax of ~/.netrc.
//
// Thread safety: functions only. Errors: corruption, with the number of the line; no message holds a word of the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codec/base/error.h"

namespace cframefs::frame {

struct NetrcEntry {
  std::string login;
  std::string password;
  bool is_default = false;  // it names no machine
};

/// Returns the first entry of the host, or that of "default". `login`: of an address that has a user but no password;
/// empty: any. nullopt if there is none.
codec::Result<std::optional<NetrcEntry>> find_netrc_entry(std::string_view text, std::string_view host,
                                                          std::string_view login);

}  // namespace cframefs::frame
