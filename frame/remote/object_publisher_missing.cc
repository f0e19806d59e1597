#include "frame/remote/object_publisher.h"

namespace cframefs::frame {

Result<std::unique_ptr<ObjectPublisher>> ObjectPublisher::open(const std::string& /*bucket*/) {
  return codec::unsupported(
      "this build writes to no servers: it was made without libcurl and libexpat (meson option 'remote')");
}

}  // namespace cframefs::frame
