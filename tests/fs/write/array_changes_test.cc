// Arrays written through the filesystem object, against the items in C order as a model: what is read before, during
// and after a commit, how the chunks on disk hold it, and which changes are refused.
#include <cerrno>
#include <chrono>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include "tests/fs/write/array_changes_fixture.h"

namespace cframefs::fs {
namespace {

TEST_F(ArrayChangesTest, ItemsAreOverwrittenInPlace) {
  for (const auto form : {frame::ArrayForm::npy, frame::ArrayForm::flat}) {
    start_plain(form);
    auto handle = open(name_);
    ASSERT_TRUE(write(*handle, head_ + 10, "over the edges of items, blocks and chunks"));
    const std::string text = "over the edges of items, blocks and chunks";
    write_model(10, Bytes(text.begin(), text.end()));
    EXPECT_EQ(read(*handle), expected());
    ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    check_stored();
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_EQ(content_now(), expected());
    remount();
    EXPECT_EQ(content_now(), expected());
  }
}

TEST_F(ArrayChangesTest, RowsAreAppendedAndTheHeaderFollows) {
  start_plain(frame::ArrayForm::npy);
  auto handle = open(name_, O_RDWR | O_APPEND);
  for (int i = 0; i < 5; ++i) {
    const Bytes rows = test::varied_items(row() * 2, static_cast<std::uint64_t>(i) + 9);
    ASSERT_TRUE(write(*handle, 0, text_of(rows)));
    write_model(model_.size(), rows);
    EXPECT_EQ(read(*handle), expected());
    if (i % 2 == 0) {
      ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    }
  }
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(spec_.shape[0], 17);
  EXPECT_EQ(content_now(), expected());
  check_stored();
}

// semantics: B6
TEST_F(ArrayChangesTest, APartOfARowWaitsForTheRest) {
  start_plain(frame::ArrayForm::npy);
  const std::string before = expected();
  auto handle = open(name_);
  const Bytes rows = test::varied_items(row() * 3, 5);
  ASSERT_TRUE(write(*handle, before.size(), text_of(rows).substr(0, row() * 2 + 5)));
  // Two rows are whole and become part of the array; sync and close report the incomplete third one.
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), EINVAL);
  EXPECT_EQ(stored("x.b2nd")->parameters().nbytes, 3U * 2U * 4U * 6U * 4U);
  EXPECT_EQ(errno_of(filesystem_->files().flush(*handle)), EINVAL);
  ASSERT_TRUE(write(*handle, before.size() + row() * 2 + 5, text_of(rows).substr(row() * 2 + 5)));
  write_model(model_.size(), rows);
  EXPECT_EQ(read(*handle), expected());
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), expected());
  check_stored();

  handle = open(name_);
  ASSERT_TRUE(write(*handle, expected().size(), "no row"));
  EXPECT_EQ(size_of(name_), expected().size() + 6);
  EXPECT_EQ(errno_of(close(std::move(handle))), EINVAL);
  EXPECT_EQ(size_of(name_), expected().size());
  EXPECT_EQ(content_now(), expected());
}

TEST_F(ArrayChangesTest, CutOffRowsDoNotComeBack) {
  start_plain(frame::ArrayForm::npy);
  auto handle = open(name_);
  for (const std::size_t rows : {4U, 6U, 0U, 5U, 9U}) {
    ASSERT_TRUE(resize(*handle, head_ + rows * row()));
    resize_model(rows * row());
    EXPECT_EQ(read(*handle), expected());
    if (rows != 0U) continue;
    ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    check_stored();
    EXPECT_EQ(stored("x.b2nd")->chunk_count(), 0);
  }
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), expected());
  check_stored();
}

TEST_F(ArrayChangesTest, PaddingIsZerosWhenItBecomesItems) {
  // The padding of the builder's chunks is 0xcc.
  start_plain(frame::ArrayForm::flat);
  auto handle = open(name_);
  ASSERT_TRUE(resize(*handle, 12 * row()));
  resize_model(12 * row());
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), expected());
  check_stored();
}

