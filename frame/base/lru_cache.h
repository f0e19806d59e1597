// A bounded map that evicts the least recently used entry. For values that are cheap to rebuild.
//
// Thread safety: internally synchronised; members return values by copy (use std::shared_ptr). Units: charges are
// bytes, by convention. The newest entry stays even if it alone exceeds the bound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "codec/base/mutex.h"

namespace cframefs::frame {

template <class Key, class Value, class Hash = std::hash<Key>>
class LruCache {
 public:
  explicit LruCache(std::size_t bound) : bound_(bound) {}

  std::optional<Value> find(const Key& key) {
    codec::MutexLock lock(mutex_);
    auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->value;
  }

  /// Inserts `value` unless the key has a value already, and returns the value that the key then has. `most`: bound for
  /// this call, if less than the cache's.
  Value insert(const Key& key, Value value, std::size_t charge, std::size_t most = SIZE_MAX) {
    codec::MutexLock lock(mutex_);
    auto found = entries_.find(key);
    if (found != entries_.end()) return found->second->value;
    recent_.push_front(Entry{key, value, charge});
    entries_.emplace(key, recent_.begin());
    charged_ += charge;
    while (charged_ > std::min(bound_, most) && recent_.size() > 1)
      drop(std::prev(recent_.end()));
    return value;
  }

  /// Inserts `value` and removes the key's previous value.
  void replace(const Key& key, Value value, std::size_t charge) {
    {
      codec::MutexLock lock(mutex_);
      if (auto found = entries_.find(key); found != entries_.end()) drop(found->second);
    }
    insert(key, std::move(value), charge);
  }

  /// Removes the entries whose values `is_gone` accepts; it is called with the lock held.
  template <class Predicate>
  void remove_if(const Predicate& is_gone) {
    codec::MutexLock lock(mutex_);
    for (auto entry = recent_.begin(); entry != recent_.end();) {
      const Iterator here = entry++;
      if (is_gone(here->value)) drop(here);
    }
  }

 private:
  struct Entry {
    Key key;
    Value value;
    std::size_t charge;
  };
  using Iterator = typename std::list<Entry>::iterator;

  void drop(Iterator entry) REQUIRES(mutex_) {
    charged_ -= entry->charge;
    entries_.erase(entry->key);
    recent_.erase(entry);
  }

  const std::size_t bound_;
  mutable codec::Mutex mutex_;
  std::size_t charged_ GUARDED_BY(mutex_) = 0;
  std::list<Entry> recent_ GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<Key, Iterator, Hash> entries_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
