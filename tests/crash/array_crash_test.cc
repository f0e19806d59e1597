// Power cuts at every moment while an array is written as in a mount. After a cut, shape and items are those of a
// committed state that is not older than the last one acknowledged as durable.
#include <cstdio>
#include <functional>
#include <random>
#include <string_view>
#include <unordered_map>

#include <gtest/gtest.h>

#include "frame/array/array_view.h"
#include "fs/write/write_back.h"
#include "tests/crash/crash_run.h"
#include "tests/crash/simulated_disk.h"
#include "tests/support/array_builder.h"
#include "tests/support/fake_write_back_host.h"
#include "tests/support/reading.h"
#include "tests/support/sanitizers.h"

namespace cframefs {
namespace {

using frame::Durability;
using test::After;
using test::ArraySpec;
using test::Bytes;
using test::DiskImage;
using test::SimulatedDisk;

constexpr const char* kName = "x.b2nd";

/// An array of 7 rows of 35 items of 4 bytes, with chunks larger than a sector.
ArraySpec starting_spec() {
  return {{7, 35}, {3, 20}, {2, 10}, 4, "<i4"};
}

codec::Result<std::shared_ptr<const frame::FlatView>> flat(std::shared_ptr<const frame::Container> container) {
  return frame::make_view(std::move(container), frame::ArrayForm::flat, true);
}

enum class ArrayStep : std::uint8_t { overwrite, append_row, append_rows, cut_row, cut_all, gap };
constexpr int kArraySteps = 6;
struct ArrayLine {
  ArrayStep step;
  After after;
};

/// The states seen by all runs, so that equal images are read only once.
struct Seen {
  std::uint64_t states = 0;
  std::unordered_map<std::size_t, Bytes> items;  // by the hash of the image
};

/// A write-back on a simulated disk, as in a mount.
class ArrayRun {
 public:
  explicit ArrayRun(Seen& seen)
      : seen_(seen),
        model_(test::varied_items(starting_spec().nbytes())),
        allowed_{model_},
        disk_(DiskImage{{kName, test::array_frame(starting_spec(), model_).build()}}) {
    disk_.before_sync([this] {
      if (watching_) look();
    });
    fs::FrameLocation place{
        std::make_shared<const frame::Descriptor>(disk_, *disk_.open_at(SimulatedDisk::kDirectory, ".", 0)), kName,
        kName};
    const auto frame =
        std::make_shared<const frame::Descriptor>(disk_, *disk_.open_at(SimulatedDisk::kDirectory, kName, 0));
    auto opened =
        fs::WriteBack::open(shared_, std::make_unique<test::FakeWriteBackHost>(flat), {std::move(place), frame});
    EXPECT_TRUE(opened) << codec::describe(opened.error());
    if (opened) file_ = *opened;
  }

  const std::string& failure() const { return failure_; }
  bool is_open() const { return file_ != nullptr; }

  /// Sets whether every sync checks the crash images. Not needed for lines that a run with the same beginning has
  /// checked.
  void watch(bool wanted) { watching_ = wanted; }
  codec::Result<void> run(const ArrayLine& line) {
    if (auto done = step(line.step); !done) return done;
    if (line.after == After::nothing) return {};
    allowed_.push_back(model_);
    const bool durable = line.after == After::durable;
    auto done = file_->commit(durable ? Durability::durable : Durability::ordered);
    if (done && durable) durable_ = allowed_.size() - 1;
    return done;
  }
  void look() {
    disk_.crash_images(kName, [this](const DiskImage& image) {
      if (failure_.empty()) failure_ = judge(image);
    });
  }

 private:
  static constexpr std::size_t kRow = 35 * 4;

  codec::Result<void> put(std::size_t at, std::size_t size) {
    const Bytes bytes = test::varied_items(size, ++seed_);
    model_.resize(std::max(model_.size(), at + size));
    std::copy(bytes.begin(), bytes.end(), model_.begin() + static_cast<std::ptrdiff_t>(at));
    const auto done = file_->write(at, bytes);
    return done ? codec::Result<void>() : codec::Failure(done.error());
  }
  codec::Result<void> resize(std::size_t size) {
    model_.resize(size);
    return file_->resize(size);
  }
  codec::Result<void> step(ArrayStep step) {
    const std::size_t size = model_.size();
    switch (step) {
      case ArrayStep::overwrite:
        return put(size / kRow / 2 * kRow + (size == 0 ? 0 : 50), size == 0 ? kRow : 60);
      case ArrayStep::append_row:
        return put(size, kRow);
      case ArrayStep::append_rows:
        return put(size, 5 * kRow);
      case ArrayStep::cut_row:
        return resize(size - std::min(size, kRow));
      case ArrayStep::cut_all:
        return resize(0);
      case ArrayStep::gap:
        return put(size + 2 * kRow, kRow);
    }
    return codec::invalid("no such step");
  }

