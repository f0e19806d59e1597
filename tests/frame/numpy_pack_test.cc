// NumPy arrays in Bloscpack files: metadata of every release, and the .npy files that come of them.
#include "frame/numpy_pack.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "frame/array_view.h"
#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using frame::NumpyPack;

std::optional<NumpyPack> parse(const std::string& text) {
  return frame::parse_numpy_metadata(std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string with_dtype(const std::string& dtype) {
  return R"({"dtype": )" + dtype + R"(, "shape": [2, 3], "order": "C", "container": "numpy"})";
}

TEST(NumpyPack, TypesAsEveryReleaseWroteThem) {
  const std::vector<std::pair<std::string, std::string>> types = {
      {R"("'<f8'")", "'<f8'"},
      {R"("<f8")", "'<f8'"},
      {R"([["", "<f4"]])", "'<f4'"},
      {R"("[('x', '<i4'), ('y', '<f8')]")", "[('x', '<i4'), ('y', '<f8')]"},
      {R"([["x", "<i4"], ["y", "<f8"]])", "[('x', '<i4'), ('y', '<f8')]"},
      {R"([["x", "<i4", [2, 3]], ["y", [["z", "|S5"]]]])", "[('x', '<i4', (2, 3)), ('y', [('z', '|S5')])]"},
      {R"([["it's", "<i4"]])", "[(\"it's\", '<i4')]"}};
  for (const auto& [json, descr] : types) {
    const auto pack = parse(with_dtype(json));
    ASSERT_TRUE(pack) << json;
    EXPECT_EQ(pack->type.descr, descr);
    EXPECT_EQ(pack->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_FALSE(pack->fortran_order);
  }
}

TEST(NumpyPack, WhatIsNoneOrCannotBeSaved) {
  std::string deep = R"("<i4")";
  for (int i = 0; i < 100; ++i)
    deep = R"([["a", )" + deep + "]]";
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), std::string("\xff"),
        with_dtype("\"'|O'\""), with_dtype("7"), with_dtype("[]"), with_dtype(R"([["a"]])"), with_dtype(deep),
        with_dtype("\"__import__('os')\""),
        std::string(R"({"dtype": "'<f8'", "shape": [2], "order": "C", "container": "other"})"),
        std::string(R"({"dtype": "'<f8'", "shape": [2], "order": "K", "container": "numpy"})"),
        std::string(R"({"dtype": "'<f8'", "shape": [-2], "order": "C", "container": "numpy"})"),
        std::string(R"({"dtype": "'<f8'", "shape": [2.5], "order": "C", "container": "numpy"})"),
        std::string(R"({"dtype": "'<f8'", "shape": 2, "order": "C", "container": "numpy"})"),
        std::string(R"({"dtype": "'<f8'", "shape": [18446744073709551615], "order": "C", "container": "numpy"})"),
        std::string(R"({"shape": [2], "order": "C", "container": "numpy"})")}) {
    EXPECT_FALSE(parse(text)) << text;
  }
}

TEST(NumpyPack, SizesDoNotOverflow) {
  const auto pack = parse(
      R"({"dtype": "'<f8'", "shape": [4611686018427387904, 4611686018427387904], "order": "F", "container": "numpy"})");
  ASSERT_TRUE(pack);
  EXPECT_TRUE(pack->fortran_order);
  EXPECT_FALSE(pack->nbytes());
}

/// Of the dictionary in a .npy file's header.
std::string header_text(const std::vector<std::uint8_t>& file) {
  const std::size_t length = file[8] + 256U * file[9];
  return {file.begin() + 10, file.begin() + 10 + static_cast<std::ptrdiff_t>(length)};
}

TEST(NumpyPack, GoldenArraysAreNpyFiles) {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"bp-np-f8.blp", "{'descr': '<f8', 'fortran_order': False, 'shape': (40, 30), }"},
      {"bp-np-i4-fortran.blp", "{'descr': '<i4', 'fortran_order': True, 'shape': (20, 30), }"},
      {"bp-np-be-i2-3d.blp", "{'descr': '>i2', 'fortran_order': False, 'shape': (6, 7, 8), }"},
      {"bp-np-struct.blp",
       "{'descr': [('x', '<i4'), ('y', '<f8'), ('name', '|S5')], 'fortran_order': False, 'shape': (100,), }"},
      {"bp-np-scalar0d.blp", "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
      {"bp-np-bool.blp", "{'descr': '|b1', 'fortran_order': False, 'shape': (333,), }"},
      {"bp-np-olddescr.blp", "{'descr': '<f4', 'fortran_order': False, 'shape': (500,), }"}};
  int checked = 0;
  for (const test::Row& row : test::read_manifest(test::golden_dir() / "legacy" / "MANIFEST.tsv")) {
    for (const auto& [file, text] : expected) {
      if (row["file"] != file) continue;
      SCOPED_TRACE(file);
      const auto opened = test::open_frame(row.file("file").string());
      ASSERT_TRUE(opened);
      const auto view = frame::make_view(*opened, frame::ArrayForm::npy, false);
      ASSERT_TRUE(view) << describe(view.error());
      const std::uint64_t head = (*view)->head().size();
      EXPECT_EQ(head % 64, 0U);
      EXPECT_EQ((*view)->size(), head + static_cast<std::uint64_t>(row.number("uncompressed_length")));
      const std::vector<std::uint8_t> header((*view)->head().begin(), (*view)->head().end());
      EXPECT_TRUE(header_text(header).starts_with(text)) << header_text(header);
      const auto content = test::read_range(**view, head, (*view)->size() - head);
      ASSERT_TRUE(content) << describe(content.error());
      EXPECT_EQ(test::sha256(*content), row["sha256_expected"]);
      // A range across the seam.
      std::vector<frame::Piece> pieces;
      ASSERT_TRUE((*view)->map(frame::FlatOffset{head - 4}, 10, pieces));
      ASSERT_EQ(pieces.size(), 1U);
      EXPECT_EQ(pieces[0].out, 4U);
      EXPECT_EQ(pieces[0].inner, 0U);
      EXPECT_EQ(pieces[0].length, std::min<std::uint64_t>(6, content->size()));
      for (const frame::ArrayForm form : {frame::ArrayForm::flat, frame::ArrayForm::chunks}) {
        const auto plain = frame::make_view(*opened, form, false);
        ASSERT_TRUE(plain);
        EXPECT_EQ((*plain)->size(), content->size());
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, 7);
}

}  // namespace
}  // namespace cframefs
