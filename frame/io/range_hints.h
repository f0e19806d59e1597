// What readers of a file tell in advance, for files whose reads may be requests to another machine.
//
// Thread safety: all members may run concurrently. Errors: those of reads from fetch(); hints change no result.
#pragma once

#include <cstdint>
#include <optional>

#include "codec/base/error.h"
#include "frame/base/coordinates.h"
#include "frame/io/server_counts.h"

namespace cframefs::frame {

struct OpenFile;

class RangeHints {
 public:
  virtual ~RangeHints() = default;
  /// Returns whether each read may be a request to another machine, so that one large read is better than several.
  virtual bool is_remote() const { return false; }
  /// Returns whether many readers wait for the server. Bytes that only may be read would delay them.
  virtual bool is_busy() const { return false; }
  /// Returns what was asked for so far; nothing if no file of the tree is on a server.
  virtual std::optional<ServerCounts> server_counts() const { return std::nullopt; }
  /// Tells that the range will be read soon, in parts: if is_remote(), the next read in it fetches all of it.
  virtual void expect(OpenFile file, FileOffset at, std::uint64_t length);
  /// If is_remote(), waits until the range is at hand, or there is no room for it, so that the next read of it waits
  /// for no server. Returns the error that this read would meet.
  virtual codec::Result<void> fetch(OpenFile file, FileOffset at, std::uint64_t length);
};

}  // namespace cframefs::frame
