// The connections of a transport, and the acknowledgement of what arrives on them.
//
// A server that sends head and body of an answer apart, without TCP_NODELAY, keeps a short body until the head is
// acknowledged, which the kernel of the receiver does after 40 ms. So if a head comes without the beginning of its
// body, the kernel is told to acknowledge at once. libcurl does not tell which connection an answer comes by, so all of
// them are: 64 at most, at 0.2 us each.
//
// Thread safety: one thread at a time. Ownership: libcurl owns the sockets; this must outlive the handles that
// keep_those_of() took. Errors: none; a socket that cannot acknowledge goes on as it is.
#pragma once

#include <cstdint>
#include <vector>

#include <curl/curl.h>

namespace cframefs::frame {

class OpenSockets {
 public:
  /// Has the connections that the handle opens kept here. Returns false if libcurl refuses it.
  bool keep_those_of(CURL* handle);

  /// Notes the end of a head whose body is to follow. Returns the number of this round, for note_body().
  std::uint64_t note_head();
  /// Notes that the body has begun, if that is in the round of its head.
  void note_body(std::uint64_t round_of_head);
  /// Ends a round: acknowledges what has arrived if a head has no body so far.
  void end_round();

 private:
  static curl_socket_t open(void* sockets, curlsocktype purpose, curl_sockaddr* address) noexcept;
  static int close(void* sockets, curl_socket_t socket) noexcept;

  std::vector<curl_socket_t> sockets_;
  std::uint64_t round_ = 1;
  std::size_t heads_alone_ = 0;  // of this round
};

}  // namespace cframefs::frame
