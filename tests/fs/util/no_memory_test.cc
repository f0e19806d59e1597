// Makes each allocation of a call fail, alone and with the two that follow: the call returns ENOMEM or succeeds,
// nothing hangs, no byte is wrong or lost, and the next call is correct.
#include "fs/util/no_memory.h"

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "tests/fs/util/failing_allocations.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"
#include "tests/support/sanitizers.h"

namespace cframefs::fs {
namespace {

class NoMemory : public WrittenFilesystem {
 protected:
  /// Runs `work` with the allocation number 0, 1, 2... failing, until no allocation is left to fail. `check` follows
  /// each.
  template <class Work, class Check>
  void with_each_failure(const Work& work, const Check& check) {
    for (const int in_a_row : {1, 3}) {
      // Several failures take the paths of one failure, which are slow under the thread sanitizer.
      if (in_a_row > 1 && test::kHasOtherSanitizer) return;
      SCOPED_TRACE(in_a_row);
      try_failures(work, check, in_a_row);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  static std::string text(char first, std::size_t size) {
    std::string made(size, ' ');
    for (std::size_t i = 0; i < size; ++i)
      made[i] = static_cast<char>(first + static_cast<char>((i / 7) % 20));
    return made;
  }

 private:
  template <class Work, class Check>
  void try_failures(const Work& work, const Check& check, int in_a_row) {
    std::int64_t tried = 0;
    for (std::int64_t number = 0;; ++number) {
      SCOPED_TRACE(number);
      fail_allocations(number, in_a_row);
      // As fs/fuse/fuse_requests.h ends a request.
      const codec::Result<void> done = or_no_memory(work);
      const bool none_failed = !stop_failing_allocations();
      EXPECT_TRUE(done || to_errno(done.error()) == ENOMEM) << done.error().reason;
      EXPECT_TRUE(done || !none_failed);
      check(done.has_value());
      if (HasFatalFailure() || HasNonfatalFailure() || none_failed) {
        tried = number;
        break;
      }
    }
    EXPECT_GT(tried, 5);  // otherwise nothing was tested
  }
};

TEST_F(NoMemory, Writes) {
  auto handle = create("x");
  std::string expected = text('a', 20000);
  ASSERT_TRUE(write(*handle, 0, expected));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  const std::string part = text('A', 9000);
  const std::vector<std::uint8_t> bytes(part.begin(), part.end());
  with_each_failure([&] { return filesystem_->files().write(*handle, 3000, bytes, false); },
                    [&](bool done) {
                      // A write that fails may have been made in part, as on any filesystem.
                      const std::string found = read(*handle);
                      ASSERT_EQ(found.size(), expected.size());
                      for (std::size_t i = 0; i < found.size(); ++i) {
                        const bool inside = i >= 3000 && i < 12000;
                        ASSERT_TRUE(found[i] == expected[i] || (inside && found[i] == part[i - 3000])) << i;
                      }
                      ASSERT_TRUE(!done || found.substr(3000, 9000) == part);
                      ASSERT_TRUE(write(*handle, 3000, expected.substr(3000, 9000)));
                      ASSERT_TRUE(filesystem_->files().sync(*handle, false));
                      ASSERT_EQ(read(*handle), expected);
                    });
  ASSERT_TRUE(close(std::move(handle)));
}

TEST_F(NoMemory, Commits) {
  auto handle = create("x");
  std::string expected = text('a', 20000);
  ASSERT_TRUE(write(*handle, 0, expected));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  char first = 'A';
  const auto dirty = [&] {
    first = first == 'A' ? 'F' : 'A';
    // A whole chunk, a part of one, and bytes appended at the end.
    for (const auto& [at, size] :
         {std::pair<std::size_t, std::size_t>{4096, 4096}, {100, 50}, {expected.size(), 300}}) {
      const std::string part = text(first, size);
      ASSERT_TRUE(write(*handle, at, part));
      if (at + size > expected.size()) expected.resize(at + size);
      expected.replace(at, size, part);
    }
  };
  dirty();
  with_each_failure([&] { return filesystem_->files().sync(*handle, false); },
                    [&](bool /*done*/) {
                      ASSERT_EQ(read(*handle), expected);
                      ASSERT_TRUE(filesystem_->files().sync(*handle, false));
                      ASSERT_EQ(read(*handle), expected);
                      dirty();
                    });
  ASSERT_TRUE(close(std::move(handle)));
  remount();
  EXPECT_EQ(content("x"), expected);
}

TEST_F(NoMemory, Reads) {
  auto handle = create("x");
  const std::string expected = text('a', 200000);
  ASSERT_TRUE(write(*handle, 0, expected));
  ASSERT_TRUE(close(std::move(handle)));
  with_each_failure(
      [&]() -> codec::Result<void> {
        auto found = filesystem_->names().lookup(kRootNode, "x");
        if (!found) return codec::Failure(found.error());
        auto opened = filesystem_->files().open(found->node, O_RDONLY);
        if (!opened) return codec::Failure(opened.error());
        Reply reply;
        auto done = filesystem_->files().read(**opened, 1000, 150000, reply);
        if (!done) return done;
        std::string got(reply.size(), ' ');
        std::vector<std::uint8_t> bytes(reply.size());
        reply.copy_to(bytes.data());
        EXPECT_EQ(std::string(bytes.begin(), bytes.end()), expected.substr(1000, 150000));
        return {};
      },
      [&](bool /*done*/) {
        ASSERT_EQ(content("x"), expected);
        remount();  // nothing is cached
      });
}

TEST_F(NoMemory, Attributes) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, text('a', 5000)));
  ASSERT_TRUE(close(std::move(handle)));
  with_each_failure(
      [&]() -> codec::Result<void> {
        auto found = filesystem_->names().lookup(kRootNode, "x");
        if (!found) return codec::Failure(found.error());
        EXPECT_EQ(found->status.st_size, 5000);
        auto listed = filesystem_->directories().open(kRootNode);
        if (!listed) return codec::Failure(listed.error());
        {
          codec::MutexLock lock((*listed)->mutex);
          if (auto done = filesystem_->directories().list(**listed); !done) return done;
          EXPECT_EQ((*listed)->entries.size(), 1U);
        }
        auto status = filesystem_->attributes().of(found->node, nullptr);
        return status ? codec::Result<void>() : codec::Failure(status.error());
      },
      [&](bool /*done*/) {
        ASSERT_EQ(size_of("x"), 5000U);
        remount();
      });
}

class NoMemoryAtTheLastClose : public NoMemory {
 protected:
  /// `pause`: between the last write and the close.
  void try_closes(std::size_t size, std::chrono::milliseconds pause) {
    std::string expected = text('a', size);
    auto handle = create("x");
    ASSERT_TRUE(write(*handle, 0, expected));
    with_each_failure([&] { return filesystem_->files().flush(*handle); },
                      [&](bool /*done*/) {
                        EXPECT_FALSE(handle->frame->write_back()->status().is_committing);
                        const auto closed = close(std::move(handle));
                        ASSERT_TRUE(closed) << closed.error().reason;
                        ASSERT_EQ(content("x"), expected);
                        handle = open("x");
                        ASSERT_NE(handle, nullptr);
                        expected = text(static_cast<char>('A' + expected.size() % 5), size + expected.size() % 3);
                        ASSERT_TRUE(resize(*handle, 0));
                        ASSERT_TRUE(write(*handle, 0, expected));
                        std::this_thread::sleep_for(pause);
                      });
    ASSERT_NE(handle, nullptr);  // null after a failure above
    ASSERT_TRUE(close(std::move(handle)));
    remount();
    EXPECT_EQ(content("x"), expected);
  }
};

TEST_F(NoMemoryAtTheLastClose, NothingIsLost) {
  try_closes(6000, std::chrono::milliseconds(0));
}

TEST_F(NoMemoryAtTheLastClose, NothingIsLostIfTheCommitSetsTheTimeOfTheWrite) {
  // The path of a descriptor of two digits needs an allocation.
  std::vector<frame::Descriptor> others;
  for (int i = 0; i < 16; ++i)
    others.emplace_back(disk_, *disk_.open_named("/", O_PATH));
  remount();
  // No other thread encodes a part of a chunk, so that allocation has the same number in each round.
  try_closes(3000, std::chrono::milliseconds(30));
}

TEST_F(NoMemory, TheFirstCommitOfANewFile) {
  const std::string expected = text('a', 6000);
  int number = 0;
  auto handle = create("x0");
  ASSERT_TRUE(write(*handle, 0, expected));
  with_each_failure([&] { return filesystem_->files().flush(*handle); },
                    [&](bool /*done*/) {
                      const auto closed = close(std::move(handle));
                      ASSERT_TRUE(closed) << closed.error().reason;
                      ASSERT_EQ(content("x" + std::to_string(number)), expected);
                      handle = create("x" + std::to_string(++number));
                      ASSERT_NE(handle, nullptr);
                      ASSERT_TRUE(write(*handle, 0, expected));
                    });
  ASSERT_NE(handle, nullptr);  // null after a failure above
  ASSERT_TRUE(close(std::move(handle)));
}

TEST_F(NoMemory, TheCloseThatCompacts) {
  std::mt19937_64 random(1);
  std::string expected;
  std::unique_ptr<FileHandle> handle;
  const auto on_disk = [&] {
    struct stat status {};
    EXPECT_EQ(::stat((directory_.path() / "x.b2frame").c_str(), &status), 0);
    return status;
  };
  // As many dead bytes as live ones, which do not compress. The last write may have compacted the frame.
  const auto waste = [&] {
    handle = handle ? std::move(handle) : open("x");
    ASSERT_NE(handle, nullptr);
    do {
      expected.assign(20'000, ' ');
      for (char& letter : expected)
        letter = static_cast<char>(random());
      ASSERT_TRUE(write(*handle, 0, expected));
      ASSERT_TRUE(filesystem_->files().flush(*handle));
    } while (on_disk().st_size < 40'000);
  };
  handle = create("x");
  waste();
  ino_t before = on_disk().st_ino;
  bool is_compacted = false;
  with_each_failure(
      [&]() -> codec::Result<void> {
        filesystem_->files().release(std::move(handle));
        return {};
      },
      [&](bool /*done*/) {
        ASSERT_EQ(content("x"), expected);
        ASSERT_EQ(size_of("x"), expected.size());
        is_compacted = is_compacted || on_disk().st_ino != before;
        waste();
        ASSERT_EQ(content("x"), expected);
        before = on_disk().st_ino;
      });
  EXPECT_TRUE(is_compacted);
  ASSERT_NE(handle, nullptr);  // null after a failure above
  ASSERT_TRUE(close(std::move(handle)));
  remount();
  EXPECT_EQ(content("x"), expected);
}

class NoMemoryForNames : public NoMemory {
 protected:
  void put_sparse(const std::string& name, char letter) {
    const std::filesystem::path directory = directory_.path() / (name + ".b2frame");
    std::filesystem::remove_all(directory);
    std::filesystem::create_directory(directory);
    for (const auto& [part, bytes] : test::sparse_frame(test::Bytes(9000, static_cast<std::uint8_t>(letter)), 4096))
      directory_.write(name + ".b2frame/" + part, bytes);
  }
  void put(const std::string& name, char letter, bool is_sparse) {
    if (is_sparse) return put_sparse(name, letter);
    std::filesystem::remove_all(directory_.path() / (name + ".b2frame"));
    directory_.write(name + ".b2frame",
                     test::plain_frame(test::Bytes(9000, static_cast<std::uint8_t>(letter)), 4096).build());
  }
  void try_renames(bool from_sparse, bool to_sparse) {
    using Names = std::vector<std::string>;
    const auto prepare = [&] {
      put("a", 'a', from_sparse);
      put("b", 'b', to_sparse);
      remount();
    };
    prepare();
    with_each_failure([&] { return filesystem_->names().rename(kRootNode, "a", kRootNode, "b", 0); },
                      [&](bool done) {
                        ASSERT_EQ(on_disk(), done ? Names({"b.b2frame"}) : Names({"a.b2frame", "b.b2frame"}));
                        ASSERT_EQ(content("b"), std::string(9000, done ? 'a' : 'b'));
                        ASSERT_EQ(done ? std::string(9000, 'a') : content("a"), std::string(9000, 'a'));
                        prepare();
                      });
  }
};

TEST_F(NoMemoryForNames, AFrameReplacesASparseOneOrBothStay) {
  try_renames(false, true);
}

TEST_F(NoMemoryForNames, ASparseFrameReplacesAnotherOrBothStay) {
  try_renames(true, false);
}

TEST_F(NoMemoryForNames, ASparseFrameThatIsRemovedStaysReadable) {
  put_sparse("s", 's');
  remount();
  auto handle = open("s");
  ASSERT_NE(handle, nullptr);
  with_each_failure([&] { return filesystem_->names().remove(kRootNode, "s", false); },
                    [&](bool done) {
                      ASSERT_EQ(read(*handle), std::string(9000, 's'));
                      ASSERT_EQ(done ? std::string(9000, 's') : content("s"), std::string(9000, 's'));
                      ASSERT_TRUE(close(std::move(handle)));
                      ASSERT_EQ(on_disk().empty(), done);
                      put_sparse("s", 's');
                      remount();
                      handle = open("s");
                      ASSERT_NE(handle, nullptr);
                    });
  ASSERT_NE(handle, nullptr);  // null after a failure above
  ASSERT_TRUE(close(std::move(handle)));
}

// The chunk files of a commit were removed if there was no memory for what the writer knows of them, though the frame
// had them already.
TEST_F(NoMemoryForNames, CommitsOfASparseFrame) {
  put_sparse("s", 's');
  remount();
  std::string expected(9000, 's');
  char letter = 'a';
  auto handle = open("s");
  ASSERT_NE(handle, nullptr);
  const auto change = [&] {
    letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1);
    expected.replace(3000, 3000, 3000, letter);
    ASSERT_TRUE(write(*handle, 3000, std::string(3000, letter)));
  };
  change();
  with_each_failure([&] { return filesystem_->files().flush(*handle); },
                    [&](bool /*done*/) {
                      ASSERT_TRUE(filesystem_->files().flush(*handle));
                      ASSERT_EQ(content("s"), expected);
                      ASSERT_TRUE(close(std::move(handle)));
                      remount();
                      ASSERT_EQ(content("s"), expected);
                      handle = open("s");
                      ASSERT_NE(handle, nullptr);
                      change();
                    });
  ASSERT_NE(handle, nullptr);  // null after a failure above
  ASSERT_TRUE(close(std::move(handle)));
}

}  // namespace
}  // namespace cframefs::fs
