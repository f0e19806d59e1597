#include "frame/cframe.h"

#include <string>
#include <utility>

#include "frame/frame_container.h"

namespace cframefs::frame {

namespace {

class CFrame final : public FrameContainer {
 public:
  explicit CFrame(FrameParts parts) : FrameContainer(std::move(parts)) {}

 private:
  Result<void> find_stored(std::int64_t entry, ChunkPlace& place) const override {
    const FrameParameters& parameters = this->parameters();
    const auto offset = static_cast<std::uint64_t>(entry);
    if (parameters.cbytes < codec::kExtendedHeaderLength || offset > parameters.cbytes - codec::kExtendedHeaderLength) {
      return codec::corrupt("offset " + std::to_string(entry) + " lies outside the chunk section of " +
                            std::to_string(parameters.cbytes) + " bytes");
    }
    place.source = parts().source;
    place.offset = FileOffset{parameters.header_length + offset};
    place.limit = parameters.cbytes - offset;
    return {};
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
