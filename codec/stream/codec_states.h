// What a codec keeps between streams: states that it reuses from stream to stream, and the dictionary of a chunk.
//
// Each codec defines its own types. CodecStates has one slot per row of the codec table, filled on first use.
//
// Thread safety: CodecStates serves one thread at a time, like the context that owns it; a Dictionary is immutable and
// may be shared.
#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <vector>

#include "codec/base/error.h"

namespace cframefs::codec {

struct CodecInfo;

class CodecState {
 public:
  CodecState() = default;
  CodecState(const CodecState&) = delete;
  CodecState& operator=(const CodecState&) = delete;
  virtual ~CodecState() = default;

  /// Returns the bytes of memory whose size depends on level and data; 0 if the size of the state is fixed.
  virtual std::size_t variable_bytes() const { return 0; }
};

using StateSlot = std::unique_ptr<CodecState>;

/// Returns the state in `slot`, created on first use. REQUIRES: the codec uses no other type with this slot.
template <class State>
State& state_in(StateSlot& slot) {
  if (!slot) slot = std::make_unique<State>();
  return static_cast<State&>(*slot);
}

/// Returns the error of a state whose memory could not be allocated. Empties `slot`, so that the next stream tries
/// again.
inline Failure out_of_memory(StateSlot& slot, const char* codec) {
  slot.reset();
  return io_error(ENOMEM, codec);
}

class CodecStates {
 public:
  CodecStates();

  /// Returns the slot of a row of the codec table.
  StateSlot& slot(const CodecInfo& codec);

  /// Frees the states that have more than `most` variable bytes.
  void trim(std::size_t most);

 private:
  std::vector<StateSlot> slots_;  // as the rows of the table
};

/// The dictionary of a chunk (chunk.md section 3), preprocessed by its codec for decoding or for encoding.
class Dictionary {
 public:
  Dictionary() = default;
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;
  virtual ~Dictionary() = default;
};

/// Returns the codec's own type. REQUIRES: the codec made the dictionary, for the same direction.
template <class Own>
const Own& dictionary_as(const Dictionary& dictionary) {
  return static_cast<const Own&>(dictionary);
}

}  // namespace cframefs::codec
