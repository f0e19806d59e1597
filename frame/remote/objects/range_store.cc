#include "frame/remote/objects/range_store.h"

namespace cframefs::frame {
namespace {

class KeepsNothing final : public RangeStore {
 public:
  std::optional<std::vector<std::uint8_t>> find(const std::string&, std::uint64_t) override { return std::nullopt; }
  void keep(const std::string&, std::uint64_t, codec::ByteView) override {}
  bool keeps() const override { return false; }
};

}  // namespace

RangeStore& no_store() {
  static KeepsNothing store;
  return store;
}

}  // namespace cframefs::frame
