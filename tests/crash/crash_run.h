// Runs a writer on a simulated disk, and checks the states that a power cut could leave at any moment.
//
// Thread safety: one thread. Errors: failure() describes the first invalid state.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "frame/write/frame_writer.h"
#include "tests/crash/simulated_disk.h"
#include "tests/support/failing_files.h"
#include "tests/support/frame_model.h"

namespace cframefs::test {

/// Changes of a frame between two commits.
enum class Step : std::uint8_t {
  write_inside,
  append_part,
  append_chunks,
  extend,
  truncate,
  empty,
  punch,
  set_vlmetalayer,
  set_metalayer,
  compact,
};
inline constexpr int kSteps = 10;

/// The commit that follows a step.
enum class After : std::uint8_t { nothing, ordered, durable };

struct ScriptLine {
  Step step;
  After after;
};
using Script = std::vector<ScriptLine>;
std::string describe(const Script& script);

/// Checks states of many runs. Equal images are read only once.
class Judge {
 public:
  /// Returns an empty string if the frame in `image` opens and holds one of `allowed` from `first_allowed` on, or a
  /// description of the fault.
  std::string judge(const DiskImage& image, const std::vector<FrameModel>& allowed, std::size_t first_allowed);

  std::uint64_t states() const { return states_; }
  std::uint64_t different_states() const { return readings_.size(); }
  /// Called with each new image that is valid.
  std::function<void(const DiskImage&, const FrameModel&)> on_new_state;

 private:
  using Reading = std::shared_ptr<const FrameModel>;

  Reading kept_once(FrameModel model);

  std::unordered_map<std::uint64_t, Reading> readings_;  // by the hash of the image
  std::unordered_map<std::uint64_t, Reading> models_;    // by the hash of the model
  std::uint64_t states_ = 0;
};

inline constexpr const char* kFrameName = "frame.b2frame";

/// A frame of two and a half chunks, and its content.
struct StartingFrame {
  enum class Kind : std::uint8_t { contiguous, sparse };
  explicit StartingFrame(Kind kind = Kind::contiguous);
  DiskImage image;
  FrameModel model;
};

class CrashRun {
 public:
  /// `model`: the content of the frame in `image`.
  CrashRun(Judge& judge, const DiskImage& image, FrameModel model);

  SimulatedDisk& disk() { return disk_; }
  /// Returns the file operations of the writer: those of the disk, with injected faults.
  FailingFiles& files() { return files_; }
  frame::FrameWriter* writer() { return writer_.get(); }
  const FrameModel& model() const { return model_; }
  const std::string& failure() const { return failure_; }

  /// Opens the writer (again).
  codec::Result<void> open();
  codec::Result<void> run(const ScriptLine& line);
  codec::Result<void> run(const Script& script);
  codec::Result<void> step(Step step);
  codec::Result<void> commit(After after);
  /// Checks all states that a power cut now could leave.
  void look();
  /// Sets whether every sync calls look(). Default: true. Not needed for lines that another run with the same beginning
  /// has checked, because their images are equal.
  void watch(bool wanted) { watching_ = wanted; }
  /// From now on readers hold the last `count` states and read them again after each commit. A reader must get the
  /// content of the state that it holds.
  void keep_readers(std::size_t count) { readers_kept_ = count; }
  /// From now on dead bytes are punched after each commit, as on a full disk.
  void punch_after_commits() { punches_ = true; }
  std::uint64_t punched_bytes() const { return punched_bytes_; }
  /// Checks that the current state, without a power cut, is also one that a power cut may leave.
  void look_without_cut();

 private:
  /// A state that a program has open.
  struct Reader {
    std::shared_ptr<const frame::Container> state;
    FrameModel model;
  };

  codec::Result<void> write(std::size_t at, std::size_t size);
  codec::Result<void> commit_as(const std::function<codec::Result<void>()>& commit, bool durable);
  void check_readers();

  Judge& judge_;
  const bool sparse_;
  SimulatedDisk disk_;
  FailingFiles files_{disk_};
  std::deque<Reader> readers_;
  std::size_t readers_kept_ = 0;
  std::unique_ptr<frame::FrameWriter> writer_;
  FrameModel model_;                // includes pending changes
  std::vector<FrameModel> states_;  // committed states, and the one that is being committed
  std::size_t durable_ = 0;         // index of the last state acknowledged as durable
  unsigned seed_ = 0;
  bool watching_ = true;
  bool punches_ = false;
  std::uint64_t punched_bytes_ = 0;
  std::string failure_;
};

}  // namespace cframefs::test
