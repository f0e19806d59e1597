"""Programs that read a file, as the benchmarks measure them: one or many at once."""

import os
import threading
import time

from bench_servers import BenchError

MIB = 1 << 20
MOST_SECONDS = 15  # of one measurement; slower subjects count by what they have done until then


def read_in_order(path):
    """Bytes of plain content a second."""
    begin, done = time.monotonic(), 0
    with open(path, "rb", buffering=0) as file:
        while time.monotonic() < begin + MOST_SECONDS:
            piece = file.read(MIB)
            if not piece:
                break
            done += len(piece)
    return done / (time.monotonic() - begin)


def run_threads(work, count):
    """Calls work(number) in `count` threads. Returns the seconds until all are done."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - begin


def read_at_random(path, readers, places):
    """Reads a second of `readers` threads that share the places."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    failures, done = [], []

    def read(first):
        for place in places[first::readers]:
            if time.monotonic() > begin + MOST_SECONDS:
                return
            try:
                if len(os.pread(descriptor, 4096, place)) != 4096:
                    failures.append("a short read")
            except OSError as error:
                failures.append(str(error))
            done.append(place)

    begin = time.monotonic()
    took = run_threads(read, readers)
    os.close(descriptor)
    if failures:
        raise BenchError(failures[0])
    return len(done) / took


def read_in_parts(path, readers, size):
    """Readers that each read their part of a file of `size` bytes in order. Returns bytes a second."""
    part = size // readers

    def read(number):
        with open(path, "rb", buffering=0) as file:
            file.seek(number * part)
            for _ in range(part // MIB):
                file.read(MIB)

    return size / run_threads(read, readers)
