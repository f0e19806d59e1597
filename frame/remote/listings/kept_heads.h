// The states and first bytes of objects that a disk cache keeps, so that a later mount asks only whether they still
// hold.
//
// Thread safety: const members may run concurrently. Ownership: the store must outlive it. Errors: none: what is not
// kept, or is damaged, is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frame/remote/objects/object_state.h"
#include "frame/remote/objects/range_store.h"

namespace cframefs::frame {

struct ObjectHead {
  ObjectState state;
  std::vector<std::uint8_t> bytes;  // the first 4096 of the object, or all of a shorter one; none if they are not known
};

class KeptHeads {
 public:
  explicit KeptHeads(RangeStore& store) : store_(store) {}

  bool keeps() const { return store_.keeps(); }

  /// Returns the state that the object at `url` had when it was last kept; nullptr if none is.
  std::shared_ptr<const ObjectHead> find(const std::string& url) const;
  /// Returns false if find() would find nothing. Cheap, and may be wrong.
  bool may_have(const std::string& url) const;
  /// Keeps a state that a tag or a date identifies.
  void keep(const std::string& url, const ObjectHead& head) const;

 private:
  RangeStore& store_;
};

}  // namespace cframefs::frame
