#include "frame/remote/objects/object_id.h"

#include <atomic>
#include <cstdlib>

#include <openssl/evp.h>

#include "codec/base/bytes.h"

namespace cframefs::frame {

Sha256 sha256_of(const std::string& text) {
  Sha256 digest{};
  // It fails only if memory is exhausted or libcrypto lacks SHA-256: two objects must not get one name then.
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) std::abort();
  return digest;
}

std::string state_text(const std::string& url, const ObjectState& state) {
  std::string text = url + '\n' + std::to_string(state.length) + '\n';
  if (!state.entity_tag.empty()) return text + "tag " + state.entity_tag;
  if (!state.version_id.empty()) return text + "version " + state.version_id;
  return text + "date " + std::to_string(state.last_modified);
}

ObjectId object_id(const std::string& text) {
  const Sha256 digest = sha256_of(text);
  return {codec::load_be<std::uint64_t>(digest.data()), codec::load_be<std::uint64_t>(&digest[8])};
}

ObjectId unshared_object_id() {
  static std::atomic<std::uint64_t> last{0};
  return {0, last.fetch_add(1, std::memory_order_relaxed) + 1};
}

}  // namespace cframefs::frame
