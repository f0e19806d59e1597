#include "frame/container/container.h"

namespace cframefs::frame {

std::string_view kind_name(ContainerKind kind) {
  switch (kind) {
    case ContainerKind::cframe:
      return "cframe";
    case ContainerKind::sframe:
      return "sframe";
    case ContainerKind::legacy:
      return "legacy";
    case ContainerKind::bloscpack:
      return "bloscpack";
    case ContainerKind::chunk:
      return "chunk";
    case ContainerKind::none:
      break;
  }
  return {};
}

}  // namespace cframefs::frame
