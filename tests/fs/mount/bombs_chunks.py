"""Small files whose chunks, blocks and indexes claim much: what they cost must go by what is stored in them.

make(directory, names) writes those of NAMES that are asked for. bombs_stores.py is the same for stores and metalayers.
"""

import os
import random
import struct
import zlib

from crafting import (CHUNK_HEADER, LZ4, MOST_ENTRIES, MOST_PLAIN, NAN, UNINITIALISED, ZEROS, ZLIB, ZSTD, blocks,
                      chunk_header, copied, entry, header, repeated, run_stream, stream, trailer, write_frame, write_parts,
                      zeros)
from mounting import visited

MIB = 1 << 20
BYTE = copied(b"x")  # a stored chunk of one byte


# ---- indexes of as many chunks as there can be ----------------------------------------------------------------------


def uniform(path, value, section=b"", *, chunk_bytes=1, count=MOST_ENTRIES, short=0, **more):
    write_frame(path, section, count * chunk_bytes - short, chunk_bytes, index=repeated(8 * count, entry(value)), **more)


def periodic(path, values, section=b"", chunk_bytes=1, **more):
    """Entries that come again after some. The last period is whole."""
    count = MOST_ENTRIES // len(values) * len(values)
    value = b"".join(map(entry, values))
    write_frame(path, section, count * chunk_bytes, chunk_bytes, index=repeated(8 * count, value), **more)


def period_of_255(path):
    """A value of 255 bytes makes a period of 255 entries, each of them a chunk of zeros or none at all."""
    count = visited(MOST_ENTRIES) // 255 * 255
    value = (entry(ZEROS) * 32)[:255]
    write_frame(path, b"", count, 1, index=repeated(8 * count, value))


