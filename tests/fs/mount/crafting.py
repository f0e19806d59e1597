"""Blosc2 chunks and contiguous frames made byte by byte, for files that no writer makes. Nothing but Python's own modules.

Formats: chunk.md and cframe.md of the project's format notes. A chunk's bytes may be given as a list of parts, (offset,
bytes), with nothing but a hole of the file between them.
"""

import os
import struct

HEADER_BYTES = 87  # of a frame, before the metalayers
CHUNK_HEADER = 32
MOST_PLAIN = 0x7FFFFFFF - 32  # plain bytes of a chunk
MOST_ENTRIES = MOST_PLAIN // 8  # chunks of a frame

ZEROS = -(0x7F << 56)
NAN = -(0x7E << 56)
UNINITIALISED = -(0x7C << 56)

BLOSCLZ, LZ4, ZLIB, ZSTD = 0, 1, 3, 4  # formats of streams


def entry(value):
    return struct.pack("<q", value)


def chunk_header(plain, block, stored, *, form=BLOSCLZ, typesize=1, flags=0, special=0, filters=bytes(6), last=0):
    """The 32 bytes of a Blosc2 chunk. `flags`: beside those that say that the header is of this length."""
    return struct.pack("<BBBBiii6sBB6sBB", 5, 1, 0x05 | flags | form << 5, typesize, plain, block, stored, filters, 0, 0,
                       bytes(6), last, special << 4)


def copied(plain, typesize=1):
    """A chunk that is its plain bytes."""
    return chunk_header(len(plain), max(len(plain), 1), CHUNK_HEADER + len(plain), typesize=typesize, flags=2) + plain


def repeated(plain_bytes, value, typesize=None):
    """A chunk that is one value over and over."""
    return chunk_header(plain_bytes, min(plain_bytes, 1 << 20), CHUNK_HEADER + len(value), special=3,
                        typesize=typesize or len(value)) + value


def zeros(plain_bytes):
    return chunk_header(plain_bytes, min(plain_bytes, 1 << 20), CHUNK_HEADER, special=1)


def run_stream(byte):
    """A stream that is one byte over and over, whatever its length."""
    return struct.pack("<i", -byte) + (b"\x01" if byte else b"")


def stream(coded):
    return struct.pack("<i", len(coded)) + coded


def blocks(plain_bytes, block_bytes, stored_blocks, *, form=BLOSCLZ, **more):
    """A chunk of blocks that are not split, each with its stored bytes (a stream)."""
    starts, at = [], CHUNK_HEADER + 4 * len(stored_blocks)
    for block in stored_blocks:
        starts.append(at)
        at += len(block)
    return (chunk_header(plain_bytes, block_bytes, at, form=form, flags=0x10, **more)
            + struct.pack(f"<{len(starts)}i", *starts) + b"".join(stored_blocks))


def metalayers(layers, base, short):
    """`base`: how far before the section offsets are counted from; `short`: what its length does not count."""
    head = 7 + sum(1 + len(name) + 5 for name, _ in layers)
    section = b"\x93\xcd" + struct.pack(">H", (head - short) & 0xFFFF) + b"\xde" + struct.pack(">H", len(layers))
    place = base + head + 3
    for name, content in layers:
        section += bytes([0xA0 + len(name)]) + name + b"\xd2" + struct.pack(">i", place)
        place += 5 + len(content)
    section += b"\xdc" + struct.pack(">H", len(layers))
    return section + b"".join(b"\xc6" + struct.pack(">I", len(content)) + content for _, content in layers)


def trailer(layers=()):
    body = b"\x94\x01" + metalayers(layers, 2, 1)
    return body + b"\xce" + struct.pack(">I", len(body) + 23) + b"\xd8" + bytes(17)


def header(frame_bytes, plain, section, chunk_bytes, *, typesize=1, layers=(), flags=0x12, kind=0, trailer_layers=False):
    """Of a frame: `section` are the bytes of its chunk section, `chunk_bytes` the plain bytes of a chunk."""
    layer_section = metalayers(layers, HEADER_BYTES, 0)
    fields = b"\x9e\xa8b2frame\0\xd2" + struct.pack(">i", HEADER_BYTES + len(layer_section))
    fields += b"\xcf" + struct.pack(">Q", frame_bytes) + bytes([0xA4, flags, kind, 0x51, 3])
    fields += b"\xd3" + struct.pack(">q", plain) + b"\xd3" + struct.pack(">q", section)
    fields += b"".join(b"\xd2" + struct.pack(">i", value) for value in (typesize, 0, chunk_bytes))
    fields += (b"\xd1" + struct.pack(">h", 1)) * 2 + (b"\xc3" if trailer_layers else b"\xc2")
    fields += b"\xd8\x06" + bytes([0, 0, 0, 0, 0, 1, 1, 0]) + bytes(8)
    assert len(fields) == HEADER_BYTES, len(fields)
    return fields + layer_section


def write_parts(path, parts, length):
    """A file of `length` bytes that holds [(offset, bytes)]; all else are holes."""
    with open(path, "wb") as file:
        for at, data in parts:
            file.seek(at)
            file.write(data)
        file.truncate(length)


def write_frame(path, section, plain, chunk_bytes, *, index, section_bytes=None, index_bytes=None, tail=None, **more):
    """A contiguous frame. `section` and `index`: bytes, or bytes at the beginning of holes of `section_bytes` and
    `index_bytes`."""
    section_bytes = len(section) if section_bytes is None else section_bytes
    index_bytes = len(index) if index_bytes is None else index_bytes
    tail = trailer() if tail is None else tail
    begin = len(header(0, 0, 0, chunk_bytes, **more))
    index_at = begin + section_bytes
    length = index_at + index_bytes + len(tail)
    write_parts(path, [(0, header(length, plain, section_bytes, chunk_bytes, **more) + section), (index_at, index),
                       (index_at + index_bytes, tail)], length)
    return os.path.basename(path)
