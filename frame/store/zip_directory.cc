#include "frame/store/zip_directory.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "codec/base/bytes.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using codec::load_le;

constexpr std::uint32_t kLocalMagic = 0x04034b50;
constexpr std::uint32_t kEntryMagic = 0x02014b50;
constexpr std::uint32_t kEndMagic = 0x06054b50;
constexpr std::uint32_t kEnd64Magic = 0x06064b50;
constexpr std::uint32_t kLocator64Magic = 0x07064b50;
constexpr std::size_t kLocalLength = 30;
constexpr std::size_t kEntryLength = 46;
constexpr std::size_t kEndLength = 22;
constexpr std::size_t kEnd64Length = 56;
constexpr std::size_t kLocator64Length = 20;
constexpr std::size_t kMaxComment = 65535;
constexpr std::size_t kDirectoryPiece = std::size_t{256} << 10;
constexpr std::uint64_t kMaxDirectory = std::uint64_t{256} << 20;
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::uint32_t kElsewhere = 0xffffffff;  // the value is in the zip64 field

/// Extent of the directory, from the record at the end of the file.
struct End {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

Result<void> read_zip64_end(const ByteSource& source, std::uint64_t end_at, End& end) {
  if (end_at < kLocator64Length) return {};
  std::array<std::uint8_t, kLocator64Length> locator{};
  if (auto done = source.read(FileOffset{end_at - kLocator64Length}, locator); !done) return done;
  if (load_le<std::uint32_t>(locator.data()) != kLocator64Magic) return {};
  const auto at = load_le<std::uint64_t>(&locator[8]);
  if (at > source.size() || source.size() - at < kEnd64Length)
    return corrupt("zip: the zip64 end record lies past the file");
  std::array<std::uint8_t, kEnd64Length> record{};
  if (auto done = source.read(FileOffset{at}, record); !done) return done;
  if (load_le<std::uint32_t>(record.data()) != kEnd64Magic)
    return corrupt(fmt::format("zip: no zip64 end record at {}, where its locator points", at));
  end.entries = load_le<std::uint64_t>(&record[32]);
  end.size = load_le<std::uint64_t>(&record[40]);
  end.offset = load_le<std::uint64_t>(&record[48]);
  return {};
}

Result<std::optional<End>> read_end(const ByteSource& source) {
  const std::uint64_t length = std::min<std::uint64_t>(source.size(), kEndLength + kMaxComment);
  if (length < kEndLength) return std::optional<End>();
  std::vector<std::uint8_t> tail(static_cast<std::size_t>(length));
  const std::uint64_t begin = source.size() - length;
  if (auto done = source.read(FileOffset{begin}, tail); !done) return Failure(done.error());
  for (std::size_t at = tail.size() - kEndLength + 1; at-- > 0;) {
    if (load_le<std::uint32_t>(&tail[at]) != kEndMagic) continue;
    if (at + kEndLength + load_le<std::uint16_t>(&tail[at + 20]) != tail.size()) continue;
    End end{load_le<std::uint16_t>(&tail[at + 10]), load_le<std::uint32_t>(&tail[at + 12]),
            load_le<std::uint32_t>(&tail[at + 16])};
    if (auto done = read_zip64_end(source, begin + at, end); !done) return Failure(done.error());
    if (end.offset > source.size() || end.size > source.size() - end.offset || end.size > kMaxDirectory) {
      return corrupt(fmt::format("zip: the directory lies past the file or exceeds {} bytes", kMaxDirectory));
    }
    if (end.entries > end.size / kEntryLength) {
      return corrupt(fmt::format("zip: {} members do not fit into a directory of {} bytes", end.entries, end.size));
    }
    return std::optional<End>(end);
  }
  return std::optional<End>();
}

/// Replaces values of 0xffffffff by those of the zip64 extra field, which holds only these values, in this order.
/// Returns false if the field is truncated.
bool read_zip64_extra(ByteView extra, std::uint64_t& size, std::uint64_t& stored, std::uint64_t& header) {
  while (extra.size() >= 4) {
    const auto id = load_le<std::uint16_t>(extra.data());
    const std::size_t length = load_le<std::uint16_t>(&extra[2]);
    if (length > extra.size() - 4) return false;
    ByteView field = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (id != kZip64Extra) continue;
    for (std::uint64_t* value : {&size, &stored, &header}) {
      if (*value != kElsewhere) continue;
      if (field.size() < 8) return false;
      *value = load_le<std::uint64_t>(field.data());
      field = field.subspan(8);
    }
  }
  return true;
}

/// Reads the directory piece by piece.
class DirectoryReader {
 public:
  DirectoryReader(const ByteSource& source, const End& end) : source_(source), next_(end.offset), left_(end.size) {}

  /// Returns the next `size` bytes without consuming them; fewer at the end of the directory.
  Result<ByteView> peek(std::size_t size) {
    if (piece_.size() - at_ < size && left_ > 0) {
      if (auto more = load(size); !more) return Failure(more.error());
    }
    return ByteView(piece_).subspan(at_, std::min(size, piece_.size() - at_));
  }
  void skip(std::size_t size) { at_ += size; }

