// What a frame should hold, kept in the simplest way, and a writer that is told the same.
//
// Thread safety: one thread per object. Errors: check() reports by GoogleTest.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frame/write/frame_writer.h"

namespace cframefs::test {

/// An encoded chunk whose payload is the plain bytes, or zeros that are not stored.
codec::EncodedChunk encoded(codec::ByteView plain);

/// Bytes that differ from seed to seed.
std::vector<std::uint8_t> pattern(std::size_t size, unsigned seed);

struct FrameModel {
  std::int32_t chunksize = 0;
  std::vector<std::uint8_t> plain;
  std::map<std::string, std::vector<std::uint8_t>> vlmetalayers;
  std::map<std::string, std::vector<std::uint8_t>> metalayers;

  bool operator==(const FrameModel&) const = default;

  /// Overwrites, in both; longer than the plain bytes: appends.
  codec::Result<void> write(frame::FrameWriter& writer, std::size_t at, codec::ByteView bytes);
  codec::Result<void> resize(frame::FrameWriter& writer, std::size_t size);
  /// Chunks of [begin, end), as far as there are any, become zeros, as a run.
  void zero(frame::FrameWriter& writer, std::size_t begin, std::size_t end);
  codec::Result<void> set_vlmetalayer(frame::FrameWriter& writer, const std::string& name, codec::ByteView content);
  codec::Result<void> remove_vlmetalayer(frame::FrameWriter& writer, const std::string& name);
  codec::Result<void> set_metalayer(frame::FrameWriter& writer, const std::string& name, codec::ByteView content);

 private:
  codec::Result<void> store(frame::FrameWriter& writer, std::size_t chunk);
};

/// All that a container holds.
codec::Result<FrameModel> read_model(const frame::Container& container);

}  // namespace cframefs::test
