#include "frame/remote/listings/kept_index.h"

#include <algorithm>

#include "frame/remote/listings/kept_heads.h"
#include "frame/remote/listings/remote_index.h"
#include "frame/remote/objects/object_id.h"

namespace cframefs::frame {
namespace {

constexpr std::uint64_t kBlockBytes = RangeStore::kBlockBytes;

}  // namespace

std::optional<KeptIndex::Kept> KeptIndex::find() const {
  if (!store_.keeps()) return std::nullopt;
  const auto head = KeptHeads(store_).find(url_);
  if (!head || head->state.length > RemoteIndex::kMostStoredBytes) return std::nullopt;
  Kept kept{head->state, {}};
  const std::string text = state_text(url_, kept.state);
  while (kept.stored.size() < kept.state.length) {
    const std::uint64_t left = kept.state.length - kept.stored.size();
    const auto block = store_.find(text, kept.stored.size() / kBlockBytes);
    if (!block || block->size() != std::min(left, kBlockBytes)) return std::nullopt;
    kept.stored.insert(kept.stored.end(), block->begin(), block->end());
  }
  return kept;
}

void KeptIndex::keep(const ObjectState& state, codec::ByteView stored) const {
  if (!store_.keeps() || !state.is_identified()) return;
  const std::string text = state_text(url_, state);
  for (std::uint64_t begin = 0; begin < stored.size(); begin += kBlockBytes)
    store_.keep(text, begin / kBlockBytes, stored.subspan(begin, std::min(kBlockBytes, stored.size() - begin)));
  KeptHeads(store_).keep(url_, {state, {}});
}

}  // namespace cframefs::frame