 private:
  Result<void> load(std::size_t size) {
    piece_.erase(piece_.begin(), piece_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    const std::size_t kept = piece_.size();
    const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(size, kDirectoryPiece), left_));
    piece_.resize(kept + more);
    if (auto done = source_.read(FileOffset{next_}, ByteSpan(piece_).subspan(kept)); !done) return done;
    next_ += more;
    left_ -= more;
    return {};
  }

  const ByteSource& source_;
  std::uint64_t next_;  // offset in the file of the next byte to load
  std::uint64_t left_;  // bytes of the directory that are not loaded yet
  std::vector<std::uint8_t> piece_;
  std::size_t at_ = 0;
};

/// Reads the next member of the directory.
Result<void> read_member(DirectoryReader& directory, ZipMember& member) {
  const auto fixed = directory.peek(kEntryLength);
  if (!fixed) return Failure(fixed.error());
  if (fixed->size() < kEntryLength || load_le<std::uint32_t>(fixed->data()) != kEntryMagic) {
    return corrupt("zip: an entry of the directory is truncated or has no signature");
  }
  const std::size_t name = load_le<std::uint16_t>(&(*fixed)[28]);
  const std::size_t extra = load_le<std::uint16_t>(&(*fixed)[30]);
  const std::size_t comment = load_le<std::uint16_t>(&(*fixed)[32]);
  const std::size_t length = kEntryLength + name + extra + comment;
  const auto whole = directory.peek(length);
  if (!whole) return Failure(whole.error());
  const ByteView entry = *whole;
  if (entry.size() < length) return corrupt("zip: the directory is truncated");
  member.encrypted = (entry[8] & 1) != 0;
  member.method = static_cast<ZipMethod>(load_le<std::uint16_t>(&entry[10]));
  member.checksum = load_le<std::uint32_t>(&entry[16]);
  member.stored = load_le<std::uint32_t>(&entry[20]);
  member.size = load_le<std::uint32_t>(&entry[24]);
  member.header = load_le<std::uint32_t>(&entry[42]);
  if (!read_zip64_extra(entry.subspan(kEntryLength + name, extra), member.size, member.stored, member.header)) {
    return corrupt("zip: a zip64 field is truncated");
  }
  const ByteView text = entry.subspan(kEntryLength, name);
  member.name.assign(text.begin(), text.end());
  directory.skip(length);
  return {};
}

}  // namespace

Result<bool> visit_zip_directory(const ByteSource& source,
                                 const std::function<Result<void>(ZipMember& member)>& visit) {
  const auto end = read_end(source);
  if (!end) return Failure(end.error());
  if (!*end) return false;
  DirectoryReader directory(source, **end);
  ZipMember member;
  for (std::uint64_t i = 0; i < (*end)->entries; ++i) {
    if (auto done = read_member(directory, member); !done) return Failure(done.error());
    if (auto done = visit(member); !done) return Failure(done.error());
  }
  return true;
}

Result<std::optional<ZipMember>> find_zip_member(const ByteSource& source, std::string_view name) {
  std::optional<ZipMember> found;
  const auto walked = visit_zip_directory(source, [&](ZipMember& member) -> Result<void> {
    if (member.name == name) found = member;
    return {};
  });
  if (!walked) return Failure(walked.error());
  return found;
}

Result<FileOffset> zip_member_begin(const ByteSource& source, const ZipMember& member) {
  if (member.encrypted) return codec::unsupported("zip: '" + member.name + "' is encrypted");
  if (member.method != ZipMethod::stored && member.method != ZipMethod::deflated) {
    return codec::unsupported(
        fmt::format("zip: '{}' is compressed by method {}, supported are 0 (stored) and 8 (deflated)", member.name,
                    static_cast<unsigned>(member.method)));
  }
  if (member.method == ZipMethod::stored && member.stored != member.size) {
    return corrupt(fmt::format("zip: '{}' is stored, but its size of {} bytes differs from its compressed size of {}",
                               member.name, member.size, member.stored));
  }
  std::array<std::uint8_t, kLocalLength> local{};
  if (member.header > source.size() || source.size() - member.header < kLocalLength) {
    return corrupt("zip: '" + member.name + "' lies past the file");
  }
  if (auto done = source.read(FileOffset{member.header}, local); !done) return Failure(done.error());
  if (load_le<std::uint32_t>(local.data()) != kLocalMagic) {
    return corrupt(fmt::format("zip: '{}' has no local header at {}", member.name, member.header));
  }
  if (load_le<std::uint16_t>(&local[8]) != static_cast<std::uint16_t>(member.method)) {
    return corrupt("zip: the compression method of '" + member.name + "' differs between directory and local header");
  }
  const std::uint64_t begin =
      member.header + kLocalLength + load_le<std::uint16_t>(&local[26]) + load_le<std::uint16_t>(&local[28]);
  if (begin > source.size() || member.stored > source.size() - begin) {
    return corrupt("zip: '" + member.name + "' reaches past the file");
  }
  return FileOffset{begin};
}

}  // namespace cframefs::frame
