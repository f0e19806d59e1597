"""How measurements are judged: the best peer counts, and what is missing is told, never passed over."""

import unittest
import xml.etree.ElementTree

from bench_demands import DEMANDS
from bench_report import Demand, Results, demand_table, picture, subject_table
from latency_report import COLD, judge, judge_killed, latency_table, throughput_table

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


def quantiles(median, longest, **more):
    """Of the client, for times in ms."""
    return {"p50_us": median * 1e3, "max_us": longest * 1e3, "count": 3, **more}


class Latencies(unittest.TestCase):
    def missed(self, kind, count, what, found):
        return judge(kind, count, what, found, quantiles(1, 2), 2)["missed"]

    def test_medians_are_held_against_those_of_the_idle_mount(self):
        self.assertEqual(self.missed("block", 4, "stat", quantiles(3, 100)), [])
        self.assertEqual(self.missed("block", 4, "stat", quantiles(4, 101)), ["median", "longest"])

    def test_work_that_only_waits_leaves_less_to_wait_for(self):
        self.assertEqual(self.missed("fsync", 4, "stat", quantiles(1, 20)), [])
        self.assertEqual(self.missed("lock", 4, "stat", quantiles(1, 21)), ["longest"])

    def test_cold_reads_have_their_share_of_the_processors(self):
        # Five programs, two processors: 2.5 times as long, twice, and 20 ms.
        self.assertEqual(self.missed("block", 4, COLD, quantiles(5, 25)), [])
        self.assertEqual(self.missed("block", 4, COLD, quantiles(5, 26)), ["longest"])
        self.assertEqual(self.missed("fsync", 4, COLD, quantiles(1, 23)), ["longest"])

    def test_what_has_no_answer_is_a_miss(self):
        self.assertEqual(self.missed("copy", 1, "stat", quantiles(1, 2, unanswered=True)), ["unanswered"])
        self.assertEqual(self.missed("copy", 1, "stat", quantiles(1, 2, error="EIO")), ["EIO"])

    def test_killed_readers_have_one_decode_begun_for_each_processor(self):
        row = {"kind": "block", "count": 4, "gone_s": 0.5, "decoded": 2, "cpu_s": 1}
        self.assertEqual(judge_killed(row, 2)["missed"], [])
        self.assertEqual(judge_killed({**row, "gone_s": 0.6, "decoded": 3}, 2)["missed"], ["gone", "decodes"])
        self.assertEqual(judge_killed({**row, "count": 1}, 2)["missed"], ["decodes"])

    def test_programs_are_compared_where_other_work_disturbs_least(self):
        lines, met = throughput_table({"MB/s": [(100, 99), (60, 100), (101, 30), (100, 98)]})
        self.assertTrue(met)
        self.assertIn("0.30 to 1.67", lines[2])
        self.assertFalse(throughput_table({"MB/s": [(100, 97), (100, 97)]})[1])

    def test_tables_line_up(self):
        rows = latency_table([judge("block", 16, "stat", quantiles(400, 500), quantiles(1, 2), 2)])
        self.assertEqual(len({len(line) for line in rows}), 1)


if __name__ == "__main__":
    unittest.main()
