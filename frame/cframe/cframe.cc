#include "frame/cframe/cframe.h"

#include <utility>

#include "frame/cframe/frame_container.h"

namespace cframefs::frame {

namespace {

class CFrame final : public FrameContainer {
 public:
  explicit CFrame(FrameParts parts) : FrameContainer(std::move(parts)) {}

 private:
  Result<void> find_stored(std::int64_t entry, ChunkLocation& location) const override {
    return find_in_section(entry, codec::kExtendedHeaderLength, location);
  }
};

}  // namespace

Result<std::shared_ptr<const FrameContainer>> open_cframe(std::shared_ptr<const ByteSource> source,
                                                          std::shared_ptr<IndexCache> index_cache) {
  auto parts = read_frame_parts(std::move(source), layout::kContiguous, std::move(index_cache));
  if (!parts) return codec::Failure(parts.error());
  return std::make_shared<const CFrame>(std::move(*parts));
}

}  // namespace cframefs::frame
