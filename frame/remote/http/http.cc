#include "frame/remote/http/http.h"

#include <algorithm>

#include "frame/remote/http/request_headers.h"

namespace cframefs::frame {

std::string_view HttpAnswer::header(std::string_view name) const {
  const auto found = std::find_if(headers.rbegin(), headers.rend(),
                                  [name](const HttpHeader& header) { return equal_without_case(header.name, name); });
  return found == headers.rend() ? std::string_view() : std::string_view(found->value);
}

}  // namespace cframefs::frame
