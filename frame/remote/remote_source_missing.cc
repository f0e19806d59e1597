#include <cerrno>

#include "frame/remote/remote_confinement.h"
#include "frame/remote/remote_source.h"

namespace cframefs::frame {

Result<std::unique_ptr<RemoteSource>> RemoteSource::open(const std::string& address, const RemoteOptions& /*options*/) {
  codec::Failure failure = codec::unsupported(
      "this build reads no servers: it was made without libcurl and libexpat (meson option 'remote')");
  failure.value().path = frame::shown_address(address);
  return failure;
}

std::vector<std::string> credential_files(const RemoteOptions& /*options*/) {
  return {};
}

Result<std::string> output_of_credential_process(const RemoteOptions& /*options*/) {
  return codec::io_error(EACCES, "credential_process");
}

}  // namespace cframefs::frame