  static codec::Result<Bytes> read(const Bytes& frame) {
    const auto opened = test::open_frame(frame);
    if (!opened) return codec::Failure(opened.error());
    const auto view = flat(*opened);
    if (!view) return codec::Failure(view.error());
    return test::read_range(**view, 0, (*view)->size());
  }

  std::string judge(const DiskImage& image) {
    ++seen_.states;
    const auto found = image.find(kName);
    if (found == image.end()) return "the array is gone";
    const std::string_view bytes(reinterpret_cast<const char*>(found->second.data()), found->second.size());
    const std::size_t key = std::hash<std::string_view>()(bytes);
    auto known = seen_.items.find(key);
    if (known == seen_.items.end()) {
      auto items = read(found->second);
      if (!items) return "it cannot be read: " + codec::describe(items.error());
      known = seen_.items.emplace(key, std::move(*items)).first;
    }
    for (std::size_t i = durable_; i < allowed_.size(); ++i) {
      if (known->second == allowed_[i]) return {};
    }
    return "it holds what was never committed, or no longer";
  }

  Seen& seen_;
  Bytes model_;
  std::vector<Bytes> allowed_;
  std::size_t durable_ = 0;
  std::uint64_t seed_ = 10;
  bool watching_ = true;
  std::string failure_;

  SimulatedDisk disk_;
  fs::Statistics statistics_;
  fs::DedupLogger once_;
  fs::ReadPath read_path_{1U << 20, statistics_.decoding, once_, 2};
  fs::WorkerPool workers_;
  fs::ChunkEncoders encoders_{workers_, 0, statistics_.writing};
  fs::WriteBackShared shared_{disk_, read_path_, encoders_, statistics_.writing, once_, nullptr, 1U << 24};
  std::shared_ptr<fs::WriteBack> file_;
};

void every_script(std::size_t length, std::vector<ArrayLine>& script,
                  const std::function<void(const std::vector<ArrayLine>&)>& take) {
  if (script.size() == length) return take(script);
  for (int step = 0; step < kArraySteps; ++step) {
    for (const After after : {After::nothing, After::ordered, After::durable}) {
      if (script.size() + 1 == length && after == After::nothing) continue;
      script.push_back({static_cast<ArrayStep>(step), after});
      every_script(length, script, take);
      script.pop_back();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// `watched`: number of last lines during which every sync checks the crash images.
void run_script(Seen& seen, const std::vector<ArrayLine>& lines, std::size_t watched) {
  ArrayRun run(seen);
  ASSERT_TRUE(run.is_open());
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ArrayLine& line = lines[i];
    run.watch(i + watched >= lines.size());
    text += std::to_string(static_cast<int>(line.step)) + "/" + std::to_string(static_cast<int>(line.after)) + " ";
    const auto done = run.run(line);
    ASSERT_TRUE(done) << text << codec::describe(done.error());
  }
  run.look();
  ASSERT_EQ(run.failure(), "") << text;
}

TEST(ArrayCrashTest, EveryScriptOfUpToTwoSteps) {
  Seen seen;
  std::uint64_t scripts = 0;
  for (std::size_t length = 1; length <= 2; ++length) {
    std::vector<ArrayLine> script;
    every_script(length, script, [&](const std::vector<ArrayLine>& lines) {
      ++scripts;
      run_script(seen, lines, 1);  // the shorter scripts have checked the lines before
    });
    if (HasFatalFailure()) return;
  }
  std::printf("%llu scripts, %llu states after a cut, %zu of them different\n",
              static_cast<unsigned long long>(scripts), static_cast<unsigned long long>(seen.states),
              seen.items.size());
  EXPECT_GT(seen.states, 1000U);
  EXPECT_GT(seen.items.size(), 5000U);
}

TEST(ArrayCrashTest, LongScripts) {
  Seen seen;
  for (unsigned seed = 0; seed < test::steps(20U); ++seed) {
    std::mt19937 random(seed);
    std::vector<ArrayLine> script;
    for (int i = 0; i < 8; ++i)
      script.push_back({static_cast<ArrayStep>(random() % kArraySteps), static_cast<After>(random() % 3)});
    script.push_back({ArrayStep::append_row, After::durable});
    run_script(seen, script, script.size());
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(seen.states, test::steps(1000U));
}

}  // namespace
}  // namespace cframefs
