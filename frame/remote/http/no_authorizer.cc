#include "frame/remote/http/authorizer.h"

namespace cframefs::frame {
namespace {

class NoAuthorizer final : public Authorizer {
 public:
  Result<void> authorize(HttpRequest&) override { return {}; }
  bool may_renew(const HttpAnswer&) override { return false; }
};

}  // namespace

Authorizer& no_authorizer() {
  static NoAuthorizer instance;
  return instance;
}

}  // namespace cframefs::frame
