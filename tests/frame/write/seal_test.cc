// Seals: every commit keeps them, a damaged bit in a sealed chunk is an error, and chunks that another program changed
// are not taken for damage.
#include <algorithm>
#include <cerrno>
#include <random>

#include "frame/cframe/frame_seal.h"
#include "frame/container/chunk_reader.h"
#include "frame/write/compaction.h"
#include "frame/write/dead_space.h"
#include "frame/write/frame_metalayers.h"
#include "frame/write/frame_space.h"
#include "frame/write/new_frame_file.h"
#include "tests/frame/write/frame_writer_fixture.h"

namespace cframefs {
namespace {

constexpr std::int32_t kSealedChunk = 40'000;
constexpr std::int32_t kSealedBlock = 10'000;

/// What a chunk of the tests holds.
enum class Content : std::uint8_t { numbers, noise, zeros };

Bytes content_of(Content content, std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) {
    if (content == Content::numbers) byte = static_cast<std::uint8_t>(random() % 16);
    if (content == Content::noise) byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

codec::EncodeParameters parameters() {
  codec::EncodeParameters made;
  made.compcode = codec::kZstd;
  made.clevel = 1;
  made.blocksize = kSealedBlock;
  return made;
}

codec::EncodedChunk encoded(const Bytes& plain) {
  codec::EncodeContext context;
  auto chunk = codec::encode_chunk(context, parameters(), plain);
  EXPECT_TRUE(chunk);
  return chunk ? std::move(*chunk) : codec::EncodedChunk{};
}

class SealTest : public FrameWriterTest {
 protected:
  /// Makes an empty frame with chunks of kSealedChunk bytes.
  void make_open_frame() {
    frame::NewFrame made;
    made.encode = parameters();
    made.chunksize = kSealedChunk;
    make(frame::empty_frame(made));
    model_.chunksize = kSealedChunk;
  }
  /// Stores a chunk of this content behind the others.
  void add(FrameWriter& writer, Content content, std::size_t size = kSealedChunk) {
    const Bytes plain = content_of(content, size, static_cast<unsigned>(model_.plain.size() + 1));
    expect_ok(writer.store(ChunkNumber{writer.pending().chunk_count()}, encoded(plain)));
    model_.plain.insert(model_.plain.end(), plain.begin(), plain.end());
  }
  void make_sealed(int groups = 2) {
    make_open_frame();
    const auto writer = open();
    for (int group = 0; group < groups; ++group) {
      for (const Content content : {Content::numbers, Content::noise, Content::zeros, Content::numbers})
        add(*writer, content);
    }
    add(*writer, Content::numbers, 12'345);
    expect_ok(writer->commit(Durability::durable));
  }

  std::shared_ptr<const frame::FrameContainer> opened() const {
    auto container = test::open_frame(path());
    EXPECT_TRUE(container) << codec::describe(container.error());
    return container ? frame::as_shared_frame(*container) : nullptr;
  }
  static bool is_sealed(const frame::FrameContainer& frame) {
    return frame.seal() && frame.seal()->holds().value_or(false);
  }
  /// Expects that the frame is sealed, and each stored chunk has digests.
  static void expect_sealed(const frame::FrameContainer& frame) {
    ASSERT_TRUE(is_sealed(frame));
    EXPECT_TRUE(frame.seal()->has_sealed_metadata().value_or(false));
    for (std::int64_t chunk = 0; chunk < frame.chunk_count(); ++chunk) {
      const auto location = frame.locate_chunk(ChunkNumber{chunk});
      ASSERT_TRUE(location);
      if (location->special != codec::SpecialValue::none) continue;
      const auto digests = frame.digests(ChunkNumber{chunk});
      ASSERT_TRUE(digests);
      EXPECT_TRUE(digests->any()) << "chunk " << chunk;
    }
  }
  /// Returns the bytes of the frame as all readers see them, or the kind of the first error.
  static codec::Result<Bytes> read(const Bytes& file) {
    const auto opened = test::open_frame(file);
    if (!opened) return codec::Failure(opened.error());
    const auto model = test::read_model(**opened);
    if (!model) return codec::Failure(model.error());
    return model->plain;
  }
};

TEST_F(SealTest, AFrameIsSealedByTheCommitThatGivesItChunks) {
  make_sealed();
  check();
  expect_sealed(*opened());
  // Chunks of blocks have a digest for each block, and one for what is before them.
  EXPECT_EQ(opened()->digests(ChunkNumber{0})->values().size(), 1U + kSealedChunk / kSealedBlock);
  EXPECT_FALSE(opened()->digests(ChunkNumber{2})->any()) << "zeros are not stored";
}

TEST_F(SealTest, EveryCommitKeepsIt) {
  make_sealed(20);
  std::mt19937 random(7);
  const auto writer = open();
  const auto put = [&](std::int64_t number) {
    const auto begin = static_cast<std::size_t>(number) * kSealedChunk;
    const std::size_t size = std::min<std::size_t>(kSealedChunk, model_.plain.size() - begin);
    const Bytes plain = content_of(static_cast<Content>(random() % 3), size, random());
    std::copy(plain.begin(), plain.end(), model_.plain.begin() + static_cast<std::ptrdiff_t>(begin));
    expect_ok(writer->store(ChunkNumber{number}, encoded(plain)));
  };
  for (int commit = 0; commit < 200; ++commit) {
    SCOPED_TRACE(commit);
    const std::int64_t count = writer->pending().chunk_count();
    switch (random() % 5) {
      case 0:
        put(static_cast<std::int64_t>(random() % static_cast<unsigned>(count)));
        break;
      case 1:
        // The short last chunk is stored with its full length before another one follows.
        model_.plain.resize(static_cast<std::size_t>(count) * kSealedChunk);
        expect_ok(writer->resize(model_.plain.size()));
        put(count - 1);
        add(*writer, Content::numbers, 1 + random() % kSealedChunk);
        break;
      case 2: {
        const auto keep = std::max<std::size_t>(5, static_cast<std::size_t>(count) - random() % 3);
        model_.plain.resize(std::min(model_.plain.size(), keep * kSealedChunk));
        expect_ok(writer->resize(model_.plain.size()));
        break;
      }
      case 3: {
        const Bytes content = content_of(Content::noise, 100 + random() % 1000, random());
        expect_ok(frame::FrameMetalayers(*writer).set_variable("note", content));
        model_.vlmetalayers = {{"note", content}};
        break;
      }
      default: {
        const auto chunk = static_cast<std::int64_t>(random() % static_cast<unsigned>(count - 1));
        writer->store_zeros(ChunkNumber{chunk}, ChunkNumber{chunk + 1});
        std::fill_n(model_.plain.begin() + static_cast<std::ptrdiff_t>(chunk * kSealedChunk), kSealedChunk, 0);
      }
    }
    expect_ok(writer->commit(Durability::ordered));
    check(writer.get());
    expect_sealed(*opened());
    if (HasFailure()) return;
  }
}

TEST_F(SealTest, ACommitWritesTheChangedPagesOnly) {
  make_open_frame();
  const auto writer = open();
  for (int chunk = 0; chunk < 1500; ++chunk)
    expect_ok(writer->store(ChunkNumber{chunk}, encoded(content_of(Content::noise, kSealedChunk, 1))));
  expect_ok(writer->commit(Durability::durable));
  const auto before = opened()->seal()->pages();
  ASSERT_TRUE(before && *before);
  ASSERT_EQ((*before)->size(), 3U);
  expect_ok(writer->store(ChunkNumber{600}, encoded(content_of(Content::noise, kSealedChunk, 2))));
  expect_ok(writer->commit(Durability::durable));
  const auto after = opened()->seal()->pages();
  ASSERT_TRUE(after && *after);
  EXPECT_EQ((**after)[0].part.place, (**before)[0].part.place);
  EXPECT_NE((**after)[1].part.place, (**before)[1].part.place);
  EXPECT_EQ((**after)[2].part.place, (**before)[2].part.place);
  expect_sealed(*opened());
}

TEST_F(SealTest, NoProgramMistakesItForDeadBytes) {
  make_sealed();
  const auto writer = open();
  expect_ok(frame::FrameSpace(*writer).compact());
  const auto frame = opened();
  EXPECT_EQ(frame::measure_dead_bytes(*frame).value_or(1), 0U);
  EXPECT_TRUE(frame::find_dead_ranges(*frame).value_or(std::vector<frame::DeadRange>(1)).empty());
  expect_ok(writer->store(ChunkNumber{1}, encoded(content_of(Content::numbers, kSealedChunk, 99))));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_TRUE(frame::FrameSpace(*writer).punch_dead_bytes());
  expect_sealed(*opened());
  EXPECT_TRUE(test::read_model(*opened()));
}

TEST_F(SealTest, OptionsDecideWhetherItIsWritten) {
  using frame::Checksums;
  for (const Checksums checksums : {Checksums::keep, Checksums::off}) {
    make_open_frame();
    const auto writer = open({.checksums = checksums});
    add(*writer, Content::numbers);
    expect_ok(writer->commit(Durability::durable));
    EXPECT_FALSE(opened()->seal());
  }
  make_sealed();
  for (const Checksums checksums : {Checksums::keep, Checksums::on, Checksums::off}) {
    const auto writer = open({.checksums = checksums});
    expect_ok(writer->store(ChunkNumber{1}, encoded(content_of(Content::noise, kSealedChunk, 5))));
    expect_ok(writer->commit(Durability::durable));
    EXPECT_EQ(is_sealed(*opened()), checksums != Checksums::off);
  }
  // Chunks without digests stay without; a new file, whose chunks are all written, gets them.
  const auto writer = open();
  expect_ok(writer->store(ChunkNumber{1}, encoded(content_of(Content::noise, kSealedChunk, 6))));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_FALSE(opened()->seal());
  expect_ok(frame::FrameSpace(*writer).compact());
  expect_sealed(*opened());
}

TEST_F(SealTest, ASealIsAddedBesideOtherChanges) {
  make_open_frame();
  const auto writer = open({.checksums = frame::Checksums::off});
  for (const Content content : {Content::numbers, Content::noise, Content::numbers})
    add(*writer, content);
  expect_ok(writer->commit(Durability::durable));
  expect_ok(writer->seal([](std::uint64_t) { return true; }));
  const Bytes other = content_of(Content::noise, kSealedChunk, 50);
  std::copy(other.begin(), other.end(), model_.plain.begin() + kSealedChunk);
  expect_ok(writer->store(ChunkNumber{1}, encoded(other)));
  writer->store_zeros(ChunkNumber{0}, ChunkNumber{1});
  std::fill_n(model_.plain.begin(), kSealedChunk, 0);
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  expect_sealed(*opened());
  // The caller can end it.
  const auto ended = writer->seal([](std::uint64_t) { return false; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().sys, EINTR);
}

TEST_F(SealTest, AFlippedBitIsAnErrorAndNothingElse) {
  make_sealed(0);
  const Bytes whole = test::file_bytes(path());
  const std::size_t section = 97;
  const std::size_t end = section + static_cast<std::size_t>(opened()->parameters().cbytes);
  int errors = 0;
  int right = 0;
  for (std::size_t at = section; at < end; ++at) {
    Bytes damaged = whole;
    damaged[at] ^= static_cast<std::uint8_t>(1U << (at % 8));
    const auto got = read(damaged);
    if (got) {
      ASSERT_TRUE(*got == model_.plain) << "byte " << at;
      ++right;
    } else {
      ASSERT_EQ(got.error().kind, ErrorKind::corruption) << codec::describe(got.error());
      ++errors;
    }
  }
  // Only the digests themselves, and the trailer of the frame without chunks, can be damaged without an error.
  std::uint64_t without = 35;
  const auto sealed = opened()->seal()->ranges();
  ASSERT_TRUE(sealed);
  for (const codec::ByteRange& range : *sealed)
    without += range.size();
  EXPECT_EQ(right, without);
  EXPECT_GT(errors, 5'000);
}

TEST_F(SealTest, TheErrorTellsBlockAndDigestsAndOtherBlocksAreRead) {
  make_sealed();
  for (const std::int64_t chunk : {0, 3}) {
    Bytes damaged = test::file_bytes(path());
    auto frame = opened();
    auto reader = frame::ChunkReader::open(*frame, ChunkNumber{chunk});
    ASSERT_TRUE(reader);
    ASSERT_GE((*reader)->decoder().block_count(), 3U);
    const auto range = (*reader)->decoder().stored_range(2);
    damaged[frame->locate_chunk(ChunkNumber{chunk})->offset.value + range.begin + 17] ^= 4;
    const auto container = test::open_frame(damaged);
    ASSERT_TRUE(container);
    reader = frame::ChunkReader::open(**container, ChunkNumber{chunk});
    ASSERT_TRUE(reader);
    codec::DecodeContext context;
    for (std::uint32_t block = 0; block < (*reader)->decoder().block_count(); ++block) {
      Bytes out((*reader)->decoder().block_range(block).size());
      const codec::ByteSpan span(out);
      const auto done = (*reader)->decode(context, block, std::span(&span, 1), {});
      EXPECT_EQ(done.has_value(), block != 2);
      if (done) continue;
      EXPECT_EQ(done.error().kind, ErrorKind::corruption);
      EXPECT_EQ(done.error().chunk, chunk);
      EXPECT_NE(done.error().reason.find("block 2 has digest "), std::string::npos) << done.error().reason;
      EXPECT_NE(done.error().reason.find(", sealed as "), std::string::npos) << done.error().reason;
    }
  }
}

TEST_F(SealTest, PartsOfARawChunkAreVerified) {
  make_open_frame();
  const std::int32_t size = 300'000;
  frame::NewFrame made;
  made.encode = parameters();
  made.chunksize = size;
  make(frame::empty_frame(made));
  const Bytes plain = content_of(Content::noise, size, 3);
  const auto writer = open();
  expect_ok(writer->store(ChunkNumber{0}, encoded(plain)));
  expect_ok(writer->commit(Durability::durable));
  Bytes damaged = test::file_bytes(path());
  const std::size_t payload = opened()->locate_chunk(ChunkNumber{0})->offset.value + 32;
  damaged[payload + 70'000] ^= 1;  // in the fifth unit
  const auto container = test::open_frame(damaged);
  ASSERT_TRUE(container);
  const auto reader = frame::ChunkReader::open(**container, ChunkNumber{0});
  ASSERT_TRUE(reader);
  ASSERT_EQ((*reader)->storage(), frame::Storage::raw);
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t at = random() % size;
    Bytes out(1 + random() % std::min<std::uint32_t>(100'000, size - at));
    const bool touches = at / frame::kRawUnit <= 4 && (at + out.size() - 1) / frame::kRawUnit >= 4;
    const auto done = (*reader)->read_plain(at, out);
    ASSERT_EQ(done.has_value(), !touches) << at << " " << out.size();
    if (!done) continue;
    EXPECT_TRUE(std::equal(out.begin(), out.end(), plain.begin() + at));
  }
}

// C-Blosc2 2.0 to 2.2 copy a frame in memory only if its chunks fill the chunk section.
TEST_F(SealTest, AFrameThatIsWrittenWholeHasNothingButChunksInItsSection) {
  make_sealed();
  const auto writer = open();
  expect_ok(frame::FrameSpace(*writer).compact());
  const auto whole = opened();
  expect_sealed(*whole);
  std::uint64_t chunks = 0;
  for (std::int64_t chunk = 0; chunk < whole->chunk_count(); ++chunk) {
    const auto location = whole->locate_chunk(ChunkNumber{chunk});
    ASSERT_TRUE(location);
    if (location->special == codec::SpecialValue::none) chunks += frame::stored_length(*location).value();
  }
  EXPECT_EQ(whole->parameters().cbytes, chunks);
  // An append leaves the pages of the other chunks where they are, and they are not dead.
  const auto place = (*whole->seal()->pages())->front().part.place;
  for (int chunk = 0; chunk < 600; ++chunk)
    expect_ok(writer->store(ChunkNumber{chunk}, encoded(content_of(Content::noise, kSealedChunk, 1))));
  expect_ok(writer->commit(Durability::durable));
  expect_ok(frame::FrameSpace(*writer).compact());
  const auto before = (*opened()->seal()->pages());
  expect_ok(writer->store(ChunkNumber{599}, encoded(content_of(Content::noise, kSealedChunk, 2))));
  expect_ok(writer->commit(Durability::durable));
  const auto after = (*opened()->seal()->pages());
  EXPECT_NE((*before)[0].part.place, place);
  EXPECT_EQ((*after)[0].part.place, (*before)[0].part.place);
  std::uint64_t dead = 0;
  const auto ranges = frame::find_dead_ranges(*opened());
  ASSERT_TRUE(ranges);
  for (const frame::DeadRange& range : *ranges)
    dead += range.length;
  EXPECT_EQ(frame::FrameSpace(*writer).dead_bytes(), dead);
  expect_sealed(*opened());
}

TEST_F(SealTest, SwappedChunksAreSeen) {
  make_open_frame();
  const auto writer = open();
  for (unsigned chunk = 0; chunk < 2; ++chunk)
    expect_ok(writer->store(ChunkNumber{chunk}, encoded(content_of(Content::noise, kSealedChunk, chunk))));
  expect_ok(writer->commit(Durability::durable));
  Bytes bytes = test::file_bytes(path());
  const auto frame = opened();
  const auto at = [&](std::int64_t chunk) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(frame->locate_chunk(ChunkNumber{chunk})->offset.value);
  };
  std::swap_ranges(at(0), at(0) + 32 + kSealedChunk, at(1));
  const auto got = read(bytes);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, ErrorKind::corruption);
}

TEST_F(SealTest, ADamagedChunkIsNotCopied) {
  make_sealed();
  Bytes damaged = test::file_bytes(path());
  damaged[opened()->locate_chunk(ChunkNumber{1})->offset.value + 1000] ^= 1;
  temp_.write(name_, damaged);
  const auto writer = open();
  const auto done = frame::FrameSpace(*writer).compact();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::corruption);
  EXPECT_EQ(done.error().chunk, 1);
}

// What C-Blosc2 does: the new index lies where the old one was, and the trailer right behind it.
TEST_F(SealTest, ChunksThatAnotherProgramChangedAreNotDamaged) {
  make_sealed();
  const Bytes sealed = test::file_bytes(path());
  const auto frame = opened();
  const Bytes other = content_of(Content::noise, kSealedChunk, 77);
  const codec::EncodedChunk chunk = encoded(other);
  // In place, as releases before 3.0 do with a chunk that fits: index and length stay as they are.
  Bytes bytes = sealed;
  std::copy(chunk.bytes.begin(), chunk.bytes.end(),
            bytes.begin() + static_cast<std::ptrdiff_t>(frame->locate_chunk(ChunkNumber{1})->offset.value));
  const auto trailer = frame->trailer();
  const Bytes tail(bytes.begin() + static_cast<std::ptrdiff_t>(trailer.begin),
                   bytes.begin() + static_cast<std::ptrdiff_t>(trailer.begin + trailer.length));
  bytes.resize(trailer.begin - frame::kSealLength);
  bytes.insert(bytes.end(), tail.begin(), tail.end());
  codec::store_be(&bytes[frame::layout::kFrameLengthAt], static_cast<std::uint64_t>(bytes.size()));
  Bytes expected = model_.plain;
  std::copy(other.begin(), other.end(), expected.begin() + kSealedChunk);
  const auto got = read(bytes);
  ASSERT_TRUE(got) << codec::describe(got.error());
  EXPECT_TRUE(*got == expected);
  // The next commit of ours leaves it unsealed.
  temp_.write(name_, bytes);
  model_.plain = expected;
  const auto writer = open();
  expect_ok(writer->store(ChunkNumber{0}, encoded(content_of(Content::numbers, kSealedChunk, 4))));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_FALSE(opened()->seal());
}

TEST_F(SealTest, ADamagedSealVerifiesNothing) {
  make_sealed();
  Bytes bytes = test::file_bytes(path());
  bytes[bytes.size() - opened()->trailer().length - 10] ^= 1;
  const auto got = read(bytes);
  ASSERT_TRUE(got);
  EXPECT_TRUE(*got == model_.plain);
}

TEST_F(SealTest, ADamagedPageVerifiesNothing) {
  make_sealed();
  Bytes bytes = test::file_bytes(path());
  const auto pages = opened()->seal()->pages();
  ASSERT_TRUE(pages && *pages && (*pages)->size() == 1);
  bytes[(*pages)->front().part.place + 50] ^= 1;
  const auto got = read(bytes);
  ASSERT_TRUE(got) << codec::describe(got.error());
  EXPECT_TRUE(*got == model_.plain);
}

TEST_F(SealTest, ACopyOfAllChunksIsSealed) {
  make_sealed();
  const auto from = opened();
  const int fd = ::open((temp_.path() / "copy.b2frame").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  const frame::Descriptor file(files_, frame::system_file(fd));
  frame::NewFrame made;
  made.encode = parameters();
  made.chunksize = kSealedChunk;
  frame::FileTarget target(files_, file.handle());
  frame::NewFrameFile copy(target, made);
  expect_ok(copy.take_chunks(*from));
  expect_ok(copy.finish());
  const auto opened = test::open_frame((temp_.path() / "copy.b2frame").string());
  ASSERT_TRUE(opened);
  expect_sealed(*frame::as_shared_frame(*opened));
  const auto model = test::read_model(**opened);
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->plain == model_.plain);
}

TEST(SealLayout, RefusesWhatItDoesNotHold) {
  frame::PageDigests digests;
  digests.set(2, {});
  digests.set(1, std::vector<std::uint64_t>{1, 2, 3});
  const Bytes page = frame::encode_page(digests);
  ASSERT_TRUE(frame::parse_page(page));
  EXPECT_EQ(frame::digests_in(*frame::parse_page(page), 1).size(), 3U);
  EXPECT_TRUE(frame::digests_in(*frame::parse_page(page), 0).empty());
  EXPECT_TRUE(frame::digests_in(*frame::parse_page(page), 3).empty());
  for (std::size_t length = 0; length < page.size(); ++length)
    EXPECT_FALSE(frame::parse_page(codec::ByteView(page).first(length))) << length;
  for (std::size_t at = 0; at < 16; ++at) {
    Bytes wrong = page;
    wrong[at] ^= 0x80;
    EXPECT_FALSE(frame::parse_page(wrong)) << at;
  }
  const std::vector<frame::SealPage> twice{{5, {}}, {5, {}}};
  EXPECT_FALSE(frame::parse_root(frame::encode_root(twice)));
  EXPECT_FALSE(frame::parse_root(Bytes(33)));
  const Bytes seal = frame::encode_seal({});
  for (std::size_t at = 0; at < seal.size(); ++at) {
    Bytes wrong = seal;
    wrong[at] ^= 1;
    EXPECT_FALSE(frame::parse_seal(wrong)) << at;
  }
}

}  // namespace
}  // namespace cframefs
