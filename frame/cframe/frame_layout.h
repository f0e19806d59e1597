// Offsets and markers of a frame's fields, for the parsers and the encoders.
//
// A frame is: header | chunk section | index chunk | gap | trailer. Header and trailer are msgpack of fixed shape, so
// fields have fixed offsets. An offset is the distance in bytes from the first byte of the header (or of the trailer,
// where stated) to the *value*; the byte before a number is its msgpack marker. Integers are big endian.
//
// Thread safety: constants only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cframefs::frame::layout {

// msgpack markers.
inline constexpr std::uint8_t kFixArray = 0x90;  // low four bits: length
inline constexpr std::uint8_t kFixArray3 = 0x93;
inline constexpr std::uint8_t kFixArray4 = 0x94;
inline constexpr std::uint8_t kFixArray14 = 0x9e;
inline constexpr std::uint8_t kFixString = 0xa0;  // low five bits: length
inline constexpr std::uint8_t kFixString4 = 0xa4;
inline constexpr std::uint8_t kFalse = 0xc2;
inline constexpr std::uint8_t kTrue = 0xc3;
inline constexpr std::uint8_t kBin32 = 0xc6;
inline constexpr std::uint8_t kUint16 = 0xcd;
inline constexpr std::uint8_t kUint32 = 0xce;
inline constexpr std::uint8_t kUint64 = 0xcf;
inline constexpr std::uint8_t kInt16 = 0xd1;
inline constexpr std::uint8_t kInt32 = 0xd2;
inline constexpr std::uint8_t kInt64 = 0xd3;
inline constexpr std::uint8_t kFixExt16 = 0xd8;
inline constexpr std::uint8_t kString32 = 0xdb;
inline constexpr std::uint8_t kArray16 = 0xdc;
inline constexpr std::uint8_t kMap16 = 0xde;

// Header, fixed part.
inline constexpr std::size_t kFixedHeaderLength = 87;
inline constexpr std::size_t kMinHeaderLength = 97;  // with an empty metalayer section
inline constexpr std::size_t kArrayMarkerAt = 0x00;  // fixarray, low nibble: number of fields
inline constexpr std::size_t kMagicAt = 0x01;
inline constexpr std::array<std::uint8_t, 9> kMagic = {0xa8, 'b', '2', 'f', 'r', 'a', 'm', 'e', 0};
inline constexpr std::size_t kHeaderLengthAt = 0x0b;   // i32
inline constexpr std::size_t kFrameLengthAt = 0x10;    // u64
inline constexpr std::size_t kFlagsMarkerAt = 0x18;    // fixstr 4
inline constexpr std::size_t kGeneralFlagsAt = 0x19;   // u8
inline constexpr std::size_t kFrameTypeAt = 0x1a;      // u8
inline constexpr std::size_t kCodecAt = 0x1b;          // u8, low nibble compressor code, high nibble level
inline constexpr std::size_t kSplitModeAt = 0x1c;      // u8, low two bits: mode - 1
inline constexpr std::size_t kNbytesAt = 0x1e;         // i64
inline constexpr std::size_t kCbytesAt = 0x27;         // i64
inline constexpr std::size_t kTypesizeAt = 0x30;       // i32
inline constexpr std::size_t kBlocksizeAt = 0x35;      // i32
inline constexpr std::size_t kChunksizeAt = 0x3a;      // i32
inline constexpr std::size_t kEncodeThreadsAt = 0x3f;  // i16
inline constexpr std::size_t kDecodeThreadsAt = 0x42;  // i16
inline constexpr std::size_t kHasVlmetaAt = 0x44;      // bool marker, ignored by readers
inline constexpr std::size_t kFilterMarkerAt = 0x45;   // fixext 16, then its type: the number of filters
inline constexpr std::size_t kFiltersAt = 0x47;        // six ids
inline constexpr std::size_t kCompcodeAt = 0x4d;       // u8
inline constexpr std::size_t kCompcodeMetaAt = 0x4e;   // u8
inline constexpr std::size_t kFiltersMetaAt = 0x4f;    // six bytes
inline constexpr std::size_t kOtherFlagsAt = 0x55;     // u8, bit 0: dictionaries in use

// General flags.
inline constexpr std::uint8_t kVersionMask = 0x0f;
inline constexpr std::uint8_t kOffsetWidthMask = 0x30;
inline constexpr std::uint8_t kOffsetWidth64 = 0x10;
inline constexpr std::uint8_t kVariableChunksFlag = 0x40;
inline constexpr std::uint8_t kVlBlocksFlag = 0x80;
inline constexpr int kFirstFrameVersion = 2;
inline constexpr int kLastFrameVersion = 3;

// Frame types.
inline constexpr std::uint8_t kContiguous = 0;
inline constexpr std::uint8_t kSparse = 1;

// Value of the codec nibble that means "see kCompcodeAt".
inline constexpr std::uint8_t kCodecElsewhere = 6;

// A map of metalayers, in the header and in the trailer: 93 | CD u16 size | DE u16 n | n × (A0+len name, D2 i32 offset)
// | DC u16 n | n × (C6 u32 length, content). These offsets count from the map's first byte.
inline constexpr std::size_t kMapCountMarkerAt = 4;
inline constexpr std::size_t kMapCountAt = 5;
inline constexpr std::size_t kMapEntriesAt = 7;
inline constexpr std::size_t kMaxNameLength = 31;
inline constexpr std::size_t kMinMapEntry = 1 + 5;
inline constexpr std::size_t kMaxMapEntry = kMinMapEntry + kMaxNameLength;
inline constexpr std::size_t kContentPrefix = 5;  // 0xc6 and the u32 length
inline constexpr std::size_t kMaxMetalayers = 16;
inline constexpr std::size_t kMaxVlmetalayers = 8192;

// Offset of the header's map. Its content offsets count from the header's first byte.
inline constexpr std::size_t kMetalayersAt = kFixedHeaderLength;

// Trailer. The map begins at offset 2; its content offsets count from the trailer's first byte. The last 23 bytes are:
// CE u32 trailer length | D8 kind | 16 bytes of fingerprint.
inline constexpr std::size_t kTrailerMapAt = 2;
inline constexpr std::size_t kTrailerEnd = 23;
inline constexpr std::size_t kMinTrailerLength = 35;

// Index entries of special chunks, which are not stored: byte 7 (the most significant) is 0x80 | id, the others are 0.
inline constexpr std::int64_t special_entry(std::uint64_t id) {
  return static_cast<std::int64_t>((std::uint64_t{0x80} | id) << 56);
}
inline constexpr std::int64_t kZerosEntry = special_entry(1);
inline constexpr std::int64_t kNanEntry = special_entry(2);
inline constexpr std::int64_t kUninitialisedEntry = special_entry(4);

}  // namespace cframefs::frame::layout
