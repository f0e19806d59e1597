#include "frame/remote/listings/caching_listing.h"

#include <utility>

namespace cframefs::frame {

CachingListing::CachingListing(Listing& listing, std::chrono::seconds ttl, std::size_t most_entries, Clock now)
    : listing_(listing), ttl_(ttl), now_(std::move(now)), remembered_(most_entries) {}

std::shared_ptr<const ListedDirectory> CachingListing::remembered(const std::string& directory) {
  if (ttl_.count() == 0) return nullptr;
  const auto found = remembered_.find(directory);
  return found && now_() < found->until ? found->listed : nullptr;
}

Result<std::shared_ptr<const ListedDirectory>> CachingListing::list(const std::string& directory) {
  if (Listed valid = remembered(directory)) return valid;
  auto attempt = attempt_of(directory);
  const auto serves = ttl_.count() == 0 ? Attempt::Serves::later : Attempt::Serves::running;
  auto listed = attempt->run(serves, [&]() -> Result<Listed> {
    // Another thread may have finished between the two looks.
    if (Listed valid = remembered(directory)) return valid;
    return ask(directory);
  });
  drop(std::move(attempt), directory);
  return listed;
}

Result<std::shared_ptr<const ListedDirectory>> CachingListing::ask(const std::string& directory) {
  const auto begin = now_();
  auto entries = listing_.list(directory);
  if (!entries) return codec::Failure(entries.error());
  const std::size_t charge = entries->size() + kDirectoryCharge;
  auto listed = std::make_shared<const ListedDirectory>(ListedDirectory{std::move(*entries)});
  if (ttl_.count() > 0) remembered_.replace(directory, Remembered{listed, begin + ttl_}, charge);
  return Listed(std::move(listed));
}

std::shared_ptr<CachingListing::Attempt> CachingListing::attempt_of(const std::string& directory) {
  const codec::MutexLock lock(mutex_);
  auto& attempt = attempts_[directory];
  if (!attempt) attempt = std::make_shared<Attempt>();
  return attempt;
}

void CachingListing::drop(std::shared_ptr<Attempt> attempt, const std::string& directory) {
  const codec::MutexLock lock(mutex_);
  // Only attempt_of() makes copies, and each is dropped here: both under the mutex. Two are the map's and this one.
  if (attempt.use_count() > 2) {
    attempt.reset();
    return;
  }
  const auto found = attempts_.find(directory);
  if (found != attempts_.end() && found->second == attempt) attempts_.erase(found);
}

}  // namespace cframefs::frame