// semantics: B5
TEST_F(ArrayChangesTest, ChangesThatBreakTheShapeAreRefused) {
  start_plain(frame::ArrayForm::npy);
  auto handle = open(name_);
  const std::string before = expected();
  EXPECT_EQ(errno_of(resize(*handle, before.size() + 1)), EINVAL);
  EXPECT_EQ(errno_of(resize(*handle, before.size() - 1)), EINVAL);
  EXPECT_EQ(errno_of(resize(*handle, head_ - 1)), EINVAL);
  EXPECT_EQ(errno_of(resize(*handle, head_ + row() * (std::uint64_t{1} << 50))), EFBIG);
  EXPECT_EQ(errno_of(write(*handle, head_ + row() * (std::uint64_t{1} << 50), "far")), EFBIG);
  EXPECT_EQ(errno_of(write(*handle, 0, "\x93NUMPX")), EINVAL);
  EXPECT_EQ(errno_of(write(*handle, 9, std::string(200, 'x'))), EINVAL);
  EXPECT_EQ(errno_of(filesystem_->files().allocate(*handle, 0, 0, before.size() + 1)), EINVAL);
  EXPECT_EQ(errno_of(filesystem_->files().allocate(*handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 200)),
            EINVAL);
  EXPECT_EQ(errno_of(filesystem_->extended_attributes().set(handle->node->id, "user.blosc2.meta.b2nd",
                                                            text_of(test::array_layer(spec_)), 0)),
            EINVAL);
  EXPECT_EQ(read(*handle), before);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), before);
}

TEST_F(ArrayChangesTest, TheHeaderCanBeWrittenUnchangedOrWithOtherRows) {
  start_plain(frame::ArrayForm::npy);
  auto handle = open(name_);
  std::string text = expected();
  ASSERT_TRUE(write(*handle, 0, text.substr(0, 40)));
  ASSERT_TRUE(write(*handle, 20, text.substr(20)));
  EXPECT_EQ(read(*handle), text);
  // A page that was read before rows were appended, written back afterwards.
  const Bytes rows = test::varied_items(row(), 3);
  ASSERT_TRUE(write(*handle, text.size(), text_of(rows)));
  ASSERT_TRUE(write(*handle, 0, text));
  write_model(model_.size(), rows);
  EXPECT_EQ(read(*handle), expected());
  // Another type is another array.
  text.replace(text.find("<i4"), 3, "<f4");
  EXPECT_EQ(errno_of(write(*handle, 0, text)), EINVAL);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), expected());
}

TEST_F(ArrayChangesTest, AnArrayIsReplacedByOneOfItsKind) {
  start_plain(frame::ArrayForm::npy);
  auto handle = open(name_, O_WRONLY | O_TRUNC);
  resize_model(0);
  EXPECT_EQ(content_now(), expected());
  resize_model(11 * row());
  model_ = test::varied_items(model_.size(), 44);
  ASSERT_TRUE(write(*handle, 0, expected()));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), expected());
  check_stored();
}

/// Returns what numpy.save() writes.
std::string npy_file(const std::string& dtype, std::size_t itemsize, const std::vector<std::int64_t>& shape,
                     std::uint8_t seed) {
  frame::B2ndMeta layer;
  layer.shape = shape;
  layer.dtype = dtype;
  std::size_t bytes = itemsize;
  for (const std::int64_t extent : shape)
    bytes *= static_cast<std::size_t>(extent);
  return text_of(frame::npy_head_of(layer, itemsize)) + text_of(test::varied_items(bytes, seed));
}

