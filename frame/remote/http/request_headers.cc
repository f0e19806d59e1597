#include "frame/remote/http/request_headers.h"

#include <algorithm>
#include <utility>

#include <strings.h>

namespace cframefs::frame {

bool equal_without_case(std::string_view name, std::string_view other) {
  return name.size() == other.size() && ::strncasecmp(name.data(), other.data(), name.size()) == 0;
}

void remove_header(HttpRequest& request, std::string_view name) {
  auto& headers = request.headers;
  headers.erase(std::remove_if(headers.begin(), headers.end(),
                               [name](const HttpHeader& header) { return equal_without_case(header.name, name); }),
                headers.end());
}

void set_header(HttpRequest& request, std::string_view name, std::string value) {
  remove_header(request, name);
  request.headers.push_back({std::string(name), std::move(value)});
}

}  // namespace cframefs::frame
