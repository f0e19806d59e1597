// Damaged files of older formats: truncated at every byte, and every field set to 0, 1, -1 and the largest value, at
// every width. Each read must return the bytes of the undamaged file at the same offset, or an error.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/base/bytes.h"
#include "frame/compat/bare_chunk.h"
#include "frame/compat/bloscpack.h"
#include "frame/compat/legacy_frame.h"
#include "tests/support/golden.h"
#include "tests/support/memory_meter.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using codec::ErrorKind;
using Bytes = std::vector<std::uint8_t>;
using OpenResult = codec::Result<std::shared_ptr<const frame::Container>>;

/// Bound of the memory for opening and reading. All files are small, so it covers only decoder states and tables.
constexpr std::size_t kMemoryBound = std::size_t{16} << 20;

Bytes golden(const std::string& file) {
  return test::file_bytes(test::golden_dir() / "legacy" / file);
}

OpenResult open(const std::string& file, Bytes bytes) {
  auto source = frame::memory_source(std::move(bytes));
  if (file.ends_with(".blp")) return frame::open_bloscpack(std::move(source));
  if (file.ends_with(".cdata")) return frame::open_bare_chunk(std::move(source), true);
  return frame::open_legacy_frame(std::move(source), std::make_shared<frame::IndexCache>(), false);
}

bool is_of_the_data(const codec::Error& error) {
  return error.kind == ErrorKind::corruption || error.kind == ErrorKind::unsupported;
}

struct Outcome {
  bool opened = false;
  std::int64_t chunks_read = 0;
};

/// Reads all readable chunks of `bytes` and compares them with `plain`.
Outcome check(const std::string& file, Bytes bytes, const Bytes& plain) {
  Outcome outcome;
  const std::size_t before = test::reset_peak();
  const OpenResult opened = open(file, std::move(bytes));
  if (!opened) {
    EXPECT_TRUE(is_of_the_data(opened.error())) << describe(opened.error());
    return outcome;
  }
  outcome.opened = true;
  const frame::Container& container = **opened;
  std::uint64_t at = 0;
  // A header may claim more bytes than the file holds: stop at the first offset without a chunk.
  while (at < container.parameters().nbytes) {
    const auto span = container.chunk_at(frame::FlatOffset{at});
    if (!span) {
      EXPECT_TRUE(is_of_the_data(span.error())) << describe(span.error());
      break;
    }
    EXPECT_GT(span->nbytes, 0U);
    if (span->nbytes == 0 || outcome.chunks_read > 100) break;
    const auto content = test::read_chunk(container, span->chunk.value);
    if (content) {
      EXPECT_EQ(content->size(), span->nbytes);
      EXPECT_LE(at + content->size(), plain.size());
      const bool same =
          at + content->size() <= plain.size() && std::memcmp(content->data(), plain.data() + at, content->size()) == 0;
      EXPECT_TRUE(same) << "other bytes at " << at;
      ++outcome.chunks_read;
    } else {
      EXPECT_TRUE(is_of_the_data(content.error())) << describe(content.error());
    }
    at += span->nbytes;
    if (at > plain.size() + (std::uint64_t{1} << 20)) break;
  }
  for (const std::string& name : container.vlmetalayer_names())
    static_cast<void>(container.vlmetalayer(name));
  EXPECT_LT(test::peak_bytes() - before, kMemoryBound);
  return outcome;
}

Bytes plain_of(const std::string& file) {
  Bytes plain;
  const OpenResult opened = open(file, golden(file));
  EXPECT_TRUE(opened) << file;
  if (!opened) return plain;
  for (std::int64_t chunk = 0; chunk < (*opened)->chunk_count(); ++chunk) {
    const auto content = test::read_chunk(**opened, chunk);
    EXPECT_TRUE(content) << file;
    if (content) plain.insert(plain.end(), content->begin(), content->end());
  }
  return plain;
}