TEST_F(ArrayChangesTest, AnArrayIsReplacedByOneOfAnotherShapeOrType) {
  struct Wanted {
    std::string dtype;
    std::size_t itemsize;
    std::vector<std::int64_t> shape;
  };
  const std::vector<Wanted> all = {
      {"<f8", 8, {6, 5}}, {"<f4", 4, {7, 6}}, {"<i4", 4, {7, 7}}, {"|u1", 1, {100'000}},  {"<c16", 16, {3, 4, 5}},
      {"<f8", 8, {}},     {"<i2", 2, {0, 3}}, {"<i2", 2, {4, 0}}, {"|S300", 300, {9, 2}}, {"<f8", 8, {300, 700}}};
  for (const std::size_t step : {std::size_t{4096}, std::size_t{1} << 20}) {
    std::uint8_t seed = 50;
    start_plain(frame::ArrayForm::npy);
    for (const Wanted& wanted : all) {
      // Also in place of an array that the last round has left, which may have no rows.
      const std::string text = npy_file(wanted.dtype, wanted.itemsize, wanted.shape, ++seed);
      const std::string before = content_now();
      const Bytes on_disk = test::file_bytes(directory_.path() / "x.b2nd");
      auto handle = open(name_, O_RDWR | O_TRUNC);
      for (std::size_t at = 0; at < text.size(); at += step)
        ASSERT_TRUE(write(*handle, at, text.substr(at, step))) << wanted.dtype << " at " << at;
      EXPECT_TRUE(read(*handle, 0, text.size()) == text);
      EXPECT_EQ(size_of(name_), text.size());
      EXPECT_TRUE(test::file_bytes(directory_.path() / "x.b2nd") == on_disk)
          << "the old array is gone before the commit";
      // Nor when the disk fails.
      disk_.write_error = ENOSPC;
      EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), ENOSPC);
      EXPECT_TRUE(test::file_bytes(directory_.path() / "x.b2nd") == on_disk);
      EXPECT_TRUE(read(*handle, 0, text.size()) == text);
      disk_.write_error = 0;
      const auto closed = close(std::move(handle));
      ASSERT_TRUE(closed) << wanted.dtype << ": " << closed.error().reason;
      EXPECT_EQ(size_of(name_), text.size());
      remount();
      handle = open(name_, O_RDONLY);
      EXPECT_TRUE(read(*handle, 0, text.size()) == text) << wanted.dtype << " " << wanted.shape.size();
      filesystem_->files().release(std::move(handle));
      EXPECT_EQ(size_of(name_), text.size());
    }
    EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2nd"});
  }
}

TEST_F(ArrayChangesTest, AnArrayThatWasReplacedGrowsAndIsReplacedAgainBesideCommits) {
  options_.commit_interval = 0.01;
  start_plain(frame::ArrayForm::npy);
  for (std::uint8_t round = 0; round < 20; ++round) {
    const std::int64_t rows = 200 + round;
    const std::string text = npy_file(round % 2 == 0 ? "<f8" : "<i2", round % 2 == 0 ? 8 : 2, {rows, 50}, round);
    auto handle = open(name_, O_RDWR | O_TRUNC);
    for (std::size_t at = 0; at < text.size(); at += 5000) {
      ASSERT_TRUE(write(*handle, at, text.substr(at, 5000)));
      // EINVAL: the last row is incomplete.
      if (at % 3 == 0) static_cast<void>(filesystem_->files().sync(*handle, true));
    }
    EXPECT_TRUE(read(*handle, 0, text.size()) == text) << int{round};
    ASSERT_TRUE(close(std::move(handle)));
    EXPECT_TRUE(content_now() == text);
  }
}

TEST_F(ArrayChangesTest, AnArrayThatNoFrameCanHoldDoesNotReplaceAnArray) {
  start_plain(frame::ArrayForm::npy);
  const std::string before = content_now();
  std::string fortran = npy_file("<f8", 8, {6, 5}, 1);
  fortran.replace(fortran.find("False"), 5, "True ");
  std::string other_length = npy_file("<f8", 8, {6, 5}, 1);
  other_length.replace(other_length.find('}'), 2, " }");
  for (const std::string& text : {fortran, other_length, std::string(500, 'x'), before.substr(0, 20)}) {
    auto handle = open(name_, O_RDWR | O_TRUNC);
    if (text.size() > 20) {
      EXPECT_EQ(errno_of(write(*handle, 0, text)), EINVAL);
    }
    filesystem_->files().release(std::move(handle));
    EXPECT_EQ(size_of(name_), head_);
  }
}

TEST_F(ArrayChangesTest, AnArrayWithFixedRowsThatIsOnlyEmptiedStaysWithAnError) {
  start_with(frame::ArrayForm::npy, ArraySpec{{}, {}, {}, 8, "<f8"}, test::varied_items(8));
  const std::string before = content_now();
  auto handle = open(name_, O_RDWR | O_TRUNC);
  EXPECT_EQ(errno_of(close(std::move(handle))), EINVAL);
  AttributeChanges empty;
  empty.size = 0;
  EXPECT_EQ(
      errno_of(filesystem_->attributes().change(filesystem_->names().lookup(kRootNode, name_)->node, nullptr, empty)),
      EINVAL);
  EXPECT_EQ(content_now(), before);
  const std::string same = npy_file("<f8", 8, {}, 9);
  handle = open(name_, O_RDWR | O_TRUNC);
  ASSERT_TRUE(write(*handle, 0, same));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), same);
}

