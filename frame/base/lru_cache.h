// A map with a bound: what was used least recently leaves first. For things that are cheap to make again.
//
// Thread safety: internally synchronised; values are handed out by copy (use std::shared_ptr). Units: charges are
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

  /// Keeps `value`, unless another thread has put one there first; returns the one that is kept.
  /// `most`: what it may hold now, if that is less than the bound.
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

  /// Puts `value` in the place of what there is of this key.
  void replace(const Key& key, Value value, std::size_t charge) {
    {
      codec::MutexLock lock(mutex_);
      if (auto found = entries_.find(key); found != entries_.end()) drop(found->second);
    }
    insert(key, std::move(value), charge);
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
