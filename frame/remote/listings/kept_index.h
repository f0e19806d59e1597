// The index of a directory that a disk cache keeps, so that a later mount asks only whether it still holds.
//
// Its state is kept as that of any object (KeptHeads), its bytes as blocks of that state.
//
// Thread safety: const members may run concurrently. Ownership: the store must outlive it. Errors: none: what is not
// kept, or not as a whole, is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/remote/objects/object_state.h"
#include "frame/remote/objects/range_store.h"

namespace cframefs::frame {

class KeptIndex {
 public:
  struct Kept {
    ObjectState state;
    std::vector<std::uint8_t> stored;
  };

  /// `url`: of the object.
  KeptIndex(RangeStore& store, std::string url) : store_(store), url_(std::move(url)) {}

  std::optional<Kept> find() const;
  /// Keeps the bytes of a state, if a tag or a date identifies it.
  void keep(const ObjectState& state, codec::ByteView stored) const;

 private:
  RangeStore& store_;
  const std::string url_;
};

}  // namespace cframefs::frame