TEST_F(ArrayChangesTest, ARowThatOneHandleIsWritingIsNoFailureOfAnother) {
  start_plain(frame::ArrayForm::npy);
  auto other = open(name_);
  auto appending = open(name_, O_RDWR | O_APPEND);
  ASSERT_TRUE(write(*appending, 0, std::string(row() / 2, 'a')));
  EXPECT_TRUE(filesystem_->files().sync(*other, false));
  EXPECT_EQ(errno_of(filesystem_->files().sync(*appending, false)), EINVAL);
  ASSERT_TRUE(write(*other, head_, "b"));
  EXPECT_TRUE(close(std::move(other)));
  ASSERT_TRUE(write(*appending, 0, std::string(row() / 2, 'a')));
  EXPECT_TRUE(close(std::move(appending)));
  write_model(model_.size(), Bytes(row(), 'a'));
  model_[0] = 'b';
  EXPECT_EQ(content_now(), expected());

  start_with(frame::ArrayForm::npy, ArraySpec{{}, {}, {}, 8, "<f8"}, test::varied_items(8));
  other = open(name_);
  auto emptying = open(name_, O_RDWR | O_TRUNC);
  EXPECT_TRUE(close(std::move(other)));
  EXPECT_EQ(errno_of(filesystem_->files().flush(*emptying)), EINVAL);
  const std::string text = npy_file("<f4", 4, {5}, 3);
  ASSERT_TRUE(write(*emptying, 0, text));
  EXPECT_TRUE(close(std::move(emptying)));
  EXPECT_EQ(content_now(), text);
}

/// The kernel writes pages by several requests at once.
TEST_F(ArrayChangesTest, PagesOfANewArrayMayComeBeforeItsHeader) {
  options_.kernel_cache.writeback = true;
  constexpr std::size_t kPart = std::size_t{1} << 20;
  const std::string text = npy_file("<f8", 8, {300, 900}, 7);
  const auto write_pages = [&](FileHandle& handle, std::size_t at) {
    const Bytes part(text.begin() + static_cast<std::ptrdiff_t>(at),
                     text.begin() + static_cast<std::ptrdiff_t>(std::min(at + kPart, text.size())));
    return filesystem_->files().write(handle, at, part, true);
  };
  const std::vector<ArraySpec> before = {
      {{}, {}, {}, 8, "<f8"}, {{3, 0}, {1, 1}, {1, 1}, 8, "<i8"}, {{7, 6}, {3, 4}, {2, 3}, 4, "<i4"}};
  for (const ArraySpec& spec : before) {
    start_with(frame::ArrayForm::npy, spec, test::varied_items(spec.nbytes()));
    auto handle = open(name_, O_RDWR | O_TRUNC);
    auto second = std::async(std::launch::async, [&] { return write_pages(*handle, kPart); });
    auto third = std::async(std::launch::async, [&] { return write_pages(*handle, 2 * kPart); });
    second.wait_for(std::chrono::milliseconds(50));
    const auto first = write_pages(*handle, 0);
    ASSERT_TRUE(first) << spec.shape.size() << ": " << first.error().reason;
    EXPECT_TRUE(second.get());
    EXPECT_TRUE(third.get());
    EXPECT_TRUE(filesystem_->files().flush(*handle));
    EXPECT_TRUE(read(*handle, 0, text.size()) == text);
    filesystem_->files().release(std::move(handle));
  }
}

TEST_F(ArrayChangesTest, PagesOfAnEmptiedArrayNeedNoHeader) {
  options_.kernel_cache.writeback = true;
  start_plain(frame::ArrayForm::npy);
  auto handle = open(name_, O_RDWR | O_TRUNC);
  resize_model(0);
  write_model(0, Bytes(2 * row(), 'x'));
  const Bytes rows(2 * row(), 'x');
  EXPECT_TRUE(filesystem_->files().write(*handle, head_, rows, true));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), expected());
}

