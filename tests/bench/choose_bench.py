#!/usr/bin/env python3
"""Measures how near the size that `cframe pack` reaches by default is to that of the best settings.

    choose_bench.py --cframe PROGRAM [--size BYTES] [--only REGEX] [--codec NAME] [--clevel N] [--most RATIO] [--json FILE]

Method. Data of many kinds (choose_data.py) are packed by default and with 40 settings of the same codec and level: each of
5 typesizes, 4 pipelines of filters and 2 block sizes. The fifth typesize is the record or pixel of the kind. The table has
for each kind the default's size, the best size, their ratio, the setting that gave the best size, and what the default
chose. No time is measured, so that the machine may be busy. A last line compares the time of packing 100 MB with that of
packing them with the settings that the default chooses: the difference is the time of the trials.

Exit status: 0 every ratio is at most --most, 1 one is not, 77 there is no numpy.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
TYPESIZES = (1, 2, 4, 8)
FIFTH = {"records-24": 24, "records-19": 19, "image-rgb": 3, "c16-signal": 16}
FILTERS = ("none", "shuffle", "bitshuffle", "shuffle+bytedelta")
BLOCKS = ("256K", "1M")
TIMED = 100_000_000


class Packer:
    def __init__(self, cframe, directory, codec):
        self.cframe = cframe
        self.directory = directory
        self.codec = codec

    def pack(self, data, *options, workers=1):
        """The size of the frame, and what `cframe info` says of it."""
        with tempfile.NamedTemporaryFile(dir=self.directory, suffix=".b2frame") as frame:
            subprocess.run([self.cframe, "pack", "-f", f"--workers={workers}", *self.codec, *options, data, frame.name],
                           check=True, stdout=subprocess.DEVNULL)
            told = subprocess.run([self.cframe, "info", "--json", frame.name], check=True, capture_output=True)
            return os.path.getsize(frame.name), json.loads(told.stdout)


def block_of(info):
    """The longest block; that of the parameters if all chunks are stored uncompressed."""
    return max(info["found"].get("blocksizes", [info["blocksize"]]))


def settings(kind):
    for typesize, filters, block in itertools.product((*TYPESIZES, FIFTH.get(kind, 12)), FILTERS, BLOCKS):
        yield f"--typesize={typesize}", f"--filter={filters}", f"--blocksize={block}"


def measure(packer, pool, kind, data):
    usual = pool.submit(packer.pack, data)
    others = {options: pool.submit(packer.pack, data, *options) for options in settings(kind)}
    best, by = min((packed.result()[0], options) for options, packed in others.items())
    size, info = usual.result()
    chosen = f"{info['typesize']} {info['filters'] or 'none'} {block_of(info) >> 10}K"
    return {"kind": kind, "bytes": os.path.getsize(data), "default": size, "best": best, "ratio": size / best,
            "by": " ".join(option.split("=")[1] for option in by), "chosen": chosen}


def seconds_of(packer, data, *options):
    """The least of three runs, on all processors."""
    least = float("inf")
    for _ in range(3):
        begin = time.monotonic()
        packer.pack(data, *options, workers=os.cpu_count())
        least = min(least, time.monotonic() - begin)
    return least


def time_of_trials(packer, path, content):
    path.write_bytes((content * (TIMED // len(content) + 1))[:TIMED])
    info = packer.pack(path)[1]
    chosen = (f"--typesize={info['typesize']}", f"--filter={info['filters'] or 'none'}", f"--blocksize={block_of(info)}")
    return seconds_of(packer, path), seconds_of(packer, path, *chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cframe", required=True)
    parser.add_argument("--size", type=int, default=16_000_000, help="bytes of each kind")
    parser.add_argument("--only", default="", help="kinds that match this")
    parser.add_argument("--codec", default="zstd")
    parser.add_argument("--clevel", default="5")
    parser.add_argument("--most", type=float, default=1.03)
    parser.add_argument("--json")
    options = parser.parse_args()
    try:
        import choose_data
    except ImportError:
        print("needs python3-numpy")
        return SKIPPED
    rows = []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="cframefs-choose-", dir=memory) as name, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        directory = pathlib.Path(name)
        packer = Packer(options.cframe, directory, (f"--codec={options.codec}", f"--clevel={options.clevel}"))
        print(f"{'kind':16} {'default':>9} {'best of 40':>10} {'ratio':>6}  {'best':28} chosen")
        for kind in choose_data.KINDS:
            if not re.search(options.only, kind):
                continue
            data = directory / kind
            data.write_bytes(choose_data.make(kind, options.size, directory))
            row = measure(packer, pool, kind, data)
            rows.append(row)
            print(f"{kind:16} {row['default']:9} {row['best']:10} {row['ratio']:6.3f}  {row['by']:28} {row['chosen']}", flush=True)
            data.unlink()
        worst = max(rows, key=lambda row: row["ratio"])
        print(f"worst of {len(rows)}: {worst['kind']} {worst['ratio']:.3f}, most allowed {options.most}")
        if not options.only:
            usual, alone = time_of_trials(packer, directory / "timed", choose_data.make("f8-field", options.size, directory))
            print(f"100 MB: packed in {usual:.2f} s, with the chosen settings given in {alone:.2f} s")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if worst["ratio"] > options.most else 0


if __name__ == "__main__":
    sys.exit(main())
