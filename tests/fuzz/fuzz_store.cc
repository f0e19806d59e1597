// Stores: a zip file or an embed frame, whichever the input is, is listed and every leaf of it read.
#include <algorithm>

#include "frame/store/store.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs;

constexpr std::uint64_t kMaxRead = 4096;
constexpr int kMaxDepth = 64;

void read_end(const frame::Store& store, const frame::Store::Leaf& leaf) {
  const auto source = store.open(leaf);
  if (!source) return;
  FUZZ_CHECK((*source)->size() == leaf.size);
  std::vector<std::uint8_t> bytes(std::min(leaf.size, kMaxRead));
  static_cast<void>((*source)->read(frame::FileOffset{leaf.size - bytes.size()}, bytes));
}

void walk(const frame::Store& store, const std::string& directory, int depth) {
  if (depth > kMaxDepth) return;
  if (const frame::Store::Leaf* metadata = store.metadata_of(directory)) read_end(store, *metadata);
  for (const auto& [name, is_directory] : store.list(directory)) {
    FUZZ_CHECK(!name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos);
    const std::string path = directory.empty() ? name : directory + "/" + name;
    if (is_directory) {
      FUZZ_CHECK(store.has_directory(path));
      walk(store, path, depth + 1);
      continue;
    }
    const frame::Store::Leaf* leaf = store.find(path);
    FUZZ_CHECK(leaf != nullptr);
    read_end(store, *leaf);
  }
}

}  // namespace

FUZZ_TARGET(store)(const std::uint8_t* data, std::size_t size) {
  const auto source = [&] { return frame::memory_source({data, data + size}); };
  const auto zip = frame::Store::open_zip(source(), std::make_shared<frame::InflateMemory>());
  if (zip && *zip) walk(**zip, "", 0);
  const auto embed = frame::Store::open_embed(source());
  if (embed) {
    FUZZ_CHECK(*embed != nullptr);
    walk(**embed, "", 0);
  }
  return 0;
}
