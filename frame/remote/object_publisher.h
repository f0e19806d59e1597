// Makes new objects in one bucket (publishing/new_object.h).
//
// Endpoint, region and credentials are those of the environment and of ~/.aws, as the AWS tools read them.
//
// Thread safety: internally synchronised; several objects may be uploaded at a time. Ownership: owns its connections
// and threads; the objects borrow it. Errors: unsupported from a build without the option `remote`; invalid for what is
// no bucket or no key; those of new_object.h.
#pragma once

#include <memory>
#include <string>

#include "frame/remote/publishing/new_object.h"

namespace cframefs::frame {

class ObjectPublisher {
 public:
  virtual ~ObjectPublisher() = default;

  static Result<std::unique_ptr<ObjectPublisher>> open(const std::string& bucket);

  virtual Result<std::unique_ptr<NewObject>> begin(const std::string& key, const UploadOptions& options) = 0;
};

}  // namespace cframefs::frame
