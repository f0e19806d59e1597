#include "frame/remote/access/token_file.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "frame/base/utf8_sanitize.h"

namespace cframefs::frame {

codec::Result<std::string> read_token(const Surroundings& surroundings, const std::string& path) {
  constexpr std::string_view kWhite = " \t\r\n";
  constexpr std::size_t kMostBytes = std::size_t{16} << 10U;
  auto text = surroundings.file(path);
  if (!text) return text;
  text->erase(text->find_last_not_of(kWhite) + 1);
  text->erase(0, std::min(text->find_first_not_of(kWhite), text->size()));
  if (text->empty() || text->size() > kMostBytes) {
    return codec::io_error(EACCES, printable(path),
                           "it holds " + std::to_string(text->size()) + " bytes, a token has 1 to 16384");
  }
  if (!std::all_of(text->begin(), text->end(), [](char c) { return c > ' ' && c < '\x7f'; })) {
    return codec::io_error(EACCES, printable(path), "it must hold one token and nothing else");
  }
  return text;
}

}  // namespace cframefs::frame
