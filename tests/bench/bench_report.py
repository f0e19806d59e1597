"""What was measured, held against what is demanded: a table for people, JSON for programs, a picture in plain SVG.

Results collects samples; Demand is one line of the "must reach" table. No measuring and no mounting here.
"""

import dataclasses
import html
import statistics


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
    """`ours` (subject, metric), divided by `peer` if there is one, must be at least or at most `bound`."""

    what: str
    ours: tuple[str, str]
    peer: tuple[str, str] | None
    bound: float
    at_least: bool = True
    unit: str = "x"

    def judge(self, results: Results) -> dict:
        ours = results.median(*self.ours)
        peer = results.median(*self.peer) if self.peer else None
        row = {"what": self.what, "demanded": self.bound, "at_least": self.at_least, "unit": self.unit}
        row.update(ours=ours, peer=peer, measured=None, verdict="not measured", reason="")
        for place, value in ((self.ours, ours), (self.peer, peer)):
            if place and value is None:
                row["reason"] = f"{place[0]}: {results.skipped.get(place[0], 'not part of this run')}"
                return row
        row["measured"] = ours / peer if self.peer else ours
        reached = row["measured"] >= self.bound if self.at_least else row["measured"] <= self.bound
        row["verdict"] = "pass" if reached else "short"
        return row


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
    lines += [f"not measured: {row['what']}: {row['reason']}" for row in verdicts if row["reason"]]
    return lines


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
    """Tables narrow enough to read: metrics that begin with the same words go together."""
    groups: dict[str, list[str]] = {}
    for metric in metrics:
        group = metric.split(",")[0] if metric.startswith("random") else metric.split(" ")[0]
        groups.setdefault({"warm": "cat", "sequential": "in order", "mmap": "in order"}.get(group, group), []).append(metric)
    lines = []
    for group in groups.values():
        lines += [*subject_table(results, labels, group), ""]
    return lines + [f"skipped: {label}: {reason}" for label, reason in results.skipped.items()]


# --- picture ---------------------------------------------------------------------------------------------------------

WIDTH = 960
NAME_WIDTH = 430
BAR_HEIGHT = 18
STEP = 26
COLOURS = {"pass": "#2a7f4f", "short": "#c0392b", "ours": "#1f5fa8", "peer": "#9aa5b1"}


class Picture:
    """Rows of bars, from top to bottom."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = 10

    def text(self, x: float, content: str, size: int = 13, bold: bool = False) -> None:
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:.0f}" y="{self.y + 14}" font-size="{size}"{weight}>{html.escape(content)}</text>')

    def title(self, content: str) -> None:
        self.y += 12
        self.text(10, content, 15, True)
        self.y += STEP

    def bar(self, name: str, length: float, colour: str, note: str) -> None:
        """`length` from 0 to 1."""
        space = WIDTH - NAME_WIDTH - 150
        width = max(1.0, min(length, 1.0) * space)
        self.text(10, name)
        self.parts.append(f'<rect x="{NAME_WIDTH}" y="{self.y}" width="{width:.1f}" height="{BAR_HEIGHT}" fill="{colour}"/>')
        self.text(NAME_WIDTH + width + 6, note, 12)
        self.y += STEP

    def mark(self, at: float, height: int) -> None:
        """A vertical line over the last `height` pixels, at `at` from 0 to 1."""
        x = NAME_WIDTH + at * (WIDTH - NAME_WIDTH - 150)
        self.parts.append(f'<line x1="{x:.1f}" y1="{self.y - height}" x2="{x:.1f}" y2="{self.y - 6}" '
                          'stroke="#222" stroke-dasharray="4 3"/>')

    def svg(self) -> str:
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.y + 10}" '
                'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>')
        return "\n".join([head, *self.parts, "</svg>", ""])


def picture(results: Results, labels: list[str], metrics: list[str], verdicts: list[dict]) -> str:
    drawing = Picture()
    drawing.title("Must reach: how far the demand is met (line: just met)")
    scale = 2.5  # times the demand at the right end
    first = drawing.y
    for row in (row for row in verdicts if row["measured"] is not None):
        if row["at_least"]:
            met = row["measured"] / row["demanded"]
        else:
            met = row["demanded"] / max(row["measured"], 1e-9) if row["demanded"] > 0 else scale
        sign = "≥" if row["at_least"] else "≤"
        note = f"{row['measured']:.2f} ({sign} {row['demanded']:g}{row['unit']})"
        drawing.bar(row["what"], met / scale, COLOURS[row["verdict"]], note)
    if drawing.y > first:
        drawing.mark(1 / scale, drawing.y - first)
    for metric in metrics:
        medians = {label: results.median(label, metric) for label in labels}
        known = {label: value for label, value in medians.items() if value}
        if len(known) > 1:
            drawing.title(metric)
            for label, value in known.items():
                colour = COLOURS["ours" if label.startswith("cframefs") else "peer"]
                drawing.bar(label, value / max(known.values()), colour, number(value))
    return drawing.svg()
