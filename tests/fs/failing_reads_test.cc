// Each call that looks at a file fails once, or for good, while programs read containers of every kind through the
// mount: what is read is right or an error, and nothing of a failed call stays.
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/store/store_files.h"
#include "fs/filesystem.h"
#include "tests/fs/silent_kernel.h"
#include "tests/support/failing_files.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zip_builder.h"

namespace cframefs::fs {
namespace {

using codec::ErrorKind;
using test::Bytes;
using test::FailingFiles;

/// What a reader gets for a name: bytes, or the error of the call that failed.
using Outcome = codec::Result<Bytes>;

class ReadMount {
 public:
  ReadMount(const std::string& source, FailingFiles& files) : files_(files) {
    MountOptions options;
    options.source = source;
    options.read_only = true;
    options.workers = 2;
    filesystem_ = std::make_unique<Filesystem>(files_, options);
    EXPECT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  ~ReadMount() { filesystem_->stop(); }
  ReadMount(const ReadMount&) = delete;
  ReadMount& operator=(const ReadMount&) = delete;

  /// Looks a path up, opens it, and reads it from the beginning to the end, in pieces as the kernel asks for them.
  Outcome read(const std::filesystem::path& path) {
    NodeId node = kRootNode;
    for (const auto& name : path) {
      const auto found = filesystem_->names().lookup(node, name.string());
      if (!found) return codec::Failure(found.error());
      node = found->node;
    }
    auto handle = filesystem_->files().open(node, O_RDONLY);
    if (!handle) return codec::Failure(handle.error());
    Outcome outcome = read_all(**handle);
    filesystem_->files().release(std::move(*handle));
    return outcome;
  }

 private:
  static constexpr std::size_t kPiece = 128 << 10;

  Outcome read_all(FileHandle& handle) {
    Bytes bytes;
    for (;;) {
      Reply reply;
      if (auto done = filesystem_->files().read(handle, bytes.size(), kPiece, reply); !done)
        return codec::Failure(done.error());
      if (reply.size() == 0) return bytes;
      bytes.resize(bytes.size() + reply.size());
      reply.copy_to(bytes.data() + bytes.size() - reply.size());
    }
  }

  frame::StoreFiles files_;
  SilentKernel kernel_;
  std::unique_ptr<Filesystem> filesystem_;
};

/// One small container of each kind.
class FailingReads : public ::testing::TestWithParam<std::tuple<int, FailingFiles::How>> {
 protected:
  void SetUp() override {
    const std::filesystem::path golden = test::golden_dir();
    add(golden / "cframe/matrix/023-lz4-c9-bitshuffle-t12.b2frame", "frame.b2frame", "frame");
    add(golden / "cframe/meta/vl-several.b2frame", "meta.b2frame", "meta");
    add(golden / "cframe/sframe/lz4.b2frame", "sparse.b2frame", "sparse");
    add(golden / "legacy/b2nd-2d-zfp-acc.b2nd", "array.b2nd", "array.npy");
    add(golden / "legacy/legacy-b1-lz4-3chunks.b2frame", "legacy.b2frame", "legacy");
    add(golden / "legacy/bp-v2-nchunks7.blp", "pack.blp", "pack");
    add(golden / "legacy/blosc1-mixed.cdata", "chunk.cdata", "chunk");
    const Bytes frame = test::file_bytes(golden / "cframe/matrix/023-lz4-c9-bitshuffle-t12.b2frame");
    directory_.write("zip.b2z",
                     test::zip_file({{"raw.b2f", frame}, {"embed.b2e", test::embed_frame({{"/in", frame}})}}));
    names_.insert(names_.end(), {"zip.b2z/raw", "zip.b2z/in"});
    directory_.write("plain", frame);
    names_.emplace_back("plain");
  }
  void add(const std::filesystem::path& golden, const std::string& stored, const std::string& shown) {
    std::filesystem::copy(golden, directory_.path() / stored, std::filesystem::copy_options::recursive);
    names_.push_back(shown);
  }
  static Bytes expect_read(ReadMount& mount, const std::string& name) {
    auto outcome = mount.read(name);
    EXPECT_TRUE(outcome) << name << ": " << codec::describe(outcome.error());
    return outcome.value_or(Bytes());
  }

  test::TempDir directory_;
  std::vector<std::string> names_;  // as the mount shows them
};

TEST_P(FailingReads, GiveTheRightBytesOrTheErrorAndNothingStays) {
  const auto [error, how] = GetParam();
  std::map<std::string, Bytes> right;
  {
    FailingFiles files;
    ReadMount mount(directory_.path(), files);
    for (const std::string& name : names_)
      right[name] = expect_read(mount, name);
  }
  EXPECT_EQ(right["frame"], right["zip.b2z/raw"]);
  EXPECT_EQ(right["frame"], right["zip.b2z/in"]);
  int errors = 0;
  for (const std::string& name : names_) {
    ASSERT_FALSE(right[name].empty()) << name;
    for (std::int64_t number = 1;; ++number) {
      FailingFiles files;
      ReadMount mount(directory_.path(), files);
      files.count(FailingFiles::looks);
      files.fail(number, error, how);
      const auto outcome = mount.read(name);
      if (outcome) {
        ASSERT_TRUE(*outcome == right[name]) << name << ", call " << number;
      } else {
        ++errors;
        EXPECT_EQ(outcome.error().kind, ErrorKind::io)
            << name << ", call " << number << ": " << codec::describe(outcome.error());
        EXPECT_EQ(outcome.error().sys, error)
            << name << ", call " << number << ": " << codec::describe(outcome.error());
      }
      const bool came = files.failed().has_value();
      files.stop();
      ASSERT_TRUE(expect_read(mount, name) == right[name]) << name << ", after call " << number;
      if (!came) break;
    }
  }
  EXPECT_GT(errors, 40);
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingReads,
                         ::testing::Values(std::tuple(EIO, FailingFiles::once), std::tuple(EIO, FailingFiles::for_good),
                                           std::tuple(EINTR, FailingFiles::once)));

}  // namespace
}  // namespace cframefs::fs
