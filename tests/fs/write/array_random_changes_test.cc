// Random changes of random arrays through the filesystem object, against the items in C order.
#include <algorithm>
#include <cstdint>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/fs/write/array_changes_fixture.h"

namespace cframefs::fs {
namespace {

ArraySpec any_spec() {
  ArraySpec spec;
  const int ndim = *rc::gen::weightedElement<int>({{4, 1}, {6, 2}, {6, 3}, {3, 4}, {1, 7}});
  const int most = ndim == 1 ? 60 : ndim == 2 ? 14 : ndim == 3 ? 7 : ndim == 4 ? 4 : 2;
  for (int d = 0; d < ndim; ++d) {
    spec.shape.push_back(*rc::gen::inRange(d == 0 ? 0 : 1, most + 1));
    spec.chunkshape.push_back(*rc::gen::inRange(1, most + 3));
    spec.blockshape.push_back(*rc::gen::inRange(1, spec.chunkshape.back() + 1));
    if (*rc::gen::inRange(0, 3) == 0 && spec.shape.back() > 0) {
      spec.chunkshape.back() = static_cast<std::int32_t>(spec.shape.back());
      spec.blockshape.back() = spec.chunkshape.back();
    }
  }
  spec.typesize = *rc::gen::element(1, 2, 3, 4, 8, 13, 300);
  if (*rc::gen::inRange(0, 4) != 0) spec.dtype = "|V" + std::to_string(spec.typesize);
  return spec;
}

class RandomArrays : public ArrayChangesTest {
 public:
  using ArrayChangesTest::SetUp;
  using ArrayChangesTest::TearDown;
  void TestBody() override {}

  void run() {
    const ArraySpec spec = any_spec();
    Bytes items = test::varied_items(spec.nbytes(), *rc::gen::arbitrary<std::uint64_t>());
    if (*rc::gen::inRange(0, 3) == 0) std::fill_n(items.begin(), items.size() / 2, std::uint8_t{0});
    start_with(*rc::gen::element(frame::ArrayForm::npy, frame::ArrayForm::flat), spec, items);
    auto handle = open(name_);
    const int steps = *rc::gen::inRange(1, 14);
    for (int i = 0; i < steps; ++i) {
      step(*handle);
      RC_ASSERT(read(*handle, 0, 1U << 24) == expected());
      if (*rc::gen::inRange(0, 6) != 0) continue;
      RC_ASSERT(bool(close(std::move(handle))));
      check_stored();
      RC_ASSERT(!HasFailure());
      if (*rc::gen::inRange(0, 2) == 0) remount();
      handle = open(name_);
    }
    RC_ASSERT(bool(close(std::move(handle))));
    check_stored();
    RC_ASSERT(!HasFailure());
    RC_ASSERT(content(name_) == expected());
  }

 private:
  void step(FileHandle& handle) {
    const std::size_t size = model_.size();
    const std::size_t more = row() * *rc::gen::inRange<std::size_t>(1, 6);
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
      case 1: {
        const std::size_t at = *rc::gen::inRange<std::size_t>(0, size + 1);
        return put(handle, at, test::varied_items(*rc::gen::inRange<std::size_t>(0, size - at + 1), seed));
      }
      case 2:
        return put(handle, size, test::varied_items(more, seed));
      case 3: {
        const std::size_t part = *rc::gen::inRange<std::size_t>(1, more + 1);
        const Bytes rows = test::varied_items(more, seed);
        put_raw(handle, size, Bytes(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(part)));
        static_cast<void>(filesystem_->files().sync(handle, true));
        return put(handle, size, rows);
      }
      case 4:
        return put(handle, size + more, test::varied_items(row(), seed));
      case 5: {
        const std::size_t rows = *rc::gen::inRange<std::size_t>(0, size / row() + 4);
        RC_ASSERT(bool(resize(handle, head_ + rows * row())));
        return resize_model(rows * row());
      }
      default:
        RC_ASSERT(bool(filesystem_->files().sync(handle, false)));
    }
  }
  void put(FileHandle& handle, std::size_t at, const Bytes& bytes) {
    put_raw(handle, at, bytes);
    write_model(at, bytes);
  }
  void put_raw(FileHandle& handle, std::size_t at, const Bytes& bytes) {
    RC_ASSERT(bool(write(handle, head_ + at, text_of(bytes))));
  }
};

TEST(RandomArraysTest, RandomChangesAgainstItemsInCOrder) {
  const bool fine = rc::check("arrays that are changed hold what a plain file would", [] {
    RandomArrays fixture;
    fixture.SetUp();
    fixture.run();
    fixture.TearDown();
  });
  EXPECT_TRUE(fine);
}

}  // namespace
}  // namespace cframefs::fs
