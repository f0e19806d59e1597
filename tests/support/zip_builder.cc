#include "tests/support/zip_builder.h"

#include <utility>

#include <nlohmann/json.hpp>
#include <zlib.h>

namespace cframefs::test {

namespace {

template <class T>
void put(Bytes& to, T value) {
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  codec::store_le(&to[at], value);
}

void put(Bytes& to, const std::string& text) {
  for (const char c : text)
    to.push_back(static_cast<std::uint8_t>(c));
}

struct Sizes {
  std::uint64_t plain = 0;
  std::uint64_t stored = 0;
  std::uint32_t checksum = 0;
};

void put_sizes(Bytes& to, const Sizes& sizes, bool elsewhere) {
  put(to, sizes.checksum);
  put(to, elsewhere ? 0xffffffffU : static_cast<std::uint32_t>(sizes.stored));
  put(to, elsewhere ? 0xffffffffU : static_cast<std::uint32_t>(sizes.plain));
}

/// The member's entry in the directory.
void put_entry(Bytes& directory, const ZipEntry& entry, const Sizes& sizes, std::uint64_t header) {
  put(directory, std::uint32_t{0x02014b50});
  for (const std::uint16_t field :
       {std::uint16_t{20}, std::uint16_t{20}, entry.flags, entry.method, std::uint16_t{0}, std::uint16_t{33}})
    put(directory, field);
  put_sizes(directory, sizes, entry.zip64);
  put(directory, static_cast<std::uint16_t>(entry.name.size()));
  put(directory, static_cast<std::uint16_t>(entry.zip64 ? 28 : 0));
  put(directory, std::uint16_t{0});
  put(directory, std::uint16_t{0});
  put(directory, std::uint16_t{0});
  put(directory, std::uint32_t{0});
  put(directory, entry.zip64 ? 0xffffffffU : static_cast<std::uint32_t>(header));
  put(directory, entry.name);
  if (entry.zip64) {
    put(directory, std::uint16_t{1});
    put(directory, std::uint16_t{24});
    put(directory, sizes.plain);
    put(directory, sizes.stored);
    put(directory, header);
  }
}

}  // namespace

Bytes deflated(const Bytes& plain, int level) {
  z_stream stream{};
  // Raw, with the largest window.
  deflateInit2(&stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, plain.size()));
  Bytes input = plain;  // zlib takes no const
  stream.next_in = input.data();
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

Bytes zip_file(const std::vector<ZipEntry>& entries, bool zip64, const std::string& comment) {
  Bytes file;
  Bytes directory;
  for (const ZipEntry& entry : entries) {
    const std::uint64_t header = file.size();
    const Bytes stored = entry.stored ? *entry.stored : entry.method == 8 ? deflated(entry.content) : entry.content;
    const auto truth =
        static_cast<std::uint32_t>(crc32(0, entry.content.data(), static_cast<uInt>(entry.content.size())));
    const Sizes sizes{entry.size.value_or(entry.content.size()), stored.size(), entry.checksum.value_or(truth)};
    put(file, std::uint32_t{0x04034b50});
    for (const std::uint16_t field :
         {std::uint16_t{20}, entry.flags, entry.method, std::uint16_t{0}, std::uint16_t{33}})
      put(file, field);
    put_sizes(file, sizes, false);
    put(file, static_cast<std::uint16_t>(entry.name.size()));
    put(file, static_cast<std::uint16_t>(entry.local_extra));
    put(file, entry.name);
    file.insert(file.end(), entry.local_extra, 0);
    file.insert(file.end(), stored.begin(), stored.end());

    put_entry(directory, entry, sizes, header);
  }
  const std::uint64_t begin = file.size();
  file.insert(file.end(), directory.begin(), directory.end());
  if (zip64) {
    const std::uint64_t end = file.size();
    put(file, std::uint32_t{0x06064b50});
    put(file, std::uint64_t{44});
    put(file, std::uint32_t{0x002d002d});
    put(file, std::uint64_t{0});
    put(file, std::uint64_t{entries.size()});
    put(file, std::uint64_t{entries.size()});
    put(file, std::uint64_t{directory.size()});
    put(file, begin);
    put(file, std::uint32_t{0x07064b50});
    put(file, std::uint32_t{0});
    put(file, end);
    put(file, std::uint32_t{1});
  }
  put(file, std::uint32_t{0x06054b50});
  put(file, std::uint32_t{0});
  const auto count = static_cast<std::uint16_t>(zip64 ? 0xffff : entries.size());
  put(file, count);
  put(file, count);
  put(file, zip64 ? 0xffffffffU : static_cast<std::uint32_t>(directory.size()));
  put(file, zip64 ? 0xffffffffU : static_cast<std::uint32_t>(begin));
  put(file, static_cast<std::uint16_t>(comment.size()));
  put(file, comment);
  return file;
}

Bytes embed_frame(const std::vector<std::pair<std::string, Bytes>>& frames, const std::string& kind) {
  Bytes plain = {'g', 'a', 'r', 'b', 'a', 'g', 'e'};  // what a deleted entry leaves
  nlohmann::json map = nlohmann::json::object();
  for (const auto& [key, frame] : frames) {
    map[key] = {{"offset", plain.size()}, {"length", frame.size()}};
    plain.insert(plain.end(), frame.begin(), frame.end());
  }
  map["/remote"] = {{"urlbase", "https://example.org"}, {"path", "@public/x.b2nd"}};
  const nlohmann::json layer = {{"embed_map", map}, {"current_offset", plain.size()}};
  FrameBuilder frame = plain_frame(plain, 1000);
  frame.metalayers.emplace_back(kind, nlohmann::json::to_msgpack({{"version", 1}}));
  frame.vlmetalayers.emplace_back("estore_metadata", plain_chunk(nlohmann::json::to_msgpack(layer)));
  return frame.build();
}

}  // namespace cframefs::test
