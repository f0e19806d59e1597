#include "frame/remote/remote_source.h"

namespace cframefs::frame {

Result<std::unique_ptr<RemoteSource>> RemoteSource::open(const std::string& address, const RemoteOptions& /*options*/) {
  codec::Failure failure = codec::unsupported(
      "this build reads no servers: it was made without libcurl and libexpat (meson option 'remote')");
  failure.value().path = frame::shown_address(address);
  return failure;
}

}  // namespace cframefs::frame
