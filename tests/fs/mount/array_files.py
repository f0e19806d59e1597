"""Files of n-d arrays, by a writer that follows the format item by item and shares no code with the program."""

import io
import itertools
import struct

try:
    import numpy
except ImportError:
    numpy = None


def chunk(plain, kind):
    """A plain copy without blocks."""
    return struct.pack("<BBBBiii", 5, 1, 0x07, 1, len(plain), max(len(plain), 1), len(plain) + 32) + bytes(16) + plain


def raw_blocks(plain, blocksize):
    """Blocks that are stored raw, and decoded one by one."""
    count = len(plain) // blocksize
    begin = 32 + 4 * count
    starts = [begin + i * (blocksize + 4) for i in range(count)]
    blocks = b"".join(struct.pack("<i", blocksize) + plain[i * blocksize : (i + 1) * blocksize] for i in range(count))
    head = struct.pack("<BBBBiii", 5, 1, 0x15, 1, len(plain), blocksize, begin + len(blocks)) + bytes(16)
    return head + struct.pack(f"<{count}i", *starts) + blocks


def layer(shape, chunks, blocks, dtype):
    listed = bytes([0x90 + len(shape)])
    content = bytes([0x97, 0, len(shape)]) + listed + b"".join(b"\xd3" + struct.pack(">q", n) for n in shape)
    for extents in (chunks, blocks):
        content += listed + b"".join(b"\xd2" + struct.pack(">i", n) for n in extents)
    text = dtype.encode()
    return content + b"\0\xdb" + struct.pack(">I", len(text)) + text


def frame(typesize, blocksize, chunksize, stored, content):
    """A frame of these chunks with the metalayer b2nd."""
    section = b"".join(stored)
    places, at = [], 0
    for one in stored:
        places.append(at)
        at += len(one)
    index = chunk(struct.pack(f"<{len(places)}q", *places), 0) if places else b""
    name = b"b2nd"
    map_length = 7 + 1 + len(name) + 5
    base = 87
    meta = b"\x93\xcd" + struct.pack(">H", map_length) + b"\xde" + struct.pack(">H", 1)
    meta += bytes([0xA0 + len(name)]) + name + b"\xd2" + struct.pack(">i", base + map_length + 3)
    meta += b"\xdc" + struct.pack(">H", 1) + b"\xc6" + struct.pack(">I", len(content)) + content
    header_length = base + len(meta)
    vlmeta = b"\x93\xcd\x00\x07\xde\x00\x00\xdc\x00\x00"
    trailer = b"\x94\x01" + vlmeta
    trailer += b"\xce" + struct.pack(">I", len(trailer) + 23) + b"\xd8\0" + bytes(16)
    total = header_length + len(section) + len(index) + len(trailer)
    head = b"\x9e\xa8b2frame\0\xd2" + struct.pack(">i", header_length) + b"\xcf" + struct.pack(">Q", total)
    head += b"\xa4\x12\x00\x51\x03\xd3" + struct.pack(">q", chunksize * len(stored))
    head += b"\xd3" + struct.pack(">q", len(section))
    for value in (typesize, blocksize, chunksize):
        head += b"\xd2" + struct.pack(">i", value)
    head += b"\xd1\x00\x01\xd1\x00\x01\xc2"
    head += b"\xd8\x06" + bytes(16)
    assert len(head) == base, len(head)
    return head + meta + section + index + trailer


def b2nd(array, chunks, blocks, text):
    """The file of an array, chunk by chunk and block by block; every other chunk is a plain copy."""
    shape = array.shape
    # As opaque items: NumPy copies records field by field and leaves out what lies between.
    array = numpy.frombuffer(array.tobytes(), f"V{array.dtype.itemsize}").reshape(shape)
    grid = [range(-(-n // c)) for n, c in zip(shape, chunks)]
    tiles = [range(-(-c // b)) for c, b in zip(chunks, blocks)]
    block_items = 1
    for b in blocks:
        block_items *= b
    blocksize = block_items * array.dtype.itemsize
    chunksize = blocksize
    for tile in tiles:
        chunksize *= len(tile)
    stored = []
    for place in itertools.product(*grid) if array.size else []:
        plain = b""
        for tile in itertools.product(*tiles):
            block = numpy.frombuffer(b"\xcc" * blocksize, array.dtype).reshape(blocks).copy()
            begin = [p * c + t * b for p, c, t, b in zip(place, chunks, tile, blocks)]
            end = [
                min(s + b, p * c + c, n) for s, b, p, c, n in zip(begin, blocks, place, chunks, shape)
            ]
            if all(e > s for s, e in zip(begin, end)):
                inside = tuple(slice(0, e - s) for s, e in zip(begin, end))
                block[inside] = array[tuple(slice(s, e) for s, e in zip(begin, end))]
            plain += block.tobytes()
        stored.append(chunk(plain, 0) if len(stored) % 2 else raw_blocks(plain, blocksize))
    return frame(array.dtype.itemsize, blocksize, chunksize, stored, layer(shape, chunks, blocks, text))


def filled(shape, dtype, rng):
    count = 1
    for n in shape:
        count *= n
    dtype = numpy.dtype(dtype)
    if dtype.kind == "b":
        data = bytes(rng.randrange(2) for _ in range(count))
    elif dtype.kind == "U":
        data = b"".join(struct.pack("<I", rng.choice(b"abcxyz")) for _ in range(count * dtype.itemsize // 4))
    else:
        data = rng.randbytes(count * dtype.itemsize)
    return numpy.frombuffer(data, dtype).reshape(shape)


def saved(array):
    """The .npy file that NumPy itself writes."""
    out = io.BytesIO()
    numpy.save(out, array)
    return out.getvalue()
