#include "frame/remote/http/open_sockets.h"

#include <algorithm>
#include <new>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cframefs::frame {

bool OpenSockets::keep_those_of(CURL* handle) {
  return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, &OpenSockets::open) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, this) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, &OpenSockets::close) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_CLOSESOCKETDATA, this) == CURLE_OK;
}

std::uint64_t OpenSockets::note_head() {
  ++heads_alone_;
  return round_;
}

void OpenSockets::note_body(std::uint64_t round_of_head) {
  if (round_of_head == round_) --heads_alone_;
}

void OpenSockets::end_round() {
  ++round_;
  if (std::exchange(heads_alone_, 0) == 0) return;
  constexpr int kOn = 1;
  for (const curl_socket_t socket : sockets_)
    static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &kOn, sizeof kOn));
}

curl_socket_t OpenSockets::open(void* sockets, curlsocktype /*purpose*/, curl_sockaddr* address) noexcept {
  const int opened = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (opened < 0) return CURL_SOCKET_BAD;
  try {
    static_cast<OpenSockets*>(sockets)->sockets_.push_back(opened);
  } catch (const std::bad_alloc&) {
    ::close(opened);
    return CURL_SOCKET_BAD;
  }
  return opened;
}

int OpenSockets::close(void* sockets, curl_socket_t socket) noexcept {
  auto& all = static_cast<OpenSockets*>(sockets)->sockets_;
  all.erase(std::remove(all.begin(), all.end(), socket), all.end());
  return ::close(socket);
}

}  // namespace cframefs::frame
