#include "frame/remote/listings/names_beside.h"

#include <cerrno>
#include <utility>

namespace cframefs::frame {
namespace {

constexpr std::size_t kMostRemembered = 20'000;  // entries

/// Returns whether the error says that the server tells no listing, rather than that it cannot be asked.
bool is_no_listing(const codec::Error& error) {
  return codec::is_missing(error) || error.sys == EACCES || error.kind != codec::ErrorKind::io;
}

}  // namespace

Result<std::vector<ListedEntry>> NamesBeside::Beginnings::list(const std::string& key) {
  const std::size_t end = key.find('\0');
  return live_.list_beginning(key.substr(0, end), key.substr(end + 1));
}

NamesBeside::NamesBeside(Listing& live, std::chrono::seconds ttl, const Clock& now)
    : live_(live), ttl_(ttl), now_(now), beginnings_(live), remembered_(beginnings_, ttl, kMostRemembered, now) {}

bool NamesBeside::is_refused() const {
  const codec::MutexLock lock(mutex_);
  return now_() < refused_until_;
}

Result<std::optional<ListedEntry>> NamesBeside::find(const std::string& directory, const std::string& stem,
                                                     const std::string& name) {
  const std::optional<ListedEntry> to_ask(ListedEntry{name, false, std::nullopt});
  if (is_refused()) return to_ask;
  const auto begin = now_();
  std::string key = directory;
  key.push_back('\0');
  if (live_.lists_beginnings()) key += stem;
  const auto listed = remembered_.list(key);
  if (listed) {
    const ListedEntry* const entry = (*listed)->find(name);
    return entry == nullptr ? std::optional<ListedEntry>() : std::optional(*entry);
  }
  if (!is_no_listing(listed.error())) return codec::Failure(listed.error());
  const codec::MutexLock lock(mutex_);
  refused_until_ = begin + ttl_;
  return to_ask;
}

}  // namespace cframefs::frame
