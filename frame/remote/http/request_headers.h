// Headers of a request: compared without case, each once.
//
// Thread safety: functions only.
#pragma once

#include <string>
#include <string_view>

#include "frame/remote/http/http.h"

namespace cframefs::frame {

bool equal_without_case(std::string_view name, std::string_view other);
void remove_header(HttpRequest& request, std::string_view name);
/// Sets a header in place of all of that name.
void set_header(HttpRequest& request, std::string_view name, std::string value);

}  // namespace cframefs::frame
