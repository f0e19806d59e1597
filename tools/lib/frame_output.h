// The output of pack and convert: a file or standard output (result_file.h), or an object in a bucket, which is
// uploaded while it is written.
//
// Thread safety: one thread at a time; several outputs may be written at a time. Ownership: owns the file or the
// upload; an upload that is not published is aborted. Errors: as result_file.h and
// frame/remote/publishing/new_object.h; invalid for an address that is no object in a bucket.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "frame/io/write_target.h"
#include "frame/remote/publishing/new_object.h"
#include "tools/lib/result_file.h"

namespace cframefs::tools {

class FrameOutput {
 public:
  /// As ResultFile::create(). `expected`: length of the output as far as it is known, or 0.
  static codec::Result<FrameOutput> create(const std::string& argument, bool replace, const FileTraits& like,
                                           std::uint64_t expected, Io& io);

  frame::WriteTarget& target() { return *target_; }
  codec::Result<void> publish();
  /// Returns the entity tag of a published object; empty for a file.
  std::string entity_tag() const { return object_ ? object_->entity_tag() : std::string(); }

 private:
  FrameOutput() = default;

  std::optional<ResultFile> file_;
  std::string address_;
  std::unique_ptr<frame::NewObject> object_;
  std::unique_ptr<frame::FileTarget> in_file_;
  frame::WriteTarget* target_ = nullptr;
};

/// Ends the connections to buckets and their threads, as close_servers() does (server_paths.h). REQUIRES: there are no
/// outputs.
void close_buckets();

}  // namespace cframefs::tools
