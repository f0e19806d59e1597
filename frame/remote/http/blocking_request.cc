#include "frame/remote/http/blocking_request.h"

#include <future>
#include <memory>
#include <utility>

namespace cframefs::frame {

Result<HttpAnswer> send_and_wait(HttpTransport& transport, HttpRequest request, std::chrono::milliseconds patience) {
  // Shared, because std::function wants what it holds to be copyable.
  auto promise = std::make_shared<std::promise<Result<HttpAnswer>>>();
  auto answer = promise->get_future();
  transport.start(std::move(request), std::chrono::steady_clock::now() + patience,
                  [promise](Result<HttpAnswer> done) { promise->set_value(std::move(done)); });
  return answer.get();
}

}  // namespace cframefs::frame
