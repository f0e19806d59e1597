// How durable the committed version of a FrameWriter is.
//
//               sync_all()                 adopt(): a commit has switched to a new version
//    fresh ──────────────────▶ synced ───────────────────────────────────────────▶ unsynced
//      │                        │ ▲                                                 │    │
//      │                        │ └── sync_all(), or a new file that was synced ────┘    │
//      │ a sync fails           └───────────────────┬────────────────────────────────────┘
//      ▼                                            ▼ a sync fails, or the switch fails and cannot be undone
//  fresh_failed                                   failed
//
// A commit leaves `fresh` and `unsynced` as they are, a sync leaves `synced` as it is, and a failed state is final:
// every commit() fails until another writer opens the frame.
#pragma once

#include <cstdint>

namespace cframefs::frame {

enum class WriterState : std::uint8_t {
  /// Neither the content nor the name of the file was ever synced. Until the first durable commit the file need not
  /// survive a crash, so ordered commits do not wait for the disk.
  fresh,
  synced,        // the committed version is durable
  unsynced,      // after a crash the file holds the committed version or an earlier one
  failed,        // the content of the disk is unknown
  fresh_failed,  // as `failed`, and nothing of the file need have survived
};

constexpr bool is_failed(WriterState state) {
  return state == WriterState::failed || state == WriterState::fresh_failed;
}

/// Returns true if nothing of the file was ever synced.
constexpr bool is_fresh(WriterState state) {
  return state == WriterState::fresh || state == WriterState::fresh_failed;
}

constexpr WriterState failed_after(WriterState state) {
  return is_fresh(state) ? WriterState::fresh_failed : WriterState::failed;
}

/// Returns true if a writer may go from one state to the other, or stay in it.
constexpr bool is_legal(WriterState from, WriterState to) {
  if (is_failed(from)) return from == to;
  if (is_failed(to)) return to == failed_after(from);
  return from == to || (to == WriterState::synced) || (from == WriterState::synced && to == WriterState::unsynced);
}

}  // namespace cframefs::frame
