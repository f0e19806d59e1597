"""What was measured, held against what is demanded: tables for people, rows for programs.

Results collects samples; Demand is one line of the "must reach" table. No measuring and no mounting here.
"""

import dataclasses
import statistics

from bench_picture import picture

__all__ = ["Demand", "Results", "aligned", "demand_table", "number", "picture", "subject_table", "subject_tables"]

Place = tuple[str, str]  # subject, metric
NOT_PART = "not part of this run"


class Results:
    """Samples by subject and metric, and why what is missing is missing."""

    def __init__(self) -> None:
        self.samples: dict[str, dict[str, list[float]]] = {}
        self.skipped: dict[str, str] = {}

    def add(self, label: str, metric: str, value: float) -> None:
        self.samples.setdefault(label, {}).setdefault(metric, []).append(value)

    def skip(self, label: str, reason: str) -> None:
        self.skipped.setdefault(label, reason)

    def get(self, label: str, metric: str) -> list[float]:
        return self.samples.get(label, {}).get(metric, [])

    def median(self, label: str, metric: str) -> float | None:
        values = self.get(label, metric)
        return statistics.median(values) if values else None


@dataclasses.dataclass(frozen=True)
class Demand:
    """`ours` (subject, metric), divided by `peer` if there is one, must be at least or at most `bound`.

    peers: further ones, of which the best counts; those that cannot be had here are left out, with a note. instead:
    another peer and bound that do as well.
    """

    what: str
    ours: Place
    peer: Place | None
    bound: float
    at_least: bool = True
    unit: str = "x"
    peers: tuple[Place, ...] = ()
    instead: tuple[Place, float] | None = None

    def judge(self, results: Results) -> dict:
        ours = results.median(*self.ours)
        row = {"what": self.what, "demanded": self.bound, "at_least": self.at_least, "unit": self.unit}
        row.update(ours=ours, peer=None, peer_name="", measured=None, verdict="not measured", reason="")
        if ours is None:
            row["reason"] = why_missing(results, self.ours)
            return row
        places = [place for place in (self.peer, *self.peers) if place]
        known = {place: results.median(*place) for place in places if results.median(*place) is not None}
        if places and not known:
            row["reason"] = why_missing(results, places[0])
            return row
        row["measured"] = ours
        if known:
            best = max(known, key=known.__getitem__)
            row.update(peer=known[best], peer_name=best[0], measured=ours / known[best])
        self.decide(row, results)
        if len(known) < len(places):
            row["reason"] = "without " + ", ".join(place[0] for place in places if place not in known)
        return row

    def decide(self, row: dict, results: Results) -> None:
        reached = row["measured"] >= self.bound if self.at_least else row["measured"] <= self.bound
        row["verdict"] = "met" if reached else "short"
        if reached or self.instead is None:
            return
        place, bound = self.instead
        other = results.median(*place)
        if other is not None and row["ours"] / other >= bound:
            row.update(verdict="met", peer=other, peer_name=place[0], demanded=bound, measured=row["ours"] / other)


def why_missing(results: Results, place: Place) -> str:
    return f"{place[0]}: {results.skipped.get(place[0], NOT_PART)}"


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def aligned(rows: list[list[str]]) -> list[str]:
    """Rows as a Markdown table whose columns line up."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for index, row in enumerate(rows):
        cells = [cell.ljust(width) if column == 0 else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("| " + " | ".join(cells) + " |")
        if index == 0:
            rules = ["-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
            lines.append("| " + " | ".join(rules) + " |")
    return lines


def demand_table(verdicts: list[dict]) -> list[str]:
    rows = [["must reach", "ours", "peer", "measured", "demanded", "verdict"]]
    for row in verdicts:
        sign = ">=" if row["at_least"] else "<="
        measured = "-" if row["measured"] is None else f"{row['measured']:.2f} {row['unit']}"
        rows.append([row["what"], number(row["ours"]), number(row["peer"]), measured,
                     f"{sign} {row['demanded']:g} {row['unit']}", row["verdict"]])
    lines = aligned(rows)
    return lines + [f"{row['what']}: {row['verdict']}, {row['reason']}" for row in verdicts if row["reason"]]


def spread(values: list[float]) -> str:
    """Half the range between the extremes, in percent of the median."""
    median = statistics.median(values)
    if len(values) < 2 or median == 0:
        return ""
    return f" ±{(max(values) - min(values)) / 2 / median * 100:.0f}%"


def subject_table(results: Results, labels: list[str], metrics: list[str]) -> list[str]:
    """One table of the subjects that have any of these metrics."""
    rows = [["median (half range)", *metrics]]
    for label in labels:
        cells = [results.get(label, metric) for metric in metrics]
        if any(cells):
            rows.append([label, *(number(statistics.median(c)) + spread(c) if c else "-" for c in cells)])
    return aligned(rows)


def subject_tables(results: Results, labels: list[str], metrics: list[str]) -> list[str]:
    """Tables narrow enough to read: metrics that begin with the same word go together."""
    groups: dict[str, list[str]] = {}
    for metric in metrics:
        groups.setdefault(metric.split(" ")[0].rstrip(","), []).append(metric)
    lines = []
    for group in groups.values():
        lines += [*subject_table(results, labels, group), ""]
    return lines + [f"skipped: {label}: {reason}" for label, reason in results.skipped.items()]
