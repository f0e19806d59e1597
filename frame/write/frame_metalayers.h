// Changes the metalayers of a frame. The changes are pending until the writer's next commit.
//
// Names have 1 to 31 bytes; a frame has at most 16 metalayers of each kind.
//
// Thread safety: as FrameWriter. Ownership: borrows the writer. Errors: those of FrameWriter.
#pragma once

#include <string>

#include "frame/write/frame_writer.h"

namespace cframefs::frame {

class FrameMetalayers {
 public:
  explicit FrameMetalayers(FrameWriter& writer) : writer_(writer) {}

  /// Set a metalayer, or add it.
  Result<void> set_variable(const std::string& name, ByteView content);
  Result<void> set_fixed(const std::string& name, ByteView content);
  Result<void> remove_variable(const std::string& name);

 private:
  Result<void> set_stored(const std::string& name, std::vector<std::uint8_t> chunk);
  Result<void> change_variable(const std::function<Result<void>(std::vector<Metalayer>&)>& change);

  FrameWriter& writer_;
};

}  // namespace cframefs::frame
