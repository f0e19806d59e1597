// A RangeStore in memory, as a disk cache that several mounts share. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frame/remote/objects/range_store.h"

namespace cframefs::test {

class KeepingStore final : public frame::RangeStore {
 public:
  std::optional<std::vector<std::uint8_t>> find(const std::string& state, std::uint64_t block) override {
    const auto found = kept.find({state, block});
    return found == kept.end() ? std::nullopt : std::optional(found->second);
  }
  bool may_have(const std::string& state, std::uint64_t block) override { return kept.contains({state, block}); }
  void keep(const std::string& state, std::uint64_t block, codec::ByteView bytes) override {
    kept[{state, block}].assign(bytes.begin(), bytes.end());
  }
  bool keeps() const override { return true; }

  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::uint8_t>> kept;
};

}  // namespace cframefs::test
