"""How measurements are judged: the best peer counts, and what is missing is told, never passed over."""

import unittest
import xml.etree.ElementTree

from bench_demands import DEMANDS
from bench_report import Demand, Results, demand_table, picture, subject_table

OURS, SLOW, FAST = ("ours", "MB/s"), ("slow", "MB/s"), ("fast", "MB/s")


def results(**values):
    found = Results()
    for label, samples in values.items():
        for sample in samples:
            found.add(label, "MB/s", sample)
    return found


class Judging(unittest.TestCase):
    def test_medians_are_divided(self):
        row = Demand("", OURS, SLOW, 2).judge(results(ours=[1, 200, 300], slow=[100, 100, 900]))
        self.assertEqual((row["measured"], row["verdict"]), (2, "met"))

    def test_the_best_of_several_peers_counts(self):
        row = Demand("", OURS, SLOW, 2, peers=(FAST,)).judge(results(ours=[200], slow=[10], fast=[101]))
        self.assertEqual((row["peer_name"], row["verdict"], row["reason"]), ("fast", "short", ""))

    def test_a_missing_peer_is_named(self):
        row = Demand("", OURS, SLOW, 2, peers=(FAST,)).judge(results(ours=[200], slow=[10]))
        self.assertEqual((row["verdict"], row["reason"]), ("met", "without fast"))

    def test_without_any_peer_nothing_is_judged(self):
        found = results(ours=[200])
        found.skip("slow", "not installed")
        row = Demand("", OURS, SLOW, 2).judge(found)
        self.assertEqual((row["verdict"], row["measured"]), ("not measured", None))
        self.assertIn("not installed", row["reason"])

    def test_what_was_not_measured_is_not_met(self):
        self.assertEqual(Demand("", OURS, None, 2).judge(results(slow=[1]))["verdict"], "not measured")

    def test_at_most(self):
        demand = Demand("", OURS, None, 8, False)
        self.assertEqual(demand.judge(results(ours=[8]))["verdict"], "met")
        self.assertEqual(demand.judge(results(ours=[9]))["verdict"], "short")

    def test_another_bound_does_as_well(self):
        demand = Demand("", OURS, SLOW, 1.8, instead=(FAST, 0.9))
        row = demand.judge(results(ours=[95], slow=[80], fast=[100]))
        self.assertEqual((row["verdict"], row["peer_name"], row["demanded"]), ("met", "fast", 0.9))
        row = demand.judge(results(ours=[80], slow=[80], fast=[100]))
        self.assertEqual((row["verdict"], row["peer_name"], row["demanded"]), ("short", "slow", 1.8))


class Showing(unittest.TestCase):
    def test_tables_line_up(self):
        found = results(ours=[100, 120], slow=[3])
        rows = demand_table([Demand("a < b", OURS, SLOW, 2).judge(found)])
        self.assertEqual(len({len(line) for line in rows}), 1)
        self.assertIn("±9%", subject_table(found, ["ours", "slow"], ["MB/s"])[2])

    def test_the_picture_is_well_formed(self):
        found = results(ours=[100], slow=[50], fast=[70])
        demands = [Demand("a < b & c", OURS, SLOW, 2), Demand("d", FAST, None, 2, False, "s")]
        verdicts = [demand.judge(found) for demand in demands]
        root = xml.etree.ElementTree.fromstring(picture(found, ["ours", "slow", "fast"], ["MB/s"], verdicts))
        words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("a < b & c", words)
        self.assertIn("MB/s", words)

    def test_every_demand_has_a_name_of_its_own(self):
        names = [demand.what for demand in DEMANDS]
        self.assertEqual(len(set(names)), len(names))


if __name__ == "__main__":
    unittest.main()