def index_of_runs(path):
    """Blocks of 4 MiB of the index, each of which is a run."""
    count = MOST_ENTRIES
    number = -(-8 * count // (4 * MIB))
    write_frame(path, BYTE, count, 1, index=blocks(8 * count, 4 * MIB, [run_stream(0)] * number))


def index_of_zlib(path, values, differ):
    """Blocks of 4 MiB of entries that alternate, a thousand times as large as they are stored. `differ`: no block is as
    the one before."""
    per_block = 4 * MIB // 8
    number = visited(32)
    plain = b"".join(map(entry, values)) * (per_block // len(values))
    stored = [stream(zlib.compress(plain[8 * i:] + plain[:8 * i], 9)) for i in range(2 if differ else 1)]
    index = blocks(number * 4 * MIB, 4 * MIB, [stored[i % len(stored)] for i in range(number)], form=ZLIB)
    write_frame(path, BYTE + BYTE, number * per_block, 1, index=index)


def index_in_a_hole(path):
    """A copied index of 512 MiB that is not stored: each entry is 0."""
    count = MOST_ENTRIES // 4
    start = chunk_header(8 * count, MIB, CHUNK_HEADER + 8 * count, flags=2, typesize=8)
    write_frame(path, BYTE, count, 1, index=start, index_bytes=CHUNK_HEADER + 8 * count)


def index_of_tiny_blocks_in_a_hole(path):
    """The starts of 268 million blocks, none of which is stored."""
    count = MOST_ENTRIES // 2
    length = CHUNK_HEADER + 4 * count + 100
    start = chunk_header(8 * count, 8, length, flags=0x10, form=LZ4)
    write_frame(path, BYTE, count, 1, index=start, index_bytes=length)


def different_sizes(path, value, count):
    """A frame whose chunks may differ in size, with one entry for all."""
    write_frame(path, BYTE, count, 0, index=repeated(8 * count, entry(value)), section_bytes=CHUNK_HEADER * count + 1)


def different_sizes_unknown(path):
    """A million chunks that are not stored, of which nothing tells how long they are; and one that claims too much."""
    count = MIB
    index = blocks(8 * count, 8 * count // 2, [stream(zlib.compress(entry(ZEROS) * (count // 2))),
                                               stream(zlib.compress(entry(0) + entry(ZEROS) * (count // 2 - 1)))],
                   form=ZLIB)
    write_frame(path, copied(bytes(100)), 10, 0, index=index)


# ---- chunks ---------------------------------------------------------------------------------------------------------


def one_chunk(path, chunk, plain, length=None):
    write_frame(path, chunk, plain, plain, index=copied(entry(0), 8), section_bytes=length)


def blocks_that_coincide(path):
    """Each block begins at the same place of a chunk of 1 GiB, which is a hole."""
    plain, block = 16 * MIB, 1 << 10
    count = plain // block
    at = CHUNK_HEADER + 4 * count
    chunk = chunk_header(plain, block, 1 << 30, form=LZ4, flags=0x10)
    chunk += struct.pack("<i", at) * count + run_stream(65)
    one_chunk(path, chunk, plain, 1 << 30)


def blocks_far_apart(path):
    """Blocks of 16 bytes that begin by turns at either end of the chunk, so that none can be fetched with its neighbour."""
    plain, block = 4 * MIB, 16
    count = plain // block
    begin = CHUNK_HEADER + 4 * count
    length = begin + MIB
    starts = [begin + (i % 2) * (900 << 10) + i // 2 for i in range(count)]
    body = run_stream(0) * (MIB // 4)
    chunk = chunk_header(plain, block, length, form=LZ4, flags=0x10) + struct.pack(f"<{count}i", *starts) + body
    one_chunk(path, chunk, plain)


def dense_blocks(path):
    """A million blocks of 16 bytes that all begin at the same byte, and 8 MiB behind it."""
    plain, block = 16 * MIB, 16
    count = plain // block
    at = CHUNK_HEADER + 4 * count
    body = run_stream(65) + random.Random(1).randbytes(8 * MIB)
    chunk = chunk_header(plain, block, at + len(body), form=LZ4, flags=0x10)
    one_chunk(path, chunk + struct.pack("<i", at) * count + body, plain)


def starts_in_a_hole(path):
    """A chunk of 2 GiB that holds nothing but the starts of its blocks, which are a hole."""
    plain = 1 << 30
    length = CHUNK_HEADER + plain + 100
    one_chunk(path, chunk_header(plain, 4, length, form=LZ4, flags=0x10), plain, length)


def blocks_of_any_length_in_a_hole(path):
    """A chunk of 2 GiB of one block of variable length, all of which but the beginning is a hole."""
    length = MOST_PLAIN
    chunk = chunk_header(1000, 1, length, form=LZ4, flags=0x10, last=1)
    chunk += struct.pack("<ii", CHUNK_HEADER + 4, 1000)
    one_chunk(path, chunk, 1000, length)


def overlapping_chunks(path):
    """Chunks of 1 MiB that begin every 64 bytes, each with a run of its own and a way to the end of the section."""
    count = 4096
    section = bytearray()
    for _ in range(count):
        section += blocks(MIB, MIB, [run_stream(65)], form=LZ4) + bytes(64 - CHUNK_HEADER - 9)
    index = copied(b"".join(entry(64 * i) for i in range(count)), 8)
    write_frame(path, bytes(section), count * MIB, MIB, index=index)


# ---- frames that have to be searched --------------------------------------------------------------------------------


def damaged(path, body, chunk_bytes):
    """A header that leads nowhere, before what looks like chunks."""
    write_parts(path, [(0, header(10, 100, 5, chunk_bytes) + body)], header_and(body))


def header_and(body):
    return len(header(0, 0, 0, 1)) + len(body)


def headers_by_turns(path):
    """1 MB of headers of chunks of 512 MiB and of small ones, each chunk made of what looks like others."""
    large = chunk_header(536866816, 536866816, 40000, form=ZSTD, flags=0x10) + struct.pack("<ii", 36, 20000)
    small = chunk_header(1000, 1000, 40000, form=ZSTD, flags=0x10) + struct.pack("<ii", 36, 30)
    damaged(path, (large + small) * 13000 + bytes(40000), 536866816)


def headers_that_nearly_decode(path):
    """Chunks of 16 MiB that overlap, whose last block alone is none."""
    count = 2000
    body = bytearray()
    block = MIB
    for _ in range(count):
        starts = struct.pack("<16i", *[CHUNK_HEADER + 64] * 15, CHUNK_HEADER + 69)
        body += chunk_header(16 * MIB, block, 4096, form=LZ4, flags=0x10) + starts + run_stream(7) + stream(b"\xff" * 9)
    damaged(path, bytes(body) + bytes(4096), 16 * MIB)


def copies_within_copies(path):
    """Copied chunks of 512 KiB that begin every 32 bytes, but for their length."""
    body = chunk_header(1 << 19, 1 << 19, CHUNK_HEADER + (1 << 19), flags=2, typesize=2) * (1 << 15)
    damaged(path, body, 1 << 19)


def indexes_within_indexes(path):
    """Beside one chunk many that look like indexes of millions of chunks, and are none."""
    body = BYTE
    for i in range(4000):
        plain = 4 * MIB
        body += blocks(plain, plain, [stream(zlib.compress(entry(0) * 64 + entry(i + 1)))], form=ZLIB, typesize=8)
        body += repeated(4 * MIB, entry(i + 5))
    damaged(path, body, 1)


def cut_off(path):
    """A frame of zeros with 268 million chunks, of which the trailer is lost."""
    uniform(path, ZEROS)
    os.truncate(path, os.path.getsize(path) - len(trailer()) + 3)


BOMBS = {
    "zeros.b2frame": lambda path: uniform(path, ZEROS),
    "zeros-and-a-short-one.b2frame": lambda path: uniform(path, ZEROS, chunk_bytes=8, short=4),
    "uninitialised.b2frame": lambda path: uniform(path, UNINITIALISED),
    "nan.b2frame": lambda path: uniform(path, NAN, chunk_bytes=8, typesize=8),
    "same-chunk.b2frame": lambda path: uniform(path, 0, BYTE),
    "same-damaged-chunk.b2frame": lambda path: uniform(path, 0, BYTE[:12] + bytes(21)),
    "no-kind.b2frame": lambda path: uniform(path, -5),
    "outside.b2frame": lambda path: uniform(path, 1 << 40, BYTE),
    "two-values.b2frame": lambda path: periodic(path, [ZEROS, UNINITIALISED]),
    "two-chunks.b2frame": lambda path: periodic(path, [0, len(BYTE)], BYTE + BYTE),
    "mixed.b2frame": lambda path: periodic(path, [0, ZEROS, -5], BYTE),
    "period-255.b2frame": period_of_255,
    "run-index.b2frame": index_of_runs,
    "zlib-index.b2frame": lambda path: index_of_zlib(path, [ZEROS, UNINITIALISED], False),
    "zlib-index-2.b2frame": lambda path: index_of_zlib(path, [0, len(BYTE)], True),
    "hole-index.b2frame": index_in_a_hole,
    "tiny-hole-index.b2frame": index_of_tiny_blocks_in_a_hole,
    "sizes.b2frame": lambda path: different_sizes(path, 0, MOST_ENTRIES),
    "sizes-not-stored.b2frame": lambda path: different_sizes(path, ZEROS, MOST_ENTRIES),
    "sizes-unknown.b2frame": different_sizes_unknown,
    "huge-empty.b2frame": lambda path: write_frame(path, b"", 0, MOST_PLAIN, index=b""),
    "huge-zeros.b2frame": lambda path: uniform(path, ZEROS, chunk_bytes=MOST_PLAIN, count=1000),
    "starts.b2frame": blocks_that_coincide,
    "far-apart.b2frame": blocks_far_apart,
    "dense.b2frame": dense_blocks,
    "hole-starts.b2frame": starts_in_a_hole,
    "hole-blocks.b2frame": blocks_of_any_length_in_a_hole,
    "overlapping.b2frame": overlapping_chunks,
    "search-headers.b2frame": headers_by_turns,
    "search-nearly.b2frame": headers_that_nearly_decode,
    "search-copies.b2frame": copies_within_copies,
    "search-indexes.b2frame": indexes_within_indexes,
    "search-cut-off.b2frame": cut_off,
    "bare.blosc": lambda path: write_parts(path, [(0, zeros(MOST_PLAIN))], CHUNK_HEADER),
}
NAMES = tuple(BOMBS)


def make(directory, names=NAMES):
    """Writes the files; their paths."""
    paths = [os.path.join(directory, name) for name in names]
    for name, path in zip(names, paths):
        BOMBS[name](path)
    return paths
