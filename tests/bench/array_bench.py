"""How fast arrays read through a mount, beside a plain frame of the same bytes.

usage: array_bench.py CFRAMEFS FOLDER ARRAY PLAIN [REPEATS]

FOLDER holds the two files, ARRAY (a .b2nd) and PLAIN (a frame); names are those that the mount shows. Each is read once
from beginning to end after a fresh mount, in turn; the medians and their ratio are printed, and how many blocks of the
array were decoded. The files come from whatever writer is to be measured.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

STEP = 1 << 20


def read_once(program, folder, name):
    """Bytes a second, and the counters of the mount afterwards."""
    with tempfile.TemporaryDirectory() as mountpoint:
        command = [program, "-f", "-o", "stats=on", folder, mountpoint]
        with subprocess.Popen(command) as daemon:
            try:
                while not os.path.ismount(mountpoint):
                    if daemon.poll() is not None:
                        sys.exit(f"the mount ended with {daemon.returncode}")
                    time.sleep(0.01)
                with open(os.path.join(mountpoint, name), "rb", buffering=0) as file:
                    begin, length = time.monotonic(), 0
                    while step := file.read(STEP):
                        length += len(step)
                    seconds = time.monotonic() - begin
                with open(os.path.join(mountpoint, ".cframefs/stats.json"), encoding="utf-8") as file:
                    counters = json.load(file)
            finally:
                daemon.send_signal(signal.SIGTERM)
    return length / seconds, counters


def main():
    program, folder, array, plain = sys.argv[1:5]
    repeats = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    speeds = {array: [], plain: []}
    blocks = set()
    for _ in range(repeats):
        for name in (plain, array):
            speed, counters = read_once(program, folder, name)
            speeds[name].append(speed)
            if name == array:
                blocks.add(counters["blocks_decoded"])
    medians = {name: statistics.median(found) for name, found in speeds.items()}
    for name, speed in medians.items():
        print(f"{name}: {speed / 1e6:.0f} MB/s")
    print(f"ratio {medians[array] / medians[plain]:.2f}, blocks decoded {sorted(blocks)}")


if __name__ == "__main__":
    main()
