#include "frame/remote/listings/remote_files.h"

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "frame/io/descriptor.h"
#include "frame/remote/listings/one_object_listing.h"
#include "tests/support/remote_world.h"

namespace cframefs::test {
namespace {

using codec::ErrorKind;
using frame::Descriptor;
using frame::FileOffset;
using frame::OpenFile;
using std::chrono::seconds;
using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(std::size_t count, unsigned seed) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>((i + seed) * 31 / 7);
  return bytes;
}

std::string name_of(int number) {
  std::string text = std::to_string(number);
  return std::string(5 - text.size(), '0') + text + ".b2frame";
}

/// For servers that list states (true) and those that do not.
class RemoteFilesTest : public testing::TestWithParam<bool> {
 protected:
  explicit RemoteFilesTest(seconds ttl = seconds(60)) : world_(GetParam(), ttl) {
    world_.objects.put("a.b2frame", bytes_of(600'000, 1), "\"a\"");
    world_.objects.put("d/b.b2frame", bytes_of(5000, 2), "\"b\"");
    world_.objects.put("d/e/c.b2frame", bytes_of(100, 3), "\"c\"");
    world_.objects.put("empty", {}, "\"0\"");
    const auto root = files_.open_named("/", O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(root) << codec::describe(root.error());
    root_ = Descriptor(files_, root.value_or(OpenFile{}));
  }

  OpenFile root() const { return root_.handle(); }
  Descriptor open(const std::string& path, int flags = O_RDONLY) {
    const auto file = files_.open_at(root(), path, flags);
    EXPECT_TRUE(file) << path << ": " << codec::describe(file.error());
    return {files_, file.value_or(OpenFile{})};
  }
  int opening(const std::string& path, int flags = O_RDONLY) {
    const auto file = files_.open_at(root(), path, flags);
    if (!file) return file.error().sys;
    files_.close(*file);
    return 0;
  }
  codec::Result<Bytes> read(OpenFile file, std::uint64_t at, std::size_t count) {
    Bytes into(count);
    const auto got = files_.pread(file, into, FileOffset{at});
    if (!got) return codec::Failure(got.error());
    into.resize(*got);
    return into;
  }
  Bytes content(const std::string& path) {
    const auto all = read(open(path).handle(), 0, 1 << 20);
    EXPECT_TRUE(all) << codec::describe(all.error());
    return all.value_or(Bytes{});
  }
  struct stat status(const std::string& path) {
    const struct stat none {};
    const auto found = files_.status_at(root(), path);
    EXPECT_TRUE(found) << path << ": " << codec::describe(found.error());
    return found ? *found : none;
  }
  /// Adds a directory of many small files, and lets the listing of the root expire.
  void put_many(int count) {
    world_.now += seconds(60);
    for (int i = 0; i < count; ++i)
      world_.objects.put("many/" + name_of(i), bytes_of(200, static_cast<unsigned>(i)), "\"m\"");
  }

  RemoteWorld world_;
  frame::RemoteFiles& files_ = world_.files;
  Descriptor root_;
};

TEST_P(RemoteFilesTest, FilesReadAtAnyPlace) {
  EXPECT_EQ(content("a.b2frame"), bytes_of(600'000, 1));
  EXPECT_EQ(content("d/b.b2frame"), bytes_of(5000, 2));
  EXPECT_EQ(content("./d//e/./c.b2frame"), bytes_of(100, 3));
  EXPECT_EQ(content("empty"), Bytes());
  const Bytes whole = bytes_of(600'000, 1);
  const Descriptor file = open("a.b2frame");
  for (const std::size_t at : {0U, 1U, 4000U, 4095U, 4096U, 70'000U, 299'999U}) {
    for (const std::size_t count : {1U, 97U, 4096U}) {
      const auto first = whole.begin() + static_cast<std::ptrdiff_t>(at);
      const auto got = read(file.handle(), at, count);
      ASSERT_TRUE(got) << codec::describe(got.error());
      EXPECT_EQ(*got, Bytes(first, first + static_cast<std::ptrdiff_t>(std::min(count, whole.size() - at)))) << at;
    }
  }
  EXPECT_EQ(*read(file.handle(), UINT64_MAX, 10), Bytes());
}

TEST_P(RemoteFilesTest, DirectoriesListTheirEntries) {
  const Descriptor directory = open("d", O_RDONLY | O_DIRECTORY);
  const auto entries = files_.list(directory.handle());
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].name, "b.b2frame");
  EXPECT_EQ((*entries)[0].type, DT_REG);
  EXPECT_EQ((*entries)[1].name, "e");
  EXPECT_EQ((*entries)[1].type, DT_DIR);
  EXPECT_EQ((*entries)[1].inode, status("d/e").st_ino);
  EXPECT_EQ(files_.open_at(directory.handle(), "../a.b2frame", O_RDONLY).error().sys, EXDEV);
  const Descriptor file(files_, files_.open_at(directory.handle(), "b.b2frame", O_RDONLY).value_or(OpenFile{}));
  EXPECT_EQ(*read(file.handle(), 0, 5000), bytes_of(5000, 2));
}

TEST_P(RemoteFilesTest, PathsFailAsThoseOfTheSystem) {
  EXPECT_EQ(opening("absent"), ENOENT);
  EXPECT_EQ(opening("absent/x"), ENOENT);
  EXPECT_EQ(opening(""), ENOENT);
  EXPECT_EQ(opening("d/b.b2frame/x"), ENOTDIR);
  EXPECT_EQ(opening("d/b.b2frame/"), ENOTDIR);
  EXPECT_EQ(opening("d/"), 0);
  EXPECT_EQ(opening("d/b.b2frame", O_RDONLY | O_DIRECTORY), ENOTDIR);
  EXPECT_EQ(opening("d", O_RDONLY | O_NOFOLLOW | O_DIRECTORY), 0);
  EXPECT_EQ(opening(std::string(256, 'n')), ENAMETOOLONG);
  EXPECT_EQ(opening(std::string("d\0x", 3)), EINVAL);
  EXPECT_EQ(opening(".."), EXDEV);
  EXPECT_EQ(opening("d/../a.b2frame"), EXDEV);
  EXPECT_EQ(opening("/a.b2frame"), EXDEV);
  EXPECT_EQ(files_.open_named("/absent", O_RDONLY).error().sys, ENOENT);
  const Descriptor by_address(files_, files_.open_named(FakeObjects::kRoot, O_RDONLY).value_or(OpenFile{}));
  EXPECT_EQ(files_.status(by_address.handle())->st_ino, files_.status(root())->st_ino);
}

TEST_P(RemoteFilesTest, NothingOpensForWriting) {
  for (const int flags : {O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC}) {
    EXPECT_EQ(opening("a.b2frame", flags), EROFS);
    EXPECT_EQ(opening("d", flags), EISDIR);
  }
  const Descriptor file = open("a.b2frame");
  const Descriptor directory = open("d");
  EXPECT_EQ(files_.check_rights(file.handle(), R_OK | W_OK).error().sys, EROFS);
  EXPECT_EQ(files_.check_rights(file.handle(), X_OK).error().sys, EACCES);
  EXPECT_TRUE(files_.check_rights(file.handle(), R_OK));
  EXPECT_TRUE(files_.check_rights(directory.handle(), R_OK | X_OK));
  EXPECT_EQ(files_.reopen(file.handle(), O_RDWR).error().sys, EROFS);
}

TEST_P(RemoteFilesTest, AttributesAreThoseOfTheObject) {
  const struct stat file = status("d/b.b2frame");
  EXPECT_EQ(file.st_mode, S_IFREG | 0444U);
  EXPECT_EQ(file.st_size, 5000);
  EXPECT_EQ(file.st_blocks, 10);
  EXPECT_EQ(file.st_mtim.tv_sec, 784111777);
  EXPECT_EQ(file.st_uid, ::geteuid());
  const struct stat directory = status("d");
  EXPECT_EQ(directory.st_mode, S_IFDIR | 0555U);
  EXPECT_EQ(directory.st_dev, file.st_dev);
  EXPECT_NE(directory.st_ino, status("d/e").st_ino);
  EXPECT_NE(file.st_ino, status("a.b2frame").st_ino);
  const auto filesystem = files_.filesystem_status(root());
  ASSERT_TRUE(filesystem);
  EXPECT_NE(filesystem->f_flag & ST_RDONLY, 0U);
  EXPECT_EQ(filesystem->f_namemax, 255U);
  EXPECT_TRUE(files_.list_attributes(root())->empty());
  EXPECT_EQ(files_.get_attribute(root(), "user.x").error().sys, ENODATA);
}

TEST_P(RemoteFilesTest, AllBytesAreData) {
  const Descriptor file = open("d/b.b2frame");
  EXPECT_EQ(files_.seek(file.handle(), FileOffset{17}, SEEK_DATA)->value, 17U);
  EXPECT_EQ(files_.seek(file.handle(), FileOffset{17}, SEEK_HOLE)->value, 5000U);
  EXPECT_EQ(files_.seek(file.handle(), FileOffset{5000}, SEEK_DATA).error().sys, ENXIO);
  EXPECT_EQ(files_.seek(file.handle(), FileOffset{5000}, SEEK_HOLE).error().sys, ENXIO);
  EXPECT_EQ(files_.seek(file.handle(), FileOffset{0}, SEEK_SET).error().sys, EINVAL);
}

TEST_P(RemoteFilesTest, AClosedFileIsBad) {
  Descriptor file = open("a.b2frame");
  const OpenFile number = file.handle();
  file.reset();
  EXPECT_EQ(read(number, 0, 1).error().sys, EBADF);
  EXPECT_EQ(files_.status(number).error().sys, EBADF);
  EXPECT_EQ(files_.open_at(number, "x", O_RDONLY).error().sys, EBADF);
  files_.close(number);
}

TEST_P(RemoteFilesTest, APathIsNotRead) {
  const Descriptor path = open("a.b2frame", O_PATH);
  EXPECT_EQ(read(path.handle(), 0, 1).error().sys, EBADF);
  const auto again = files_.reopen(path.handle(), O_RDONLY);
  ASSERT_TRUE(again);
  const Descriptor file(files_, *again);
  EXPECT_EQ(*read(file.handle(), 0, 5), bytes_of(5, 1));
  EXPECT_EQ(read(open("d").handle(), 0, 1).error().sys, EISDIR);
}

TEST_P(RemoteFilesTest, ALookUpInAListedDirectorySendsNothingOrOneOpening) {
  ASSERT_EQ(status("a.b2frame").st_size, 600'000);
  const std::size_t looked = world_.requests.count();
  EXPECT_EQ(looked, GetParam() ? 0U : 2U) << "without a listed state the object opens: head and tail";
  open("a.b2frame", O_PATH);
  status("a.b2frame");
  EXPECT_EQ(opening("absent"), ENOENT);
  EXPECT_EQ(world_.requests.count(), looked);
  EXPECT_EQ(world_.objects.listings(), 1U);
  const Descriptor file = open("a.b2frame");
  ASSERT_TRUE(read(file.handle(), 0, 100));
  ASSERT_TRUE(read(file.handle(), 599'900, 100));
  EXPECT_LE(world_.requests.count(), 2U) << "one opening";
}

TEST_P(RemoteFilesTest, AdviceIsTakenAtAnyPlace) {
  const Descriptor file = open("a.b2frame");
  EXPECT_TRUE(files_.is_remote());
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{100'000}, std::uint64_t{600'000}, UINT64_MAX}) {
    files_.prefetch(file.handle(), FileOffset{at}, UINT64_MAX);
    files_.expect(file.handle(), FileOffset{at}, UINT64_MAX);
    files_.expect(root(), FileOffset{at}, 1);
  }
  EXPECT_EQ(*read(file.handle(), 0, 600'000), bytes_of(600'000, 1));
}

TEST_P(RemoteFilesTest, AReplacedObjectIsStaleAndTheNextLookUpFindsTheNewOne) {
  const Descriptor old = open("a.b2frame");
  const auto inode = status("a.b2frame").st_ino;
  ASSERT_TRUE(read(old.handle(), 0, 100));
  world_.objects.freeze(true);  // the listing tells the old object for a while
  world_.objects.put("a.b2frame", bytes_of(600'000, 9), "\"new\"");
  const auto stale = read(old.handle(), 300'000, 100);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().kind, ErrorKind::stale);
  EXPECT_NE(status("a.b2frame").st_ino, inode);
  EXPECT_EQ(content("a.b2frame"), bytes_of(600'000, 9));
  const auto still = read(old.handle(), 200'000, 100);
  ASSERT_FALSE(still);
  EXPECT_EQ(still.error().kind, ErrorKind::stale);
  const auto version = files_.version(old.handle());
  const auto newer = files_.version(open("a.b2frame").handle());
  ASSERT_TRUE(version && newer);
  EXPECT_FALSE(version->still_matches(*newer));
  // The listing catches up.
  world_.objects.freeze(false);
  world_.now += seconds(60);
  EXPECT_NE(status("a.b2frame").st_ino, inode);
  EXPECT_EQ(content("a.b2frame"), bytes_of(600'000, 9));
}

TEST_P(RemoteFilesTest, AStateThatTheServerTellsAgainHoldsAgain) {
  const Descriptor file = open("a.b2frame");
  const auto inode = status("a.b2frame").st_ino;
  ASSERT_TRUE(read(file.handle(), 0, 100));
  world_.objects.put("a.b2frame", bytes_of(600'000, 9), "\"new\"");
  ASSERT_FALSE(read(file.handle(), 300'000, 100));
  world_.objects.put("a.b2frame", bytes_of(600'000, 1), "\"a\"");
  ASSERT_FALSE(read(file.handle(), 300'000, 100));
  EXPECT_EQ(status("a.b2frame").st_ino, inode);
  const auto again = read(file.handle(), 300'000, 100);
  ASSERT_TRUE(again) << codec::describe(again.error());
  const Bytes all = bytes_of(600'000, 1);
  EXPECT_EQ(*again, Bytes(all.begin() + 300'000, all.begin() + 300'100));
}

TEST_P(RemoteFilesTest, AFileThatWasNeverReadMayBeStaleToo) {
  const Descriptor old = open("d/b.b2frame", O_PATH);
  world_.objects.put("d/b.b2frame", bytes_of(50'000, 9), "\"new\"");
  world_.now += seconds(60);
  EXPECT_EQ(status("d/b.b2frame").st_size, 50'000);
  EXPECT_EQ(files_.status(old.handle())->st_size, 5000) << "an open file keeps its state";
  EXPECT_EQ(content("d/b.b2frame"), bytes_of(50'000, 9));
  const Descriptor again(files_, files_.reopen(old.handle(), O_RDONLY).value_or(OpenFile{}));
  const auto read_again = read(again.handle(), 0, 5000);
  if (read_again) {
    EXPECT_EQ(*read_again, bytes_of(5000, 2)) << "from memory, if anything";
  } else {
    EXPECT_EQ(read_again.error().kind, ErrorKind::stale);
  }
}

TEST_P(RemoteFilesTest, AnObjectThatGoesAndComesIsFoundAfterItsTime) {
  world_.objects.remove("a.b2frame");
  world_.objects.put("new", bytes_of(10, 4), "\"n\"");
  EXPECT_EQ(opening("new"), ENOENT) << "the listing is still valid";
  world_.now += seconds(60);
  EXPECT_EQ(opening("a.b2frame"), ENOENT);
  EXPECT_EQ(content("new"), bytes_of(10, 4));
}

TEST_P(RemoteFilesTest, AnUnchangedObjectStaysTheSameFile) {
  const auto before = status("a.b2frame");
  const Descriptor file = open("a.b2frame");
  world_.now += seconds(60);
  const auto after = status("a.b2frame");
  EXPECT_EQ(before.st_ino, after.st_ino);
  const Descriptor again = open("a.b2frame");
  EXPECT_TRUE(*files_.version(file.handle()) == *files_.version(again.handle()));
}

/// What "ls -l" asks of frames: the length of the file and its first bytes.
TEST_P(RemoteFilesTest, SixtyFourHeadersAreInFlightWhileADirectoryIsGoneThrough) {
  constexpr int kCount = 1000;
  put_many(kCount);
  const Descriptor directory = open("many");
  const auto look = [&](int number) {
    const std::string name = name_of(number);
    const auto file = files_.open_at(directory.handle(), name, O_RDONLY);
    ASSERT_TRUE(file) << codec::describe(file.error());
    const Descriptor opened(files_, *file);
    const auto header = read(opened.handle(), 0, 87);
    ASSERT_TRUE(header) << codec::describe(header.error());
    ASSERT_EQ(*header, bytes_of(87, static_cast<unsigned>(number)));
  };
  for (int i = 0; i < 10; ++i)
    look(i);
  world_.requests.hold();
  std::thread reader([&] {
    for (int i = 10; i < kCount; ++i)
      look(i);
  });
  while (world_.requests.in_flight() < 64)
    std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(world_.requests.in_flight(), 64U);
  world_.requests.release();
  reader.join();
  EXPECT_LE(world_.requests.count(), kCount + 2U) << "one for each, and the opening of the first";
  EXPECT_EQ(world_.objects.listings(), 3U) << "twice the root, once the directory";
}

TEST_P(RemoteFilesTest, ASingleHeaderFetchesNoOthers) {
  put_many(1000);
  for (const int number : {900, 20, 500}) {
    const Descriptor file = open("many/" + name_of(number));
    EXPECT_EQ(*read(file.handle(), 0, 50), bytes_of(50, static_cast<unsigned>(number)));
  }
  EXPECT_LE(world_.requests.count(), 6U);
}

TEST_P(RemoteFilesTest, ManyThreadsReadAndLookUp) {
  put_many(100);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 100; ++i) {
        const int number = (i + thread * 3) % 100;
        const auto file = files_.open_at(root(), "many/" + name_of(number), O_RDONLY);
        ASSERT_TRUE(file) << codec::describe(file.error());
        const Descriptor opened(files_, *file);
        const auto bytes = read(opened.handle(), static_cast<std::uint64_t>(thread), 150);
        ASSERT_TRUE(bytes) << codec::describe(bytes.error());
        EXPECT_EQ(*bytes, bytes_of(150, static_cast<unsigned>(number + thread)));
        if (i % 25 == thread) world_.objects.put("other", bytes_of(1, 1), "\"" + std::to_string(i) + "\"");
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

INSTANTIATE_TEST_SUITE_P(Servers, RemoteFilesTest, testing::Bool(),
                         [](const auto& server) { return server.param ? "bucket" : "web_server"; });

class UncachedRemoteFilesTest : public RemoteFilesTest {
 protected:
  UncachedRemoteFilesTest() : RemoteFilesTest(seconds(0)) {}
};

TEST_P(UncachedRemoteFilesTest, EachOpeningSeesThePresentObject) {
  const auto inode = status("a.b2frame").st_ino;
  EXPECT_EQ(content("a.b2frame"), bytes_of(600'000, 1));
  world_.objects.put("a.b2frame", bytes_of(200, 9), "\"new\"");
  EXPECT_NE(status("a.b2frame").st_ino, inode);
  EXPECT_EQ(content("a.b2frame"), bytes_of(200, 9));
  world_.objects.put("new", bytes_of(10, 4), "\"n\"");
  EXPECT_EQ(content("new"), bytes_of(10, 4));
  world_.objects.remove("new");
  EXPECT_EQ(opening("new"), ENOENT);
}

INSTANTIATE_TEST_SUITE_P(Servers, UncachedRemoteFilesTest, testing::Bool(),
                         [](const auto& server) { return server.param ? "bucket" : "web_server"; });

TEST(OneRemoteFileTest, AnObjectWithoutAListedDirectoryIsOneFile) {
  frame::OneObjectListing one("x.b2frame", FakeObjects::kRoot + "a%20x.b2frame");
  RemoteWorld world(false, seconds(60), &one);
  world.objects.put("a%20x.b2frame", bytes_of(1000, 5), "\"x\"");
  const auto file = world.files.open_named("/x.b2frame", O_RDONLY);
  ASSERT_TRUE(file) << codec::describe(file.error());
  const Descriptor opened(world.files, *file);
  Bytes into(2000);
  EXPECT_EQ(world.files.pread(opened.handle(), into, FileOffset{0}).value_or(0), 1000U);
  const Descriptor root(world.files, world.files.open_named("/", O_RDONLY).value_or(OpenFile{}));
  const auto entries = world.files.list(root.handle());
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ((*entries)[0].name, "x.b2frame");
  EXPECT_LE(world.requests.count(), 2U);
  EXPECT_EQ(world.files.open_at(root.handle(), "y", O_RDONLY).error().sys, ENOENT);
  world.objects.remove("a%20x.b2frame");
  world.now += seconds(60);
  EXPECT_EQ(world.files.open_named("/x.b2frame", O_RDONLY).error().sys, ENOENT);
}

}  // namespace
}  // namespace cframefs::test
