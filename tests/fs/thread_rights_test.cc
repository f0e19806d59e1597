// Decoding threads may only read files (fs/doc/sandbox.md): if one is the last to hold what changes files when it ends,
// another thread makes the changes.
#include <atomic>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {
namespace {

thread_local bool is_decoder = false;

/// Records the calls of decoding threads that their filter would not let pass, and holds back their reads.
class DecodersRights final : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    if ((flags & O_ACCMODE) != O_RDONLY) note();
    return ForwardingFiles::open_at(dir, path, flags);
  }
  codec::Result<void> remove_at(frame::OpenFile dir, const std::string& path, bool directory) override {
    note();
    return ForwardingFiles::remove_at(dir, path, directory);
  }
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    if (is_decoder) gate.pass();
    return ForwardingFiles::pread(file, into, at);
  }
  int refused() const { return refused_; }

  Gate gate;

 private:
  void note() {
    if (is_decoder) ++refused_;
  }
  std::atomic<int> refused_{0};
};

class ThreadRights : public WrittenFilesystem {
 protected:
  static constexpr std::size_t kChunk = std::size_t{64} << 10;
  static constexpr std::size_t kChunks = 64;

  void SetUp() override {
    files_ = &rights_;
    options_.readahead = std::uint64_t{4} << 20;
    std::filesystem::create_directory(directory_.path() / "x.b2frame");
    const std::vector<std::uint8_t> content(kChunks * kChunk, 'a');
    for (const auto& [name, bytes] : test::sparse_frame(content, static_cast<std::int32_t>(kChunk)))
      directory_.write("x.b2frame/" + name, bytes);
    begin_worker_ = [] { is_decoder = true; };
    WrittenFilesystem::SetUp();
  }
  void write_all(FileHandle& handle, char letter) {
    EXPECT_TRUE(write(handle, 0, std::string(kChunks * kChunk, letter)));
    EXPECT_TRUE(filesystem_->files().sync(handle, false));
  }
  std::size_t stored_files() const {
    const auto files = std::filesystem::directory_iterator(directory_.path() / "x.b2frame");
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

  DecodersRights rights_;
};

TEST_F(ThreadRights, FilesOfASparseFrameThatADecoderHeldLastAreRemovedByAnotherThread) {
  const OpensAtEnd at_end(rights_.gate);
  auto writer = open("x");
  ASSERT_TRUE(writer);
  write_all(*writer, 'b');
  auto reader = open("x", O_RDONLY);
  ASSERT_TRUE(reader);
  // Reads from the beginning on are sequential: what follows is decoded ahead.
  constexpr std::size_t kRequest = std::size_t{512} << 10;
  read(*reader, 0, kRequest);
  read(*reader, kRequest, kRequest);
  rights_.gate.wait_for(1);
  write_all(*writer, 'c');
  EXPECT_TRUE(close(std::move(writer)));
  filesystem_->files().release(std::move(reader));
  EXPECT_GT(stored_files(), kChunks + 1);
  rights_.gate.open();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (stored_files() > kChunks + 1 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(stored_files(), kChunks + 1);
  EXPECT_EQ(rights_.refused(), 0);
}

}  // namespace
}  // namespace cframefs::fs
