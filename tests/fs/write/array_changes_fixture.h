// A fixture with an array that tests change through the filesystem object, and the items in C order as its model.
//
// Thread safety: one thread, as the filesystem allows. Ownership: the fixture owns the directory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "frame/array/array_view.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/array_builder.h"
#include "tests/support/reading.h"

namespace cframefs::fs {

using test::ArraySpec;
using test::Bytes;

inline std::string text_of(codec::ByteView bytes) {
  return {bytes.begin(), bytes.end()};
}

class ArrayChangesTest : public WrittenFilesystem {
 protected:
  void start_with(frame::ArrayForm form, const ArraySpec& spec, const Bytes& items) {
    stop();
    options_.b2nd = form;
    spec_ = spec;
    model_ = items;
    directory_.write("x.b2nd", test::array_frame(spec, items).build());
    start();
    name_ = form == frame::ArrayForm::npy ? "x.npy" : "x";
    head_ = head().size();
  }
  /// A plain array of `rows` times 6 items of 4 bytes, chunks of 3 x 4, blocks of 2 x 3.
  void start_plain(frame::ArrayForm form, std::int64_t rows = 7) {
    ArraySpec spec{{rows, 6}, {3, 4}, {2, 3}, 4, "<i4"};
    start_with(form, spec, test::varied_items(spec.nbytes()));
  }

  std::string head() const {
    if (options_.b2nd != frame::ArrayForm::npy) return {};
    frame::B2ndMeta layer;
    layer.shape = spec_.shape;
    layer.dtype = spec_.dtype;
    return text_of(frame::npy_head_of(layer, static_cast<std::uint64_t>(spec_.typesize)));
  }
  std::size_t row() const {
    auto bytes = static_cast<std::size_t>(spec_.typesize);
    for (std::size_t d = 1; d < spec_.shape.size(); ++d)
      bytes *= static_cast<std::size_t>(spec_.shape[d]);
    return bytes;
  }
  void resize_model(std::size_t bytes) {
    model_.resize(bytes);
    spec_.shape[0] = static_cast<std::int64_t>(bytes / row());
  }
  void write_model(std::size_t at, const Bytes& bytes) {
    if (at + bytes.size() > model_.size()) resize_model(at + bytes.size());
    std::copy(bytes.begin(), bytes.end(), model_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::string expected() const { return head() + text_of(model_); }
  std::string content_now() { return content(name_); }

  /// Checks that the chunks on disk hold each item where the format requires it, whatever the padding.
  void check_stored() {
    const auto container = stored("x.b2nd");
    ASSERT_TRUE(container);
    const std::vector<Bytes> chunks = test::array_chunks(spec_, model_);
    const Bytes marks(model_.size(), 1);
    const std::vector<Bytes> inside = test::array_chunks(spec_, marks);
    ASSERT_EQ(container->chunk_count(), static_cast<std::int64_t>(chunks.size()));
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const auto plain = test::read_chunk(*container, static_cast<std::int64_t>(c));
      ASSERT_TRUE(plain) << plain.error().reason;
      ASSERT_EQ(plain->size(), chunks[c].size());
      for (std::size_t i = 0; i < plain->size(); ++i) {
        if (inside[c][i] == 1) {
          ASSERT_EQ((*plain)[i], chunks[c][i]) << "chunk " << c << " byte " << i;
        }
      }
    }
  }

  ArraySpec spec_;
  Bytes model_;
  std::string name_;
  std::size_t head_ = 0;
};

}  // namespace cframefs::fs
