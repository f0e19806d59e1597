// NumPy arrays in Bloscpack files: metadata of every release, and the resulting .npy files. Also the parser of .npy
// headers.
#include "frame/numpy/bloscpack_numpy.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "frame/array/array_view.h"
#include "frame/numpy/npy_file.h"
#include "tests/support/digest.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using frame::BloscpackNumpy;

std::optional<BloscpackNumpy> parse(const std::string& text) {
  return frame::parse_numpy_metadata(std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string with_dtype(const std::string& dtype) {
  return R"({"dtype": )" + dtype + R"(, "shape": [2, 3], "order": "C", "container": "numpy"})";
}

TEST(BloscpackNumpy, TypesAsEveryReleaseWroteThem) {
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

TEST(BloscpackNumpy, InvalidOrUnsavableTypesAreRefused) {
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

TEST(BloscpackNumpy, SizesDoNotOverflow) {
  const auto pack = parse(
      R"({"dtype": "'<f8'", "shape": [4611686018427387904, 4611686018427387904], "order": "F", "container": "numpy"})");
  ASSERT_TRUE(pack);
  EXPECT_TRUE(pack->fortran_order);
  EXPECT_FALSE(pack->nbytes());
}

/// Returns the dictionary in the header of a .npy file.
std::string header_text(const std::vector<std::uint8_t>& file) {
  const std::size_t length = file.at(8) + 256U * file.at(9);
  return {file.begin() + 10, file.begin() + 10 + static_cast<std::ptrdiff_t>(length)};
}

TEST(BloscpackNumpy, GoldenArraysAreNpyFiles) {
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
      // A range across the end of the header.
      std::vector<frame::Piece> pieces;
      ASSERT_TRUE((*view)->chunk_order()->map(frame::FlatOffset{head - 4}, 10, pieces));
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

// ---- parser of .npy headers ----------------------------------------------------------------------------------------

std::vector<std::uint8_t> npy(const std::string& dictionary, std::uint8_t version = 1) {
  std::vector<std::uint8_t> file = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  for (std::size_t i = 0; i < (version == 1 ? 2U : 4U); ++i)
    file.push_back(static_cast<std::uint8_t>(dictionary.size() >> (8 * i)));
  file.insert(file.end(), dictionary.begin(), dictionary.end());
  return file;
}

TEST(NpyFile, HeadersOfEveryVersion) {
  for (const std::uint8_t version : {1, 2, 3}) {
    const auto bytes = npy("{'descr': '>f4', 'fortran_order': True, 'shape': (3, 4), }   \n", version);
    const auto file = frame::parse_npy_file(bytes);
    ASSERT_TRUE(file) << describe(file.error());
    EXPECT_EQ(file->type.descr, "'>f4'");
    EXPECT_EQ(file->shape, (std::vector<std::int64_t>{3, 4}));
    EXPECT_TRUE(file->fortran_order);
    EXPECT_EQ(file->data_at, bytes.size());
  }
  // Field names are Latin-1 before version 3, and UTF-8 in version 3.
  for (const auto& [name, version] : std::vector<std::pair<std::string, int>>{{"\xe9", 1}, {"\xc3\xa9", 3}}) {
    const auto file =
        frame::parse_npy_file(npy("{'descr': [('" + name + "', '<i4', (2,))], 'fortran_order': False, 'shape': (), }\n",
                                  static_cast<std::uint8_t>(version)));
    ASSERT_TRUE(file) << describe(file.error());
    EXPECT_EQ(file->type.descr, "[('\xc3\xa9', '<i4', (2,))]");
    EXPECT_EQ(file->type.itemsize, 8U);
  }
}

TEST(NpyFile, TruncatedOrDamagedHeadersAreErrors) {
  const auto good = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n");
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(frame::parse_npy_file(
        std::vector<std::uint8_t>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length))));
  }
  for (const std::string& dictionary :
       {std::string("{}"), std::string("7"), std::string("{'descr': '<f8', 'fortran_order': False}"),
        std::string("{'descr': '<f8', 'fortran_order': 0, 'shape': (3,)}"),
        std::string("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}"),
        std::string("{'descr': '<f8', 'fortran_order': False, 'shape': 3}"),
        std::string("{'descr': '<f8', 'fortran_order': False, 'shape': ('3',)}"),
        std::string("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808,)}"),
        std::string("{'fortran_order': False, 'shape': (3,)}")}) {
    EXPECT_FALSE(frame::parse_npy_file(npy(dictionary))) << dictionary;
  }
  EXPECT_EQ(frame::parse_npy_file(npy("{}", 4)).error().kind, codec::ErrorKind::unsupported);
}

TEST(NpyFile, SizesOfArrays) {
  EXPECT_EQ(frame::array_bytes({}, 8), 8U);
  EXPECT_EQ(frame::array_bytes({3, 4}, 8), 96U);
  EXPECT_EQ(frame::array_bytes({INT64_MAX, 0, INT64_MAX}, 8), 0U);
  EXPECT_FALSE(frame::array_bytes({INT64_MAX}, 2));
  EXPECT_FALSE(frame::array_bytes({INT64_MAX, INT64_MAX}, 1));
}

}  // namespace
}  // namespace cframefs
