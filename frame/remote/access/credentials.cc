#include "frame/remote/access/credentials.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "frame/remote/access/local_credentials.h"
#include "frame/remote/access/service_credentials.h"

namespace cframefs::frame {

namespace {

using codec::Failure;

// Seconds.
constexpr std::int64_t kRenewBefore = 300;
constexpr std::int64_t kFailurePause = 5;   // without valid credentials
constexpr std::int64_t kRenewalPause = 60;  // with valid ones
constexpr std::int64_t kDropPause = 2;

bool is_expired(const Credentials& credentials, std::int64_t now) {
  return credentials.expires && *credentials.expires <= now;
}

/// Returns when to renew credentials: 5 minutes before they expire, and for shorter-lived ones after half of the time.
std::int64_t renewal_time(const Credentials& credentials, std::int64_t now) {
  const std::int64_t left = *credentials.expires - now;
  return left > 2 * kRenewBefore ? *credentials.expires - kRenewBefore : now + std::max<std::int64_t>(left / 2, 1);
}

}  // namespace

/// Ends the fetch of a thread, also if memory runs out during it.
class CredentialChain::Fetching {
 public:
  explicit Fetching(CredentialChain& chain) : chain_(chain) {}
  ~Fetching() {
    codec::MutexLock lock(chain_.mutex_);
    chain_.is_fetching_ = false;
    chain_.fetched_.notify_all();
  }
  Fetching(const Fetching&) = delete;
  Fetching& operator=(const Fetching&) = delete;

 private:
  CredentialChain& chain_;
};

CredentialChain::CredentialChain(const Surroundings& surroundings, HttpTransport& transport, CredentialChoice choice)
    : surroundings_(surroundings), transport_(transport), choice_(std::move(choice)) {}

Result<Credentials> CredentialChain::get() {
  {
    codec::MutexLock lock(mutex_);
    if (auto answer = wait_for_known()) return std::move(*answer);
    is_fetching_ = true;
  }
  const Fetching fetching(*this);
  auto fetched = fetch();
  codec::MutexLock lock(mutex_);
  const std::int64_t now = surroundings_.now();
  note_fetched(std::move(fetched), now);
  if (current_ && !is_expired(*current_, now)) return *current_;
  return Failure(*failure_);
}

void CredentialChain::drop_refused() {
  codec::MutexLock lock(mutex_);
  if (surroundings_.now() - fetched_at_ < kDropPause) return;
  current_.reset();
}

std::optional<Result<Credentials>> CredentialChain::wait_for_known() {
  while (true) {
    const std::int64_t now = surroundings_.now();
    if (auto answer = known(now)) return answer;
    if (!is_fetching_) return std::nullopt;
    if (current_ && !is_expired(*current_, now)) return Result<Credentials>(*current_);
    fetched_.wait(mutex_);
  }
}

std::optional<Result<Credentials>> CredentialChain::known(std::int64_t now) const {
  const bool is_valid = current_ && !is_expired(*current_, now);
  if (is_valid && (!current_->expires || now < renew_at_)) return Result<Credentials>(*current_);
  if (is_valid || !failure_ || now - failed_at_ >= kFailurePause) return std::nullopt;
  return Result<Credentials>(Failure(*failure_));
}

void CredentialChain::note_fetched(Result<Credentials> fetched, std::int64_t now) {
  if (fetched && is_expired(*fetched, now)) {
    fetched = codec::io_error(EACCES, "credentials", "the credentials that were found have expired");
  }
  if (!fetched) {
    failure_ = std::move(fetched.error());
    failed_at_ = now;
    renew_at_ = now + kRenewalPause;
    return;
  }
  current_ = std::move(*fetched);
  failure_.reset();
  fetched_at_ = now;
  if (current_->expires) renew_at_ = renewal_time(*current_, now);
}

Result<Credentials> CredentialChain::fetch() const {
  const bool is_profile_named = !choice_.profile.empty();
  if (!is_profile_named) {
    FoundCredentials found = environment_credentials(surroundings_);
    if (found && !*found) found = web_identity_credentials(surroundings_, transport_, choice_.region);
    if (!found) return Failure(found.error());
    if (*found) return std::move(**found);
  }

  std::string lacking = is_profile_named ? "" : "AWS_ACCESS_KEY_ID is not set; ";
  FoundCredentials found = profile_credentials(surroundings_, transport_, choice_, lacking);
  if (found && !*found) found = container_credentials(surroundings_, transport_, lacking);
  if (found && !*found) found = instance_credentials(surroundings_, transport_, lacking);
  if (!found) return Failure(found.error());
  if (*found) return std::move(**found);
  lacking.resize(lacking.size() - 2);
  return codec::io_error(EACCES, "credentials", lacking);
}

}  // namespace cframefs::frame
