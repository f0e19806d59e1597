#!/usr/bin/env python3
"""Runs a session with a mount and draws it as the animated picture of the README.

    session_picture.py PROGRAMS PICTURE.svg

PROGRAMS is the directory of cframefs and cframe. Needs Debian's python3-numpy, and the rights to mount. The commands run in
a temporary directory; the picture has what they printed. Exit status: 0 success, 1 a command failed, 2 usage error.
"""

import html
import os
import subprocess
import sys
import tempfile

# Makes the frames that the session mounts: a field of 32-bit floats, and a log.
PREPARE = r"""
import numpy
y, x = numpy.mgrid[0:1500, 0:2000].astype("f4")
field = 273 + 20 * numpy.sin(x / 300) * numpy.cos(y / 200)
numpy.save("temperature.npy", numpy.round(field, 2).astype("f4"))
with open("run42.log", "w") as log:
    for step in range(400000):
        log.write(f"step {step:8} residual {1 / (1 + step):.6e}{' restart' if step % 99991 == 99990 else ''}\n")
"""

# Each command of the session.
COMMANDS = [
    "ls -sh frames",
    "cframefs frames mnt",
    "du -h --apparent-size mnt/*",
    "grep -c restart mnt/run42.log",
    "tail -1 mnt/run42.log",
    """python3 -c "import numpy
field = numpy.load('mnt/temperature.npy', mmap_mode='r')
print(field.shape, field.dtype, field[700, 1000])" """.strip(),
    "echo 'step   400000 done' >> mnt/run42.log",
    "fusermount3 -u mnt",
    "cd frames; cframe ls",
]

COLUMNS = 98
FONT = 14
LINE = 20
WIDTH = COLUMNS * 8.43 + 32
TYPED = 0.6  # seconds until a command appears, and until its output does
ANSWERED = 0.5
SHOWN = 6.0  # seconds for which the end stays


def run(command, directory, environment):
    done = subprocess.run(["bash", "-c", command], cwd=directory, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: exit status {done.returncode}: {done.stdout}")
    # Of this machine, not of the session.
    return [line for line in done.stdout.splitlines() if "there is no system log" not in line]


def session(programs):
    """Returns the lines of the session with the seconds at which they appear: (text, is_command, seconds)."""
    lines = []
    now = 0.0
    with tempfile.TemporaryDirectory(prefix="cframefs-session-") as directory:
        environment = dict(os.environ, PATH=f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin", LC_ALL="C.UTF-8", COLUMNS=str(COLUMNS))
        for name in ("frames", "mnt"):
            os.mkdir(os.path.join(directory, name))
        subprocess.run(["/usr/bin/python3", "-c", PREPARE], cwd=directory, check=True, timeout=120)
        run("cframe convert temperature.npy frames/temperature.b2nd && cframe pack run42.log frames/run42.log.b2frame",
            directory, environment)
        try:
            for command in COMMANDS:
                now += TYPED
                for number, text in enumerate(command.splitlines()):
                    lines.append((("$ " if number == 0 else "> ") + text, True, now))
                now += ANSWERED
                lines.extend((text, False, now) for text in run(command, directory, environment))
        finally:
            subprocess.run(["fusermount3", "-u", "-q", os.path.join(directory, "mnt")], check=False)
    return lines


def picture(lines):
    """Returns the picture as SVG: each line appears at its time; programs that do not animate show them all."""
    end = lines[-1][2] + SHOWN
    height = len(lines) * LINE + 32
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" width="{WIDTH:.0f}" height="{height}" '
        f'role="img" font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="{FONT}">',
        "<title>A session with cframefs: frames are mounted, read by grep, tail and NumPy, appended to, and unmounted</title>",
        f'<rect width="{WIDTH:.0f}" height="{height}" rx="8" fill="#16181d"/>',
        "<style>",
        f"text {{ white-space: pre; animation: {end:.1f}s step-end infinite; }}",
    ]
    for number, (_, _, at) in enumerate(lines):
        begin = 100 * at / end
        parts.append(f"@keyframes l{number} {{ 0% {{ opacity: 0 }} {begin:.2f}% {{ opacity: 1 }} }}")
    parts.append("@media (prefers-reduced-motion: reduce) { text { animation: none !important; } }")
    parts.append("</style>")
    for number, (text, is_command, _) in enumerate(lines):
        color = "#7ee787" if is_command else "#d6deeb"
        shown = html.escape(text[:COLUMNS])
        parts.append(f'<text x="16" y="{number * LINE + 31}" fill="{color}" xml:space="preserve" '
                     f'style="animation-name: l{number}">{shown}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        text = picture(session(os.path.abspath(arguments[0])))
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(f"session_picture.py: {error}", file=sys.stderr)
        return 1
    with open(arguments[1], "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
