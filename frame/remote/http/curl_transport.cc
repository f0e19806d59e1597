#include "frame/remote/http/curl_transport.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "frame/remote/http/background_thread.h"
#include "frame/remote/http/network_needs.h"

namespace cframefs::frame {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kMostConnections = 64;
constexpr std::chrono::milliseconds kLongestSleep{60'000};

bool is_curl_ready() {
  static const bool is_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return is_ready;
}

/// Returns null if libcurl must read the certificates itself. `certificates`: as CurlOptions.
std::unique_ptr<TrustStore> trust_store(const std::string& certificates) {
  if (!TrustStore::is_usable()) return nullptr;
  // libcurl gives a proxy the same store; the user's certificates vouch for servers alone.
  if (!certificates.empty()) return has_tls_proxy() ? nullptr : std::make_unique<TrustStore>(certificates);
  TrustStore::Places places = TrustStore::of_system();
  if (places.file.empty() && places.directory.empty()) return nullptr;
  return std::make_unique<TrustStore>(std::move(places));
}

}  // namespace

CurlTransport::CurlTransport(CurlOptions options)
    : options_(std::move(options)), sessions_(nullptr, curl_share_cleanup), multi_(nullptr, curl_multi_cleanup) {}

CurlTransport::~CurlTransport() {
  stop();
  if (thread_.joinable()) thread_.join();
}

/// Starts the thread unless it runs.
Result<void> CurlTransport::start_thread() {
  if (thread_.joinable()) return {};
  if (!is_curl_ready()) return codec::io_error(ENOMEM, "start libcurl");
  sessions_.reset(curl_share_init());
  multi_.reset(curl_multi_init());
  if (!sessions_ || !multi_) return codec::io_error(ENOMEM, "start libcurl");
  trust_ = trust_store(options_.certificates);
  // Only the thread uses what is shared, so that no locks are needed.
  curl_share_setopt(sessions_.get(), CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  curl_multi_setopt(multi_.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, kMostConnections);
  curl_multi_setopt(multi_.get(), CURLMOPT_MAX_HOST_CONNECTIONS, kMostConnections);
  curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, kMostConnections);
  auto started = start_background_thread([this] { run(); });
  if (!started) return codec::Failure(started.error());
  thread_ = std::move(*started);
  return {};
}

void CurlTransport::start(HttpRequest request, Time until, Done done) {
  auto exchange = std::make_unique<CurlExchange>(std::move(request), until, std::move(done));
  Result<void> started;
  {
    codec::MutexLock lock(mutex_);
    started = is_stopped_ ? exchange->failure(ECANCELED, "the transport is stopped") : start_thread();
    if (started) arrivals_.push_back(std::exchange(exchange, nullptr));
  }
  if (exchange) {
    exchange->report(codec::Failure(started.error()));
  } else {
    curl_multi_wakeup(multi_.get());
  }
}

void CurlTransport::end_given_up() {
  has_given_up_ = true;
  wake();
}

Result<void> CurlTransport::confine(std::vector<std::uint16_t> ports, std::function<Result<void>()> enter) {
  std::future<Result<void>> entered;
  {
    codec::MutexLock lock(mutex_);
    if (is_stopped_) return codec::io_error(ECANCELED, "enter the sandbox", "the transport is stopped");
    if (auto started = start_thread(); !started) return started;
    task_.emplace([this, ports = std::move(ports), enter = std::move(enter)]() mutable {
      options_.ports = std::move(ports);
      return enter();
    });
    entered = task_->get_future();
  }
  curl_multi_wakeup(multi_.get());
  return entered.get();
}

std::vector<std::uint16_t> CurlTransport::redirect_ports() {
  codec::MutexLock lock(mutex_);
  return redirect_ports_;
}

/// Notes where a server redirects to, at most once for each port.
void CurlTransport::note_redirect(std::uint16_t port) {
  constexpr std::size_t kMostPorts = 16;
  codec::MutexLock lock(mutex_);
  const bool is_known = std::find(redirect_ports_.begin(), redirect_ports_.end(), port) != redirect_ports_.end();
  if (port != 0 && !is_known && redirect_ports_.size() < kMostPorts) redirect_ports_.push_back(port);
}

void CurlTransport::stop() {
  {
    codec::MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  wake();
}

/// Wakes the thread, if there is one.
void CurlTransport::wake() {
  bool has_thread = false;
  {
    codec::MutexLock lock(mutex_);
    has_thread = multi_ != nullptr;
  }
  if (has_thread) curl_multi_wakeup(multi_.get());
}

void CurlTransport::run() {
  while (take_arrivals()) {
    int transfers = 0;
    const CURLMcode performed = curl_multi_perform(multi_.get(), &transfers);
    sockets_.end_round();
    finish_ended();
    finish_late();
    finish_given_up();
    const CURLMcode waited =
        performed == CURLM_OK ? curl_multi_poll(multi_.get(), nullptr, 0, patience(), nullptr) : performed;
    while (waited != CURLM_OK && !running_.empty())
      finish(running_.begin(), running_.begin()->second->failure(EIO, curl_multi_strerror(waited)));
  }
  while (!running_.empty())
    finish(running_.begin(), running_.begin()->second->failure(ECANCELED, "the transport is stopped"));
}

/// Returns false if the transport is stopped.
bool CurlTransport::take_arrivals() {
  std::vector<std::unique_ptr<CurlExchange>> arrived;
  std::optional<std::packaged_task<Result<void>()>> task;
  bool is_stopped = false;
  {
    codec::MutexLock lock(mutex_);
    arrived.swap(arrivals_);
    task.swap(task_);
    is_stopped = is_stopped_;
  }
  if (task) (*task)();
  for (auto& exchange : arrived) {
    if (is_stopped) {
      exchange->report(exchange->failure(ECANCELED, "the transport is stopped"));
    } else {
      add(std::move(exchange));
    }
  }
  return !is_stopped;
}

void CurlTransport::add(std::unique_ptr<CurlExchange> exchange) {
  if (exchange->until() <= Clock::now()) {
    exchange->report(exchange->late());
    return;
  }
  if (exchange->is_given_up()) {
    exchange->report(exchange->failure(ECANCELED, "it is no longer wanted"));
    return;
  }
  auto handle = exchange->prepare(options_, sessions_.get(), sockets_, trust_.get());
  if (handle && curl_multi_add_handle(multi_.get(), *handle) != CURLM_OK)
    handle = exchange->failure(ENOMEM, "libcurl takes no more requests");
  if (!handle) {
    exchange->report(codec::Failure(handle.error()));
    return;
  }
  const Time until = exchange->until();
  running_.emplace(until, std::move(exchange));
}

CurlTransport::Running::iterator CurlTransport::find(const CurlExchange* exchange) {
  const auto [first, last] = running_.equal_range(exchange->until());
  return std::find_if(first, last, [exchange](const auto& running) { return running.second.get() == exchange; });
}

void CurlTransport::finish(Running::iterator exchange, codec::Failure failure) {
  const std::unique_ptr<CurlExchange> ended = std::move(exchange->second);
  running_.erase(exchange);
  // A connection of HTTP/2 outlives its requests: the next ones must not wait on a dead one.
  curl_easy_setopt(ended->handle(), CURLOPT_FORBID_REUSE, 1L);
  curl_multi_remove_handle(multi_.get(), ended->handle());
  ended->report(std::move(failure));
}

/// Reports the requests that curl has ended; those that were redirected go on.
void CurlTransport::finish_ended() {
  int more = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_.get(), &more)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // NOLINT(cppcoreguidelines-pro-type-union-access): libcurl's
    void* exchange = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
    const auto at = find(static_cast<const CurlExchange*>(exchange));
    if (at == running_.end()) continue;
    std::unique_ptr<CurlExchange> ended = std::move(at->second);
    running_.erase(at);
    curl_multi_remove_handle(multi_.get(), ended->handle());
    const auto is_complete = ended->end(code);
    if (!is_complete) {
      ended->report(codec::Failure(is_complete.error()));
    } else if (*is_complete) {
      ended->report();
    } else {
      note_redirect(ended->port());
      add(std::move(ended));
    }
  }
}

void CurlTransport::finish_late() {
  const Time now = Clock::now();
  while (!running_.empty() && running_.begin()->first <= now)
    finish(running_.begin(), running_.begin()->second->late());
}

void CurlTransport::finish_given_up() {
  if (!has_given_up_.exchange(false)) return;
  for (auto next = running_.begin(); next != running_.end();) {
    const auto exchange = next++;
    if (exchange->second->is_given_up())
      finish(exchange, exchange->second->failure(ECANCELED, "it is no longer wanted"));
  }
}

/// Returns the milliseconds until the first deadline; curl wakes earlier for its own timers.
int CurlTransport::patience() const {
  if (running_.empty()) return static_cast<int>(kLongestSleep.count());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(running_.begin()->first - Clock::now());
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), kLongestSleep).count());
}

}  // namespace cframefs::frame
