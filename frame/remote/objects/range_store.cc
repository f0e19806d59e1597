#include "frame/remote/objects/range_store.h"

#include <algorithm>

namespace cframefs::frame {
namespace {

class KeepsNothing final : public RangeStore {
 public:
  std::optional<std::vector<std::uint8_t>> find(const std::string&, std::uint64_t) override { return std::nullopt; }
  void keep(const std::string&, std::uint64_t, codec::ByteView) override {}
  bool keeps() const override { return false; }
};

}  // namespace

bool RangeStore::read(const std::string& state, const RangeInBlock& range, codec::ByteSpan into) {
  const auto bytes = find(state, range.block);
  if (!bytes || bytes->size() != range.block_length) return false;
  std::copy_n(bytes->begin() + static_cast<std::ptrdiff_t>(range.at), into.size(), into.begin());
  return true;
}

RangeStore& no_store() {
  static KeepsNothing store;
  return store;
}

}  // namespace cframefs::frame
