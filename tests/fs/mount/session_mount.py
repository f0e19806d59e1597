"""The session of the README's picture still runs, and the picture shows its commands."""

import os
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree

import mounting

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tools/dev/session_picture.py"


def lines_of(picture):
    return [text.text or "" for text in xml.etree.ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]


class Session(unittest.TestCase):
    def test_the_session_runs_and_its_commands_are_those_of_the_picture(self):
        try:
            import numpy  # noqa: F401 # the session imports it
        except ImportError:
            self.skipTest("needs python3-numpy")
        with tempfile.TemporaryDirectory() as directory:
            picture = os.path.join(directory, "session.svg")
            mounting.output("/usr/bin/python3", str(SCRIPT), os.path.dirname(os.path.abspath(mounting.CFRAME)), picture)
            lines = lines_of(picture)
        self.assertIn("(1500, 2000) float32 276.57", lines)
        self.assertIn("step   399999 residual 2.500000e-06", lines)
        commands = [line for line in lines if re.match(r"[$>] ", line)]
        self.assertEqual(commands, [line for line in lines_of(ROOT / "tools/doc/session.svg") if re.match(r"[$>] ", line)])


if __name__ == "__main__":
    mounting.main()
