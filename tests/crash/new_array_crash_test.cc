// An array replaces another one, as by numpy.save(). After a power cut at any moment and after a failure of any call,
// the file is the complete old array or the complete new one.
#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include "frame/array/array_view.h"
#include "fs/write/write_back.h"
#include "tests/crash/simulated_disk.h"
#include "tests/support/array_builder.h"
#include "tests/support/failing_files.h"
#include "tests/support/fake_write_back_host.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using frame::Durability;
using test::ArraySpec;
using test::Bytes;
using test::DiskImage;
using CallKind = test::FileCall::Kind;
using test::SimulatedDisk;

constexpr const char* kArray = "x.b2nd";

codec::Result<std::shared_ptr<const frame::FlatView>> npy(std::shared_ptr<const frame::Container> container) {
  return frame::make_view(std::move(container), frame::ArrayForm::npy, true);
}

ArraySpec old_spec() {
  return {{7, 35}, {3, 20}, {2, 10}, 4, "<i4"};
}

Bytes npy_file(const std::string& dtype, std::uint64_t itemsize, const std::vector<std::int64_t>& shape,
               const Bytes& items) {
  frame::B2ndMeta layer;
  layer.shape = shape;
  layer.dtype = dtype;
  Bytes file = frame::npy_head_of(layer, itemsize);
  file.insert(file.end(), items.begin(), items.end());
  return file;
}

class NewArrayRun {
 public:
  NewArrayRun() {
    fs::FrameLocation place{
        std::make_shared<const frame::Descriptor>(disk_, *disk_.open_at(SimulatedDisk::kDirectory, ".", 0)), kArray,
        kArray};
    const auto frame =
        std::make_shared<const frame::Descriptor>(disk_, *disk_.open_at(SimulatedDisk::kDirectory, kArray, 0));
    auto opened =
        fs::WriteBack::open(shared_, std::make_unique<test::FakeWriteBackHost>(npy), {std::move(place), frame});
    EXPECT_TRUE(opened) << codec::describe(opened.error());
    if (opened) file_ = *opened;
  }

  SimulatedDisk& disk() { return disk_; }
  test::FailingFiles& files() { return files_; }
  codec::Result<void> save() {
    if (auto cut = file_->resize(0); !cut) return cut;
    for (std::size_t at = 0; at < wanted_.size(); at += 1000) {
      const auto piece = codec::ByteView(wanted_).subspan(at, std::min<std::size_t>(1000, wanted_.size() - at));
      if (auto done = file_->write(at, piece); !done) return codec::Failure(done.error());
    }
    return {};
  }
  codec::Result<void> commit(Durability durability) { return file_->commit(durability); }

  /// Returns "old" or "new" if the image holds this array, otherwise a description.
  std::string found(const DiskImage& image) const {
    const auto file = image.find(kArray);
    if (file == image.end()) return "gone";
    const auto opened = test::open_frame(file->second);
    const auto view = opened ? npy(*opened) : codec::Failure(opened.error());
    if (!view) return codec::describe(view.error());
    const auto bytes = test::read_range(**view, 0, (*view)->size());
    if (!bytes) return codec::describe(bytes.error());
    return *bytes == before_ ? "old" : *bytes == wanted_ ? "new" : "neither";
  }

 private:
  const Bytes items_ = test::varied_items(old_spec().nbytes());
  const Bytes before_ = npy_file("<i4", 4, {7, 35}, items_);
  const Bytes wanted_ = npy_file("<f8", 8, {60, 21}, test::varied_items(60 * 21 * 8, 5));
  SimulatedDisk disk_{DiskImage{{kArray, test::array_frame(old_spec(), items_).build()}}};
  test::FailingFiles files_{disk_};
  fs::Statistics statistics_;
  fs::DedupLogger once_;
  fs::ReadPath read_path_{1U << 20, statistics_.decoding, once_, 2};
  fs::WorkerPool workers_;
  fs::ChunkEncoders encoders_{workers_, 0, statistics_.writing};
  fs::WriteBackShared shared_{files_, read_path_, encoders_, statistics_.writing, once_, nullptr, 1U << 24};
  std::shared_ptr<fs::WriteBack> file_;
};

TEST(NewArrayCrashTest, APowerCutLeavesTheOldArrayOrTheNewOne) {
  for (const Durability durability : {Durability::ordered, Durability::durable}) {
    NewArrayRun run;
    int images = 0;
    const auto look = [&](bool may_be_old) {
      for (const char* file : {kArray, ""}) {
        run.disk().crash_images(file, [&](const DiskImage& image) {
          ++images;
          const std::string found = run.found(image);
          EXPECT_TRUE(found == "new" || (may_be_old && found == "old")) << found;
        });
      }
    };
    run.disk().before_sync([&] { look(true); });
    ASSERT_TRUE(run.save());
    ASSERT_TRUE(run.commit(durability));
    look(durability == Durability::ordered);
    EXPECT_EQ(run.found(run.disk().now()), "new");
    EXPECT_GT(images, 4);
  }
}

/// Returns true for calls whose failure makes a commit fail. Failures to remove, stamp or lock a file not always do.
bool counts(const test::FileCall& call) {
  return test::FailingFiles::changes(call) && call.kind < CallKind::make;
}

TEST(NewArrayCrashTest, AFailedCallLeavesTheOldArrayAndTheNextCommitSucceeds) {
  std::int64_t renamed = 0;  // number of the call that renames the new array over the old one
  for (std::int64_t number = 1;; ++number) {
    NewArrayRun run;
    ASSERT_TRUE(run.save());
    run.files().count(counts);
    run.files().fail(number, ENOSPC);
    const auto done = run.commit(Durability::ordered);
    const auto failed = run.files().failed();
    // The calls after the rename, such as the sync of the directory, cannot bring the old array back.
    const bool has_its_place = done || (renamed > 0 && number > renamed);
    if (failed && failed->kind == CallKind::rename) renamed = number;
    EXPECT_EQ(run.found(run.disk().now()), has_its_place ? "new" : "old") << number;
    run.files().stop();
    const auto again = run.commit(Durability::durable);
    if (again) {
      EXPECT_EQ(run.found(run.disk().now()), "new") << number;
    } else {
      // After a failed sync the file must be opened again.
      ASSERT_TRUE(failed);
      EXPECT_EQ(failed->kind, CallKind::sync) << number << ": " << again.error().reason;
    }
    if (!failed) break;
  }
  EXPECT_GT(renamed, 0);
}

}  // namespace
}  // namespace cframefs
