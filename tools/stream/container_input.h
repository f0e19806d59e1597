// The uncompressed bytes of a container as a seekable stream.
//
// Thread safety: one thread. Ownership: shares the container. Errors: those of the container, with chunk and offset.
#pragma once

#include <memory>
#include <utility>

#include "frame/container/container.h"
#include "tools/stream/block_decoder.h"
#include "tools/stream/fortran_input.h"

namespace cframefs::tools {

class ContainerInput final : public SeekableInput {
 public:
  explicit ContainerInput(std::shared_ptr<const frame::Container> container) : container_(std::move(container)) {}

  codec::Result<std::size_t> read(codec::ByteSpan into) override;
  void go_to(std::uint64_t at) override { at_ = at; }

 private:
  codec::Result<void> find_chunk();

  const std::shared_ptr<const frame::Container> container_;
  BlockDecoder decoder_;
  std::uint64_t at_ = 0;
  frame::ChunkSpan span_;  // the chunk of reader_
  std::shared_ptr<const frame::ChunkReader> reader_;
};

}  // namespace cframefs::tools
