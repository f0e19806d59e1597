// The content of a file as `cframe diff` and `cframe bench` read it: what a mount shows of a frame, or the bytes of any
// other file.
//
// Thread safety: immutable. Ownership: owns the file. Errors: as open_frame(); invalid for what is no file.
#pragma once

#include <memory>
#include <string>

#include "tools/cframe/cframe.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::tools {

class PlainContent {
 public:
  /// `argument`: a file, or "-". A file that is not a container and has no container's suffix is taken as it is.
  static codec::Result<PlainContent> open(const std::string& argument, frame::ArrayForm form, Io& io);

  const std::string& name() const { return input_.name(); }
  std::uint64_t size() const { return size_; }
  /// Returns the container; null for any other file.
  const frame::Container* container() const { return view_ ? &view_->container() : nullptr; }
  /// Returns the length of the header that precedes the items of an array; 0 for any other content.
  std::uint64_t head_size() const { return view_ ? view_->head().size() : 0; }

  /// Passes bytes [begin, begin + length) to `sink`. REQUIRES: begin + length <= size().
  codec::Result<void> stream(std::uint64_t begin, std::uint64_t length, unsigned workers, const Sink& sink,
                             const std::atomic<bool>& stop) const;

 private:
  explicit PlainContent(InputFile input) : input_(std::move(input)) {}
  codec::Result<bool> open_file();

  InputFile input_;
  std::uint64_t size_ = 0;
  std::shared_ptr<const frame::FlatView> view_;    // of a container
  std::shared_ptr<const frame::Descriptor> file_;  // of any other file
};

}  // namespace cframefs::tools
