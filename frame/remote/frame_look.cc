#include "frame/remote/frame_look.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "frame/array/array_view.h"
#include "frame/base/suffixes.h"
#include "frame/cframe/frame_container.h"
#include "frame/cframe/frame_header.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/open/open.h"
#include "frame/store/store.h"

namespace cframefs::frame {
namespace {

/// Returns an error of the source; success for what the bytes say.
Result<void> io_of(const codec::Error& error) {
  return error.kind == ErrorKind::io || error.kind == ErrorKind::stale ? Result<void>(codec::Failure(error))
                                                                       : Result<void>();
}

/// Returns whether the header alone tells the size.
bool tells_size(codec::ByteView first, const std::string& name) {
  if (container_suffix(name) == kArraySuffix) return false;
  const auto header = parse_fixed_header(first);
  return header && header->parameters.nbytes > 0 && header->parameters.header_length <= layout::kMinHeaderLength;
}

}  // namespace

bool is_looked_at(const std::string& name) {
  return !container_suffix(name).empty() || name.ends_with(kZipStoreSuffix) || name.ends_with(kEmbedStoreSuffix);
}

Result<void> read_as_look_up(const std::shared_ptr<const ByteSource>& source, const std::string& name) {
  std::vector<std::uint8_t> first(
      static_cast<std::size_t>(std::min<std::uint64_t>(layout::kFixedHeaderLength, source->size())));
  if (first.empty()) return {};
  if (auto done = source->read(FileOffset{0}, first); !done) return done;
  if (tells_size(first, name)) return {};
  if (name.ends_with(kZipStoreSuffix)) {
    const auto is_store = Store::is_store_zip(*source);
    return is_store ? Result<void>() : io_of(is_store.error());
  }
  if (name.ends_with(kEmbedStoreSuffix)) {
    const auto store = Store::open_embed(source);
    return store ? Result<void>() : io_of(store.error());
  }
  if (name == kSparseIndexName) {
    const auto parts = read_frame_parts(source, layout::kSparse, std::make_shared<IndexCache>());
    return parts ? Result<void>() : io_of(parts.error());
  }
  auto container = open_container(source);
  if (!container) return io_of(container.error());
  const auto view = make_view(std::move(*container), ArrayForm::npy, container_suffix(name) == kArraySuffix);
  return view ? Result<void>() : io_of(view.error());
}

}  // namespace cframefs::frame
