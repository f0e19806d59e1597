"""What must be reached: the rows that a run of the suite is judged by."""

from bench_report import Demand
from bench_sections import (CACHE_SIZES_MIB, CAT, FIRST_BYTE, FLOOR, IN_PROCESS, INDEX_MEMORY, LZ4, MEMORY_READERS,
                            OUR_DIRECTORY, OUR_DIRECTORY_CACHED, PLAIN_DIRECTORY, REFERENCE_ZLIB, STAT_WARM, TOGETHER, WARM,
                            WARM_REQUESTS, ZLIB, ZSTD, chunks_label, memory_label, memory_metric, random_metric,
                            readers_label)

SMALL, LARGE = chunks_label("1,000"), chunks_label("1,000,000")
CODECS = {LZ4: "lz4", ZSTD: "zstd"}


def peers(kind: str, codec: str, metric: str) -> tuple:
    """Every subject of one kind ("squashfuse_ll" or "kernel") with the same codec. erofs of Debian 12 has no zstd."""
    squashfs = "squashfuse_ll" if kind == "squashfuse_ll" else "kernel squashfs"
    found = [(f"{squashfs} {codec} {block}", metric) for block in ("1M", "128K")]
    if kind == "kernel" and codec == "lz4":
        found.append(("kernel erofs lz4 64K", metric))
    return tuple(found)


def against_all(what: str, label: str, codec: str, metric: str, bound: float, kinds: tuple[str, ...]) -> Demand:
    places = tuple(place for kind in kinds for place in peers(kind, codec, metric))
    return Demand(f"{what}, {codec}: best {' or '.join(kinds)}", (label, metric), places[0], bound, peers=places[1:])


def sequential_demands() -> list[Demand]:
    demands = []
    for (label, codec), of_floor, of_fuse in zip(CODECS.items(), (0.90, 0.65), (2.3, 2.5)):
        demands += [
            Demand(f"cold cat, {codec}: in-memory server", (label, CAT), (FLOOR, CAT), of_floor),
            against_all("cold cat", label, codec, CAT, of_fuse, ("squashfuse_ll",)),
            against_all("cold cat", label, codec, CAT, 2.0, ("kernel",)),
        ]
    return demands + [
        Demand("cold cat, zlib: reference library in process", (ZLIB, CAT), (REFERENCE_ZLIB, IN_PROCESS), 1.5),
        Demand("warm, lz4: in-memory server", (LZ4, WARM), (FLOOR, WARM), 0.95),
        Demand("warm, zstd: in-memory server", (ZSTD, WARM), (FLOOR, WARM), 0.95),
        # Open, attributes and release may reach the daemon; reading 1 GiB would be a thousand requests and more.
        Demand("warm, lz4: requests to the daemon", (LZ4, WARM_REQUESTS), None, 8, False, ""),
    ]


def random_demands() -> list[Demand]:
    demands = []
    for jobs, bound in ((1, 2.0), (4, 1.5)):
        metric = random_metric("4K", jobs)
        demands += [against_all(f"random 4K, {jobs} job{'s' * (jobs > 1)}", label, codec, metric, bound,
                                ("squashfuse_ll", "kernel")) for label, codec in CODECS.items()]
    metric = random_metric("4K", 1)
    return demands + [Demand("random 4K, 1 job, lz4: in-memory server", (LZ4, metric), (FLOOR, metric), 0.6)]


def other_demands() -> list[Demand]:
    def reading(server: str, count: int) -> tuple[str, str]:
        return readers_label(server, count), TOGETHER

    return [
        Demand("2 readers of 2 files: 1 reader", reading(LZ4, 2), reading(LZ4, 1), 1.8,
               instead=(reading(FLOOR, 2), 0.9)),
        Demand("64 readers of 64 files: the same on the in-memory server", reading(LZ4, 64), reading(FLOOR, 64), 0.9),
        Demand("stat, warm, 100,000 frames: plain directory", (OUR_DIRECTORY, STAT_WARM), (PLAIN_DIRECTORY, STAT_WARM), 0.5),
        Demand("stat, warm, 100,000 frames, attr_timeout=60: plain directory", (OUR_DIRECTORY_CACHED, STAT_WARM),
               (PLAIN_DIRECTORY, STAT_WARM), 0.5),
        Demand("first byte, 1,000,000 chunks", (LARGE, FIRST_BYTE), None, 1000, False, "µs"),
        Demand("first byte, 1,000,000 chunks: 1,000 chunks", (LARGE, FIRST_BYTE), (SMALL, FIRST_BYTE), 1.5, False),
        Demand("index of 1,000,000 chunks, memory", (LARGE, INDEX_MEMORY), None, 16, False, "MiB"),
        *(Demand(f"memory above cache_size={size}M, {MEMORY_READERS} {pattern} readers",
                 (memory_label(size), memory_metric(pattern)), None, 64, False, "MiB")
          for size in CACHE_SIZES_MIB for pattern in ("sequential", "random")),
    ]


DEMANDS = [*sequential_demands(), *random_demands(), *other_demands()]
