#include "frame/remote/listings/kept_heads.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "codec/base/bytes.h"

namespace cframefs::frame {
namespace {

// Little-endian: length of the object, modification time, length of the tag; then the tag and the first bytes.
constexpr std::size_t kTagLengthAt = 16;
constexpr std::size_t kTagAt = 18;

std::string name_of_head(const std::string& url) {
  return url + "\nfirst bytes";
}

}  // namespace

std::shared_ptr<const ObjectHead> KeptHeads::find(const std::string& url) const {
  const auto record = store_.find(name_of_head(url), 0);
  if (!record || record->size() < kTagAt) return nullptr;
  const std::size_t tag_length = codec::load_le<std::uint16_t>(&(*record)[kTagLengthAt]);
  if (record->size() - kTagAt < tag_length) return nullptr;
  auto head = std::make_shared<ObjectHead>();
  head->state.length = codec::load_le<std::uint64_t>(record->data());
  head->state.last_modified = static_cast<std::int64_t>(codec::load_le<std::uint64_t>(&(*record)[8]));
  const auto tag = record->begin() + static_cast<std::ptrdiff_t>(kTagAt);
  const auto bytes = tag + static_cast<std::ptrdiff_t>(tag_length);
  head->state.entity_tag.assign(tag, bytes);
  head->bytes.assign(bytes, record->end());
  return head;
}

bool KeptHeads::may_have(const std::string& url) const {
  return store_.keeps() && store_.may_have(name_of_head(url), 0);
}

void KeptHeads::keep(const std::string& url, const ObjectHead& head) const {
  const std::string& tag = head.state.entity_tag;
  if (!store_.keeps() || !head.state.is_identified() || tag.size() > std::numeric_limits<std::uint16_t>::max()) return;
  std::vector<std::uint8_t> record(kTagAt);
  codec::store_le(record.data(), head.state.length);
  codec::store_le(&record[8], static_cast<std::uint64_t>(head.state.last_modified));
  codec::store_le(&record[kTagLengthAt], static_cast<std::uint16_t>(tag.size()));
  record.insert(record.end(), tag.begin(), tag.end());
  record.insert(record.end(), head.bytes.begin(), head.bytes.end());
  store_.keep(name_of_head(url), 0, record);
}

}  // namespace cframefs::frame
