"""Data of many kinds for measuring what `cframe pack` chooses: fields, walks, sounds, records, texts, containers, images.

Everything is made from fixed seeds of numpy's RandomState, whose streams do not change between releases.
"""

import csv
import io
import pathlib
import random
import sqlite3
import struct
import tarfile

import numpy

WORDS = ("chunk block frame codec filter index offset header trailer reader writer commit cache node name file size time "
         "error stale read write open close mount source daemon request answer thread worker level typesize").split()


def field(random_state, shape, noise):
    """A smooth field of doubles with measuring noise, rounded to 4 digits."""
    axes = [numpy.linspace(0, 8 * numpy.pi * (i + 1) / 2, n) for i, n in enumerate(shape)]
    x, y, z = numpy.meshgrid(*axes, indexing="ij", sparse=True)
    return numpy.sin(x) * numpy.cos(y) + z * 0.1 + numpy.round(random_state.normal(0, noise, shape), 4)


def npy(array):
    out = io.BytesIO()
    numpy.save(out, array)
    return out.getvalue()


def f8_field(state, size):
    side = round((size / 8) ** (1 / 3))
    return npy(field(state, (side, side, side), 1e-3))


def f8_walk(state, size):
    return numpy.cumsum(state.normal(size=size // 8)).tobytes()


def f8_behind_zeros(state, size):
    return bytes(size // 2) + f8_walk(state, size // 2)


def f8_prices(state, size):
    """Doubles of two decimals, each near the one before."""
    return numpy.round(100 + numpy.cumsum(state.normal(0, 0.05, size // 8)), 2).tobytes()


def f4_field(state, size):
    side = round((size / 4) ** (1 / 3))
    return field(state, (side, side, side), 1e-3).astype("f4").tobytes()


def f4_patches(state, size):
    """A smooth field with wide gaps of zeros, as a model has over land."""
    side = int((size / 4) ** 0.5)
    y, x = numpy.meshgrid(numpy.linspace(0, 20, side), numpy.linspace(0, 30, side), indexing="ij")
    height = numpy.sin(x) * numpy.cos(y) + 0.2 * numpy.sin(x * 5 + y)
    sea = numpy.where(height > 0, height * 1e3 + state.normal(0, 0.01, height.shape), 0)
    return sea.astype("f4").tobytes()


def f4_behind_zeros(state, size):
    return bytes(size // 3 + 1234 * 4) + f4_field(state, size // 2)


def c16_signal(state, size):
    t = numpy.arange(size // 16) / 50
    return npy(numpy.exp(1j * t) * 1000 + state.normal(0, 0.1, t.size) + 1j * state.normal(0, 0.1, t.size))


def i4_walk(state, size):
    return numpy.cumsum(state.randint(-3, 4, size // 4)).astype("i4").tobytes()


def i8_walk(state, size):
    return numpy.cumsum(state.randint(-1000, 1001, size // 8)).astype("i8").tobytes()


def i8_time_stamps(state, size):
    """Nanoseconds, a sample about each millisecond."""
    steps = 1_000_000 + state.normal(0, 2000, size // 8).astype("i8")
    return (1_700_000_000_000_000_000 + numpy.cumsum(steps)).astype("i8").tobytes()


def u4_labels(state, size):
    """Runs of few labels, as a segmentation has."""
    lengths = state.geometric(0.02, size // 100)
    labels = numpy.repeat(state.randint(0, 500, lengths.size) * 7919, lengths)[:size // 4]
    return labels.astype("u4").tobytes()


def tones(state, count, channels):
    t = numpy.arange(count) / 44100
    sound = numpy.zeros((count, channels))
    for pitch in (220, 277, 330, 441, 660):
        phase = state.uniform(0, 6, channels)
        sound += numpy.sin(2 * numpy.pi * pitch * t[:, None] * (1 + 0.001 * numpy.arange(channels)) + phase)
    loud = 1 + 0.5 * numpy.sin(2 * numpy.pi * 0.4 * t)
    return (sound * loud[:, None] * 3000 + state.normal(0, 30, sound.shape)).astype("<i2")


def wav_stereo(state, size):
    sound = tones(state, size // 4, 2).tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(sound), b"WAVE", b"fmt ", 16, 1, 2, 44100, 176400, 4, 16,
                       b"data", len(sound))
    return head + sound


def pcm_mono(state, size):
    return tones(state, size // 2, 1).tobytes()


def records_24(state, size):
    """An id, a time, a value, a state and flags: 24 bytes, packed by a compiler."""
    kind = numpy.dtype([("id", "<u4"), ("state", "<u2"), ("flags", "<u2"), ("time", "<i8"), ("value", "<f8")])
    rows = numpy.zeros(size // 24, kind)
    rows["id"] = state.randint(0, 2000, rows.size)
    rows["state"] = state.randint(0, 5, rows.size)
    rows["flags"] = 1 << state.randint(0, 3, rows.size)
    rows["time"] = 1_700_000_000_000 + numpy.cumsum(state.randint(1, 50, rows.size))
    rows["value"] = numpy.round(20 + numpy.cumsum(state.normal(0, 0.1, rows.size)), 3)
    return rows.tobytes()


def records_19(state, size):
    """Packed without padding: 19 bytes."""
    kind = numpy.dtype([("time", "<u4"), ("x", "<f4"), ("y", "<f4"), ("charge", "<u2"), ("layer", "u1"), ("id", "<u4")])
    rows = numpy.zeros(size // 19, kind)
    rows["time"] = numpy.cumsum(state.randint(1, 9, rows.size))
    rows["x"] = state.normal(0, 10, rows.size)
    rows["y"] = state.normal(0, 10, rows.size)
    rows["charge"] = state.poisson(300, rows.size)
    rows["layer"] = numpy.arange(rows.size) % 12
    rows["id"] = state.randint(0, 100_000, rows.size)
    return rows.tobytes()


def csv_table(state, size):
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["time", "station", "temperature", "pressure", "note"])
    count = size // 46
    times = 1_700_000_000 + numpy.cumsum(state.randint(1, 30, count))
    stations = state.randint(0, 40, count)
    temperatures = 15 + numpy.cumsum(state.normal(0, 0.05, count))
    pressures = 1013 + numpy.cumsum(state.normal(0, 0.02, count))
    notes = state.randint(0, len(WORDS), count)
    for i in range(count):
        rows.writerow([times[i], f"station-{stations[i]:02}", f"{temperatures[i]:.2f}", f"{pressures[i]:.2f}",
                       WORDS[notes[i]]])
    return out.getvalue().encode()


def log_lines(state, size):
    chance = random.Random(int(state.randint(1 << 30)))
    lines, length, second = [], 0, 0.0
    levels = ["INFO"] * 8 + ["WARN", "ERROR"]
    while length < size:
        second += chance.expovariate(20)
        hour, rest = divmod(int(second), 3600)
        line = (f"2026-03-{1 + hour // 24 % 28:02}T{hour % 24:02}:{rest // 60:02}:{rest % 60:02}.{int(second % 1 * 1e6):06}Z "
                f"{chance.choice(levels)} [worker-{chance.randrange(8)}] {chance.choice(WORDS)}.{chance.choice(WORDS)}: "
                f"request {chance.randrange(1 << 32):08x} of 10.0.{chance.randrange(4)}.{chance.randrange(256)} took "
                f"{chance.expovariate(0.1):.3f} ms, {chance.choice(WORDS)} {chance.choice(WORDS)}\n")
        lines.append(line)
        length += len(line)
    return "".join(lines).encode()


def json_lines(state, size):
    chance = random.Random(int(state.randint(1 << 30)))
    lines, length = [], 0
    while length < size:
        line = (f'{{"id":{chance.randrange(10**6)},"user":"{chance.choice(WORDS)}{chance.randrange(1000)}",'
                f'"score":{chance.random():.6f},"tags":["{chance.choice(WORDS)}","{chance.choice(WORDS)}"],'
                f'"active":{chance.choice(("true", "false"))}}}\n')
        lines.append(line)
        length += len(line)
    return "".join(lines).encode()


def sqlite_table(state, size, directory):
    path = directory / "table.sqlite"
    path.unlink(missing_ok=True)
    base = sqlite3.connect(path)
    base.execute("PRAGMA page_size = 4096")
    base.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, time INTEGER, place TEXT, value REAL, note TEXT)")
    base.execute("CREATE INDEX by_place ON event (place, time)")
    count = size // 100
    times = 1_700_000_000_000 + numpy.cumsum(state.randint(1, 5000, count))
    values = state.normal(20, 3, count)
    places = state.randint(0, 200, count)
    notes = state.randint(0, len(WORDS), (count, 3))
    base.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?)",
                     ((i, int(times[i]), f"place {places[i]}", round(float(values[i]), 2),
                       " ".join(WORDS[word] for word in notes[i])) for i in range(count)))
    base.commit()
    base.close()
    content = path.read_bytes()
    path.unlink()
    return content


def source_text(chance, length):
    """Text like that of a program."""
    lines, have = [], 0
    while have < length:
        a, b, c = (chance.choice(WORDS) for _ in range(3))
        line = chance.choice((
            f"  if ({a}.{b}() != {c}) return {a}_{b};\n",
            f"  const auto {a} = {b}_{c}({chance.randrange(100)});\n",
            f"void {a.title()}::{b}_{c}({a.title()}& {b}, int {c}) {{\n",
            f"  // The {a} has a {b} for each {c}, so that the {b} stays valid.\n",
            "}\n\n"))
        lines.append(line)
        have += len(line)
    return "".join(lines).encode()[:length]


def tar_of_sources(state, size):
    chance = random.Random(int(state.randint(1 << 30)))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        number = 0
        while out.tell() < size:
            text = source_text(chance, int(chance.lognormvariate(8.5, 1)))
            entry = tarfile.TarInfo(f"project/{chance.choice(WORDS)}/{chance.choice(WORDS)}_{number}.cc")
            entry.size, entry.mtime, entry.mode = len(text), 1_700_000_000 + number * 37, 0o644
            archive.addfile(entry, io.BytesIO(text))
            number += 1
    return out.getvalue()


def tar_of_mixed(state, size):
    """Fields, sounds, texts and images of about 256 KiB each."""
    out = io.BytesIO()
    kinds = (f4_field, f8_walk, csv_table, log_lines, pcm_mono, image_rgb)
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        number = 0
        while out.tell() < size:
            content = kinds[number % len(kinds)](state, 256 << 10)
            entry = tarfile.TarInfo(f"set/{number}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
            number += 1
    return out.getvalue()


def picture(state, height, width, channels, scale):
    y, x = numpy.meshgrid(numpy.linspace(0, 12, height), numpy.linspace(0, 16, width), indexing="ij")
    layers = []
    for channel in range(channels):
        light = 0.5 + 0.25 * numpy.sin(x + channel * 0.3) * numpy.cos(y * 1.3) + 0.2 * numpy.sign(numpy.sin(x * 2.1 + y))
        layers.append(light * scale + state.normal(0, scale / 150, light.shape))
    return numpy.clip(numpy.stack(layers, axis=-1), 0, scale * 1.2)


def image_rgb(state, size):
    width = int((size / 3) ** 0.5)
    pixels = picture(state, width, width, 3, 200)
    return f"P6\n{width} {width}\n255\n".encode() + pixels.astype("u1").tobytes()


def image_16_bit(state, size):
    width = int((size / 2) ** 0.5)
    return picture(state, width, width, 1, 3000).astype("<u2").tobytes()


def noise(state, size):
    return state.bytes(size)


KINDS = {
    maker.__name__.replace("_", "-"): maker
    for maker in (f8_field, f8_walk, f8_behind_zeros, f8_prices, f4_field, f4_patches, f4_behind_zeros, c16_signal, i4_walk,
                  i8_walk, i8_time_stamps, u4_labels, wav_stereo, pcm_mono, records_24, records_19, csv_table, log_lines,
                  json_lines, sqlite_table, tar_of_sources, tar_of_mixed, image_rgb, image_16_bit, noise)
}


def make(kind: str, size: int, directory: pathlib.Path) -> bytes:
    """About `size` bytes of a kind. `directory`: for temporary files."""
    state = numpy.random.RandomState(sum(kind.encode()))
    maker = KINDS[kind]
    return maker(state, size, directory) if maker is sqlite_table else maker(state, size)
