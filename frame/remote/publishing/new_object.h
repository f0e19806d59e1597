// A new object of a bucket, which is uploaded while it is written (ObjectUpload), as callers see it.
//
// Thread safety: one thread at a time. Ownership: an object that is destroyed before publish() has succeeded removes
// all that it has uploaded, and takes the time that this needs. Errors: those of Requests; io EEXIST if the object
// exists and may not be replaced; unsupported from a service that cannot promise that; io EINTR if the stop flag is
// set; stale if another object has taken the place of the new one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "frame/io/write_target.h"

namespace cframefs::frame {

struct UploadOptions {
  bool replace = false;        // an object that exists
  std::uint64_t expected = 0;  // length of the object as far as it is known; 0: not known
  std::string remedy = {};     // appended to the error of a service without conditions, which `replace` avoids
  const std::atomic<bool>* stop = nullptr;
  /// Called with the reason if parts stay in the bucket because an upload could not be aborted.
  std::function<void(const Error&)> left_behind = nullptr;
};

class NewObject : public WriteTarget {
 public:
  /// Uploads what is left, gives the object its name, and reads back whether it is there, if the user may read it.
  /// Once.
  virtual Result<void> publish() = 0;
  /// Returns the entity tag of the published object, with quotes; empty if the service gives none.
  virtual const std::string& entity_tag() const = 0;
};

}  // namespace cframefs::frame
