"""Small files that describe far more than they store: stores and metalayers, made byte for byte as the formats say.

make(directory, names) writes those of NAMES that are asked for, all if none are, and returns their paths. None stores more
than 50 MB, some have holes of gigabytes. What is inside those of LARGE is so much that walking through it takes its time,
as it does in any directory of thousands; looking at them does not.
"""

import os
import struct
import zlib

from mounting import visited

MIB = 1 << 20
ZEROS = -0x7F00000000000000  # an entry of the index: a chunk that is not stored
VERSION = b"\x81\xa7version\x01"


# ---- chunks and frames -------------------------------------------------------------------------------------------


def chunk_header(flags, nbytes, blocksize, cbytes, compcode=0, special=0):
    return struct.pack("<4B3i6xB8xB", 5, 1, flags, 1, nbytes, blocksize, cbytes, compcode, special << 4)


def plain_chunk(data):
    return chunk_header(7, len(data), max(len(data), 1), len(data) + 32) + data


def special_chunk(kind, nbytes, value=b""):
    """kind: 1 zeros, 3 a value that repeats."""
    return chunk_header(5, nbytes, min(nbytes, MIB), 32 + len(value), special=kind) + value


def run_chunk(byte, nbytes, blocksize):
    """Each block is a run of one byte, and stored in 5 bytes or in 4."""
    count = -(-nbytes // blocksize)
    block = struct.pack("<i", -byte) + (b"\x01" if byte else b"")
    begin = 32 + 4 * count
    starts = b"".join(struct.pack("<i", begin + number * len(block)) for number in range(count))
    return chunk_header(0x15 | 1 << 5, nbytes, blocksize, begin + count * len(block), 1) + starts + block * count


def zlib_chunk(blocks, blocksize, nbytes):
    """blocks: plain bytes; one that comes again is compressed once."""
    known = {}
    starts, body = [], []
    at = 32 + 4 * len(blocks)
    for plain in blocks:
        stored = known.setdefault(plain, zlib.compress(plain, 9))
        starts.append(struct.pack("<i", at))
        body.append(struct.pack("<i", len(stored)) + stored)
        at += 4 + len(stored)
    return chunk_header(0x15 | 3 << 5, nbytes, blocksize, at, 4) + b"".join(starts) + b"".join(body)


def packed_chunk(data, blocksize=MIB):
    return zlib_chunk([data[at : at + blocksize] for at in range(0, len(data), blocksize)], blocksize, len(data))


def layer_map(names, places, minus):
    """Names and the places of their contents, which the caller adds."""
    length = 7 + sum(6 + len(name) for name in names)
    entries = b"".join(bytes([0xA0 + len(name)]) + name + b"\xd2" + struct.pack(">i", place)
                       for name, place in zip(names, places))
    count = struct.pack(">H", len(names))
    return b"\x93\xcd" + struct.pack(">H", length - minus & 0xFFFF) + b"\xde" + count + entries + b"\xdc" + count


def layers(pairs, base, minus):
    """pairs: names and contents; a content that is None is that of the first."""
    names = [name for name, _ in pairs]
    at = base + 7 + sum(6 + len(name) for name in names) + 3
    places, body = [], []
    for _, content in pairs:
        places.append(at if content is not None else places[0])
        if content is not None:
            body.append(b"\xc6" + struct.pack(">I", len(content)) + content)
            at += len(body[-1])
    return layer_map(names, places, minus) + b"".join(body)


def trailer(pairs=()):
    head = b"\x94\x01" + layers(list(pairs), 2, 1)
    return head + b"\xce" + struct.pack(">I", len(head) + 23) + b"\xd8" + bytes(17)


def header(length, nbytes, cbytes, chunksize, pairs=(), header_length=None):
    fixed = layers(list(pairs), 87, 0)
    return (b"\x9e\xa8b2frame\0\xd2" + struct.pack(">i", header_length or 87 + len(fixed)) + b"\xcf"
            + struct.pack(">Q", length) + b"\xa4\x12\0\x55\x03\xd3" + struct.pack(">q", nbytes) + b"\xd3"
            + struct.pack(">q", cbytes) + b"".join(b"\xd2" + struct.pack(">i", value) for value in (1, 0, chunksize))
            + b"\xd1\0\1" * 2 + b"\xc3\xd8\x06" + bytes(6) + b"\x05" + bytes(9) + fixed)


def frame(chunks, nbytes, chunksize, fixed=(), variable=()):
    """chunks: stored ones, or entries of the index."""
    start = len(header(0, 0, 0, chunksize, fixed))
    section, entries = b"", []
    for stored in chunks:
        entries.append(stored if isinstance(stored, int) else len(section))
        section += b"" if isinstance(stored, int) else stored
    index = plain_chunk(struct.pack(f"<{len(entries)}q", *entries)) if nbytes else b""
    end = trailer(variable)
    length = start + len(section) + len(index) + len(end)
    return header(length, nbytes, len(section), chunksize, fixed) + section + index + end


# ---- stores ------------------------------------------------------------------------------------------------------


def text(value):
    if len(value) < 32:
        return bytes([0xA0 + len(value)]) + value
    return b"\xda" + struct.pack(">H", len(value)) + value


def embed_map(entries, more=b"", members=1):
    """entries: keys with their offset and length. more: other members of the outer map, which has `members`."""
    body = b"".join(text(key) + b"\x82\xa6offset\xcf" + struct.pack(">Q", offset) + b"\xa6length\xcf"
                    + struct.pack(">Q", length) for key, offset, length in entries)
    return bytes([0x80 + members]) + b"\xa9embed_map\xdf" + struct.pack(">I", len(entries)) + body + more


def embed(chunk_of_map, chunks=(), nbytes=0, chunksize=8192):
    return frame(list(chunks), nbytes, chunksize, [(b"b2embed", VERSION)], [(b"estore_metadata", chunk_of_map)])


def tree():
    return frame([], 0, 8192, [(b"b2tree", VERSION)])


def zip_entry(name, size, stored, method, at, checksum=0):
    extra = struct.pack("<HHQQ", 1, 16, size, stored) if size >= 0xFFFFFFFF else b""
    sizes = (0xFFFFFFFF, 0xFFFFFFFF) if extra else (stored, size)
    local = b"PK\3\4" + struct.pack("<5H3I2H", 45, 0, method, 0, 0, checksum, *sizes, len(name), len(extra)) + name + extra
    return local, b"PK\1\2" + struct.pack("<6H3I5H2I", 45, 45, 0, method, 0, 0, checksum, *sizes, len(name), len(extra),
                                          0, 0, 0, 0, at) + name + extra


def zip_end(count, length, at):
    long_end = struct.pack("<IQ2H2I4Q", 0x06064B50, 44, 45, 45, 0, 0, count, count, length, at)
    locator = struct.pack("<2IQI", 0x07064B50, 0, at + length, 1)
    return long_end + locator + b"PK\5\6" + struct.pack("<4H2IH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


def zip_file(members):
    """members: names with their content, stored, or with (size, deflated bytes)."""
    body, directory, at = [], [], 0
    for name, content in members:
        size, data, method = (len(content), content, 0) if isinstance(content, bytes) else (*content, 8)
        local, entry = zip_entry(name, size, len(data), method, at, zlib.crc32(content) if method == 0 else 0)
        body += [local, data]
        directory.append(entry)
        at += len(local) + len(data)
    listed = b"".join(directory)
    return b"".join(body) + listed + zip_end(len(members), len(listed), at)


def deflated_zeros(head, size):
    """A deflated stream of `head` and zeros, of whole MiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = packer.compress(head + bytes(MIB - len(head))) + packer.flush(zlib.Z_FULL_FLUSH)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    zeros = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return stream + zeros * (size // MIB - 1) + b"\x03\x00"


def long_path(number):
    return (b"%05d" % number + b"/a" * 2045)[:4089]


def deep_map(depth):
    return embed_map([], b"\xa1x" + b"\x91" * depth + b"\xc0", 2)


def two_ends(blocksize):
    """A frame of two blocks: its header begins the first, its trailer ends the second."""
    length = 2 * blocksize
    end = plain_chunk(struct.pack("<q", ZEROS)) + trailer()
    start = header(length, 100, length - len(header(0, 0, 0, 100)) - len(end), 100)
    return [start.ljust(blocksize, b"\0"), end.rjust(blocksize, b"\0")]


def slow_store(entries):
    size = 64 * MIB
    halves = [zlib_chunk([half], size, size) for half in two_ends(size)]
    keys = [(b"/%07d" % number, 0, 2 * size) for number in range(entries)]
    return embed(packed_chunk(embed_map(keys)), halves, 2 * size, size)


def spread_store(entries, blocksize):
    """Each entry lies across the end of one large block and the begin of the next one."""
    count = 120
    chunk = run_chunk(7, count * blocksize, blocksize)
    places = [(number % count + 1) * blocksize - 50 for number in range(entries)]
    keys = [(b"/%07d" % number, place, 100) for number, place in enumerate(places) if place + 100 <= count * blocksize]
    return embed(packed_chunk(embed_map(keys)), [chunk], count * blocksize, count * blocksize)


def array_frame(dtype):
    layer = (b"\x97\0\1\x91\xd3" + struct.pack(">q", 10) + (b"\x91\xd2" + struct.pack(">i", 10)) * 2 + b"\0\xdb"
             + struct.pack(">I", len(dtype)) + dtype)
    return frame([ZEROS], 10, 10, [(b"b2nd", layer)])


# ---- files with holes --------------------------------------------------------------------------------------------


def write_parts(path, parts):
    """parts: places with bytes; between them are holes."""
    with open(path, "wb") as file:
        for place, data in parts:
            file.seek(place)
            file.write(data)


def header_hole(path, fixed=()):
    length, end = 0x7FFFFF00, trailer()
    write_parts(path, [(0, header(length + len(end), 0, 0, 100, fixed, length)), (length, end)])


def long_fixed_layer(path, name):
    """One metalayer, which is a hole; it begins as the metalayer of an array does."""
    length, end = 0x7FFFFF00, trailer()
    start = bytearray(header(length + len(end), 0, 0, 100, [(name, b"\x97\0\1")], length))
    start[-7:-3] = struct.pack(">I", length - len(start) + 3)
    write_parts(path, [(0, bytes(start)), (length, end)])


def trailer_hole(path):
    """A trailer of 2 GB, and a variable-length metalayer in it whose chunk is the hole."""
    length = 0x7FFFFF00
    first = header(0, 0, 0, 100)
    content = length - 1000
    chunk = chunk_header(7, content - 32, MIB, content)
    head = b"\x94\x01" + layers([(b"hole", chunk)], 2, 1)
    head = head[: -len(chunk) - 4] + struct.pack(">I", content) + chunk
    end = b"\xce" + struct.pack(">I", length) + b"\xd8" + bytes(17)
    total = len(first) + length
    write_parts(path, [(0, header(total, 0, 0, 100) + head), (total - 23, end)])


# ---- the files ---------------------------------------------------------------------------------------------------


def shared(count, content, name=b"%05d"):
    return [(name % number, content if number == 0 else None) for number in range(count)]


def many_layers(count, chunk):
    return frame([plain_chunk(b"x" * 100)], 100, 100, (), shared(count, chunk))


def nested_types(depth):
    kind = b"'<i4'"
    for _ in range(depth):
        kind = b"[('a', " + kind + b")]"
    return kind


PLAIN = {
    # The directories of long paths, which are many times their bytes.
    "directories.b2z": lambda: zip_file([(long_path(n) + b".x", b"") for n in range(240)] + [(b"embed.b2e", tree())]),
    "directories.b2e": lambda: embed(packed_chunk(embed_map([(b"/" + long_path(n), 0, 0) for n in range(2400)]))),
    "more-directories.b2e": lambda: embed(packed_chunk(embed_map([(b"/" + long_path(n), 0, 0) for n in range(20000)]))),
    # Names that differ at their ends only.
    "prefixes.b2e": lambda: embed(packed_chunk(embed_map(
        [(b"/" + b"a/" * 2000 + b"%05d" % n, 0, 0) for n in reversed(range(2500))]))),
    # Entries that are named by what lies at their place.
    "slow.b2e": lambda: slow_store(2000),
    "spread.b2e": lambda: spread_store(50000, 16 * MIB),
    "wide.b2e": lambda: spread_store(500, 17 * MIB),
    "tiny.b2e": lambda: embed(packed_chunk(embed_map([(b"/%x" % n, 0, 0) for n in range(400000)]))),
    # Entries that hold the store itself, or its map, or one another.
    "pointing.b2e": lambda: embed(packed_chunk(embed_map([(b"/%d" % n, n, 8192 - n) for n in range(visited(8000))])),
                                  [plain_chunk(embed(packed_chunk(embed_map([(b"/a", 0, 8192)]))).ljust(8192, b"\0"))],
                                  8192),
    # msgpack
    "msgpack.b2e": lambda: embed(packed_chunk(embed_map([], b"\xa1x\xdd" + struct.pack(">I", 128 * MIB)
                                                        + b"\xc0" * (128 * MIB), 2))),
    "less-msgpack.b2e": lambda: embed(packed_chunk(embed_map([], b"\xa1x\xdd" + struct.pack(">I", 11 * MIB)
                                                             + b"\xc0" * (11 * MIB), 2))),
    "deep.b2e": lambda: embed(packed_chunk(deep_map(10 * MIB))),
    "long-text.b2e": lambda: embed(packed_chunk(embed_map([], b"\xa1x\xdb" + struct.pack(">I", 11 * MIB)
                                                          + b"y" * (11 * MIB), 2))),
    "counts.b2e": lambda: embed(plain_chunk(b"\x81\xa9embed_map\xdf\xff\xff\xff\xff")),
    # zip
    "plain.b2z": lambda: zip_entry(b"x", 0, 0, 0, 0)[1] * visited(1000000) + zip_end(visited(1000000), 47 * visited(1000000), 0),
    "counts.b2z": lambda: zip_entry(b"embed.b2e", 0, 0, 0, 0)[1] + zip_end(1 << 40, 55, 0),
    "overlapping.b2z": lambda: overlapping_zip(visited(15000)),
    "ends.b2z": lambda: b"PK\5\6" * 16400,
    "deflated.b2z": lambda: zip_file([(b"embed.b2e", (8 << 30, deflated_zeros(header(8 << 30, 100, 0, 100), 8 << 30)))]),
    "deflated-leaf.b2z": lambda: zip_file(
        [(b"a.b2nd", (8 << 30, deflated_zeros(header(8 << 30, 100, 0, 100, [(b"b2nd", b"")]), 8 << 30))),
         (b"embed.b2e", tree())]),
    "groups.b2z": lambda: zip_file([(b"g%06d/x.b2f" % n, frame([plain_chunk(b"x" * 40)], 40, 40)) for n in range(visited(20000))]
                                   + [(b"embed.b2e", tree())]),
    # Variable-length metalayers: many of one content, and long ones.
    "layers.b2frame": lambda: many_layers(8192, special_chunk(1, MIB)),
    "long-layers.b2frame": lambda: many_layers(8192, special_chunk(3, 256 * MIB, b"x")),
    "run-layers.b2frame": lambda: many_layers(8192, run_chunk(7, 256 * MIB, MIB)),
    "block-layer.b2frame": lambda: many_layers(1, run_chunk(7, 256 * MIB, 256 * MIB)),
    "nils.b2frame": lambda: many_layers(200, special_chunk(3, MIB, b"\xc0")),
    "values.b2frame": lambda: many_layers(1500, packed_chunk(b"\xdc\xff\xff" + b"\xc0" * 65535)),
    "overlap.b2frame": lambda: many_layers(8192, plain_chunk(bytes(MIB))),
    "vlmeta.b2frame": lambda: many_layers(1, run_chunk(7, 2000 * MIB, MIB)),
    "shared-meta.b2frame": lambda: frame([], 0, 100, shared(16, bytes(MIB))),
    # Descriptions of types.
    "dtype.b2nd": lambda: array_frame(b"[" + b"1," * (8 * MIB) + b"]"),
    "short-dtype.b2nd": lambda: array_frame(b"[" + b"1," * 120000 + b"]"),
    "nested-dtype.b2nd": lambda: array_frame(nested_types(20000)),
    "open-dtype.b2nd": lambda: array_frame(b"[" * 200000),
}

HOLES = {
    "header.b2frame": header_hole,
    "long-meta.b2frame": lambda path: long_fixed_layer(path, b"long"),
    "long-array.b2nd": lambda path: long_fixed_layer(path, b"b2nd"),
    "trailer.b2frame": trailer_hole,
}

NAMES = sorted(PLAIN) + sorted(HOLES)
LARGE = {"directories.b2z", "groups.b2z", "overlapping.b2z", "pointing.b2e", "slow.b2e", "spread.b2e"}


def overlapping_zip(count):
    """Members that all are the same bytes of the file."""
    start, _ = zip_entry(b"x.b2f", 1000, 1000, 0, 0)
    body = start + bytes(1000)
    own, last = zip_entry(b"embed.b2e", len(tree()), len(tree()), 0, len(body))
    body += own + tree()
    listed = b"".join(zip_entry(b"%06d.b2f" % n, 1000, 1000, 0, 0)[1] for n in range(count)) + last
    return body + listed + zip_end(count + 1, len(listed), len(body))


def make(directory, names=()):
    paths = []
    for name in names or NAMES:
        path = os.path.join(directory, name)
        if name in HOLES:
            HOLES[name](path)
        else:
            with open(path, "wb") as file:
                file.write(PLAIN[name]())
        paths.append(path)
    return paths


def make_stores(directory, count):
    """Small stores of all kinds, and zip files that are none."""
    leaf = frame([plain_chunk(b"x" * 40)], 40, 40)
    store = zip_file([(b"x.b2f", leaf), (b"embed.b2e", tree())])
    for number in range(count):
        kind = number % 4
        path = os.path.join(directory, f"{number:05}" + (".b2z", ".b2e", ".b2d", ".b2z")[kind])
        if kind == 2:
            os.mkdir(path)
            path += "/embed.b2e"
        with open(path, "wb") as file:
            file.write((store, tree(), tree(), zip_file([(b"x", leaf)]))[kind])