// semantics: B5
TEST_F(ArrayChangesTest, ArraysWithoutRowsAreOverwrittenOnly) {
  ArraySpec spec{{}, {}, {}, 8, "<f8"};
  start_with(frame::ArrayForm::npy, spec, test::varied_items(8));
  auto handle = open(name_);
  ASSERT_TRUE(write(*handle, head_, "12345678"));
  EXPECT_EQ(errno_of(write(*handle, head_ + 8, "9")), EFBIG);
  EXPECT_EQ(errno_of(resize(*handle, head_)), EINVAL);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now().substr(head_), "12345678");

  start_with(frame::ArrayForm::npy, ArraySpec{{5, 0}, {5, 1}, {5, 1}, 4, "<i4"}, {});
  handle = open(name_);
  EXPECT_EQ(errno_of(write(*handle, head_, "1234")), EFBIG);
  EXPECT_TRUE(close(std::move(handle)));
}

TEST_F(ArrayChangesTest, AnEmptyArrayGrows) {
  for (const std::int32_t chunksize : {0, -1, 96}) {
    stop();
    ArraySpec spec{{0, 6}, {3, 4}, {2, 3}, 4, "<i4"};
    test::FrameBuilder frame = test::array_frame(spec, {});
    if (chunksize != 96) frame.chunksize = chunksize;
    spec_ = spec;
    options_.b2nd = frame::ArrayForm::npy;
    directory_.write("x.b2nd", frame.build());
    start();
    name_ = "x.npy";
    model_.clear();
    auto handle = open(name_, O_RDWR | O_APPEND);
    ASSERT_TRUE(handle);
    const Bytes rows = test::varied_items(row() * 7, 3);
    ASSERT_TRUE(write(*handle, 0, text_of(rows)));
    write_model(0, rows);
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_EQ(content_now(), expected());
    check_stored();
  }
}

TEST_F(ArrayChangesTest, AnArrayShownAsChunksKeepsItsSize) {
  start_plain(frame::ArrayForm::chunks);
  std::string plain = content_now();
  auto handle = open(name_);
  ASSERT_TRUE(write(*handle, 90, "over the edge of a chunk"));
  plain.replace(90, 24, "over the edge of a chunk");
  EXPECT_EQ(errno_of(write(*handle, plain.size(), "x")), EFBIG);
  EXPECT_EQ(errno_of(resize(*handle, 0)), EINVAL);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), plain);
}

TEST_F(ArrayChangesTest, AFailedCommitLosesNothing) {
  start_plain(frame::ArrayForm::npy);
  auto handle = open(name_);
  const Bytes rows = test::varied_items(row() * 2 + 3, 3);
  ASSERT_TRUE(write(*handle, expected().size(), text_of(rows)));
  disk_.write_error = ENOSPC;
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), ENOSPC);
  disk_.write_error = 0;
  const Bytes rest = test::varied_items(row() - 3, 4);
  ASSERT_TRUE(write(*handle, expected().size() + rows.size(), text_of(rest)));
  Bytes all = rows;
  all.insert(all.end(), rest.begin(), rest.end());
  write_model(model_.size(), all);
  EXPECT_EQ(read(*handle), expected());
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content_now(), expected());
  check_stored();
}

/// Commits of a stream whose rows end inside pieces store each row of chunks once.
TEST_F(ArrayChangesTest, AStreamStoresEachChunkOnce) {
  ArraySpec spec{{0, 10}, {100, 10}, {50, 10}, 300, "|V300"};
  options_.dirty_limit = std::uint64_t{2} << 20;
  start_with(frame::ArrayForm::flat, spec, {});
  auto handle = open(name_);
  const Bytes rows = test::varied_items(row() * 2000, 7);
  constexpr std::size_t kWrite = 128U << 10;
  for (std::size_t at = 0; at < rows.size(); at += kWrite)
    ASSERT_TRUE(write(*handle, at, text_of(codec::ByteView(rows).subspan(at, std::min(kWrite, rows.size() - at)))));
  write_model(0, rows);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(stored("x.b2nd")->chunk_count(), 20);
  // No chunk was stored twice: the file contains the chunks and a few indexes.
  EXPECT_LT(stored("x.b2nd")->parameters().frame_length, rows.size() + rows.size() / 10);
  check_stored();
}

}  // namespace
}  // namespace cframefs::fs
