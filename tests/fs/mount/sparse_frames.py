"""Sparse frames for tests, made byte for byte as the format says: the directory's index file, and a file for each chunk.

Chunks are stored as they are (level 0), so all of one length have files of one length: a reader that takes one chunk for
another does not see it by the length.
"""

import os
import struct


def chunk(plain, typesize=1):
    """A chunk whose payload is the plain bytes."""
    return struct.pack("<4B3i16x", 5, 1, 7, typesize, len(plain), max(len(plain), 1), len(plain) + 32) + plain


def metalayers():
    return b"\x93\xcd\x00\x07\xde\x00\x00\xdc\x00\x00"


def trailer():
    # The map's size field counts one byte less here than in the header.
    head = b"\x94\x01" + b"\x93\xcd\x00\x06\xde\x00\x00\xdc\x00\x00"
    return head + b"\xce" + struct.pack(">I", len(head) + 23) + b"\xd8\x00" + bytes(16)


def header(frame_length, size, stored, chunksize):
    layers = metalayers()
    return (b"\x9e\xa8b2frame\x00\xd2" + struct.pack(">i", 87 + len(layers)) + b"\xcf" + struct.pack(">Q", frame_length)
            + b"\xa4\x12\x01\x05\x03"  # sparse; zstd, level 0
            + b"\xd3" + struct.pack(">q", size) + b"\xd3" + struct.pack(">q", stored)
            + b"".join(b"\xd2" + struct.pack(">i", value) for value in (1, 0, chunksize))
            + b"\xd1\x00\x01" * 2 + b"\xc2" + b"\xd8\x06" + bytes(5) + b"\x01\x01" + bytes(9) + layers)


def make_sparse_frame(directory, content, chunksize):
    os.mkdir(directory)
    stored = count = 0
    for begin in range(0, len(content), chunksize):
        data = chunk(content[begin : begin + chunksize])
        with open(f"{directory}/{count:08X}.chunk", "wb") as file:
            file.write(data)
        stored += len(data)
        count += 1
    index = chunk(struct.pack(f"<{count}q", *range(count)), 8)
    length = 87 + len(metalayers()) + len(index) + len(trailer())
    with open(directory + "/chunks.b2frame", "wb") as file:
        file.write(header(length, len(content), stored, chunksize) + index + trailer())