/// Overwrites every offset in [begin, end) with invalid field values, in either byte order.
void break_fields(const std::string& file, const Bytes& plain, std::size_t begin, std::size_t end) {
  const Bytes good = golden(file);
  for (std::size_t at = begin; at < end; ++at) {
    for (const std::size_t width : {1, 2, 4, 8}) {
      if (at + width > end) continue;
      const Bytes zero(width, 0);
      const Bytes minus_one(width, 0xff);
      Bytes most = minus_one;
      most[0] = 0x7f;
      Bytes most_little = minus_one;
      most_little[width - 1] = 0x7f;
      Bytes one = zero;
      one[width - 1] = 1;
      Bytes one_little = zero;
      one_little[0] = 1;
      for (const Bytes& value : {zero, minus_one, most, most_little, one, one_little}) {
        Bytes bytes = good;
        std::copy(value.begin(), value.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
        SCOPED_TRACE(file + ": " + std::to_string(width) + " bytes at " + std::to_string(at) + " begin with " +
                     std::to_string(value[0]) + " and end with " + std::to_string(value[width - 1]));
        check(file, std::move(bytes), plain);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

class Malformed : public ::testing::TestWithParam<const char*> {};

TEST_P(Malformed, TruncatedAtEveryByte) {
  const std::string file = GetParam();
  const Bytes good = golden(file);
  const Bytes plain = plain_of(file);
  // Bytes after the last chunk or the trailer do not belong to the container.
  std::size_t needed = good.size();
  while (needed > 0 &&
         check(file, Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(needed - 1)), plain).chunks_read ==
             check(file, good, plain).chunks_read)
    --needed;
  EXPECT_GT(needed, 0U);
  const bool bloscpack = file.ends_with(".blp");
  for (std::size_t length = 0; length < needed; ++length) {
    SCOPED_TRACE(file + " cut off after " + std::to_string(length));
    const Outcome outcome = check(file, Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)), plain);
    // A truncated Bloscpack file may open: its header records the size, and opening does not need its end.
    if (!bloscpack) {
      EXPECT_FALSE(outcome.opened);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Malformed,
                         ::testing::Values("legacy-b1-sparse-shortlast.b2frame", "legacy-b1-blosclz-meta-um.b2frame",
                                           "legacy-b2-um-shrunk.b2frame", "legacy-b5-twoshort.b2frame",
                                           "legacy-b3-ts13.b2frame", "alpha5-bitshuffle-odd.cdata",
                                           "blosc1-old115-memcpy.cdata", "bp-single-chunk.blp", "bp-v1.blp",
                                           "bp-meta-none.blp", "bp-append-stale-tail.blp", "bp-ck-md5.blp",
                                           "bp-unknown-counts.blp"),
                         [](const auto& instance) { return test::test_name(instance.param); });

std::size_t be32(const Bytes& bytes, std::size_t at) {
  return codec::load_be<std::uint32_t>(&bytes[at]);
}

TEST(MalformedLegacy, EveryFieldOfHeaderIndexAndTrailer) {
  for (const std::string file :
       {"legacy-b1-sparse-shortlast.b2frame", "legacy-b1-blosclz-meta-um.b2frame", "legacy-b2-um-shrunk.b2frame",
        "legacy-b5-twoshort.b2frame", "legacy-b5-empty-meta-um.b2frame"}) {
    const Bytes good = golden(file);
    const Bytes plain = plain_of(file);
    const std::size_t header = be32(good, 0x0b);
    const auto frame = codec::load_be<std::uint64_t>(&good[0x10]);
    const std::size_t index = header + codec::load_be<std::uint64_t>(&good[0x27]);
    break_fields(file, plain, 0, header);
    if (!plain.empty()) {
      break_fields(file, plain, index + 4, index + 16);
      break_fields(file, plain, header + 4, header + 16);
    }
    if (file.starts_with("legacy-b1")) continue;
    const std::size_t trailer = frame - be32(good, frame - 22);
    break_fields(file, plain, trailer, trailer + 7);
    break_fields(file, plain, frame - 23, frame);
  }
}

TEST(MalformedLegacy, EveryFieldOfBloscpackHeaderMetadataAndOffsets) {
  for (const std::string file : {"bp-v1.blp", "bp-v2-two.blp", "bp-v2-single-noofs.blp", "bp-ck-none.blp",
                                 "bp-append-other-codec.blp", "bp-unknown-counts.blp", "bp-meta-small-nocomp.blp"}) {
    const OpenResult opened = open(file, golden(file));
    ASSERT_TRUE(opened);
    break_fields(file, plain_of(file), 0, (*opened)->parameters().header_length);
  }
}

TEST(MalformedLegacy, AnyByteOfBloscpackWithChecksums) {
  // Digests cover every byte of the chunks, so no read may return other bytes.
  for (const std::string file : {"bp-ck-crc32.blp", "bp-append-stale-tail.blp"}) {
    const Bytes good = golden(file);
    const Bytes plain = plain_of(file);
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (const std::uint8_t flip : {0x01, 0x80, 0xff}) {
        Bytes bytes = good;
        bytes[at] ^= flip;
        SCOPED_TRACE(file + ": byte " + std::to_string(at) + " with bits " + std::to_string(flip));
        check(file, std::move(bytes), plain);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(MalformedLegacy, LengthsOfABareChunk) {
  for (const std::string file : {"alpha5-bitshuffle-odd.cdata", "blosc1-old115-memcpy.cdata", "blosc1-mixed.cdata"}) {
    const Bytes good = golden(file);
    for (const std::size_t at : {4, 12}) {  // nbytes, cbytes
      for (const std::int32_t value : {0, -1, 1, INT32_MAX, INT32_MIN}) {
        Bytes bytes = good;
        codec::store_le(&bytes[at], value);
        SCOPED_TRACE(file + ": " + std::to_string(value) + " at " + std::to_string(at));
        EXPECT_EQ(check(file, bytes, plain_of(file)).chunks_read, 0);
      }
    }
    break_fields(file, plain_of(file), 8, 12);
  }
}

}  // namespace
}  // namespace cframefs
