"""Bars in plain SVG: how far demands are met, and who is how fast.

One picture is one call; widths are pixels. No library is needed to draw it, and any browser shows it.
"""

import html

WIDTH = 860
NAME_WIDTH = 330
NOTE_WIDTH = 150
BAR_HEIGHT = 13
STEP = 18
FONT = "font-family='DejaVu Sans, Helvetica, sans-serif'"
COLOURS = {"met": "#2a7f4f", "short": "#c0392b", "ours": "#1f5fa8", "floor": "#5d6d7e", "peer": "#b4bcc6"}
LONGEST = 2.5  # times the demand that a bar can show


class Picture:
    """Rows of bars, from top to bottom."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = 6

    def text(self, x: float, content: str, size: int = 12, bold: bool = False) -> None:
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.0f}" y="{self.y + 11}" font-size="{size}"{weight}>{html.escape(content)}</text>')

    def title(self, content: str) -> None:
        self.y += 10
        self.text(8, content, 13, True)
        self.y += STEP + 2

    def bar(self, name: str, length: float, colour: str, note: str) -> None:
        """`length` from 0 to 1."""
        width = max(1.0, min(length, 1.0) * (WIDTH - NAME_WIDTH - NOTE_WIDTH))
        self.text(8, name)
        self.parts.append(f'<rect x="{NAME_WIDTH}" y="{self.y}" width="{width:.0f}" height="{BAR_HEIGHT}" '
                          f'fill="{colour}"/>')
        self.text(NAME_WIDTH + width + 5, note, 11)
        self.y += STEP

    def mark(self, at: float, height: int) -> None:
        """A vertical line over the last `height` pixels, at `at` from 0 to 1."""
        x = NAME_WIDTH + at * (WIDTH - NAME_WIDTH - NOTE_WIDTH)
        self.parts.append(f'<line x1="{x:.0f}" y1="{self.y - height}" x2="{x:.0f}" y2="{self.y - 4}" '
                          'stroke="#222" stroke-dasharray="4 3"/>')

    def svg(self) -> str:
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.y + 8}" {FONT}>'
                '<rect width="100%" height="100%" fill="white"/>')
        return "\n".join([head, *self.parts, "</svg>", ""])


def amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def draw_verdicts(drawing: Picture, verdicts: list[dict]) -> None:
    """A bar for each judged demand, with a line where it is just met."""
    drawing.title("Must reach: how far it is met (line: just met)")
    first = drawing.y
    for row in (row for row in verdicts if row["measured"] is not None):
        measured = max(row["measured"], 1e-9)
        met = measured / row["demanded"] if row["at_least"] else row["demanded"] / measured
        sign = "≥" if row["at_least"] else "≤"
        unit = "" if row["unit"] == "x" else f" {row['unit']}"
        note = f"{row['measured']:.2f} ({sign} {row['demanded']:g}{unit})"
        drawing.bar(row["what"], met / LONGEST, COLOURS[row["verdict"]], note)
    if drawing.y > first:
        drawing.mark(1 / LONGEST, drawing.y - first)


def draw_metric(drawing: Picture, results, labels: list[str], metric: str) -> None:
    """A bar for each subject, the longest for the highest median."""
    known = {label: results.median(label, metric) for label in labels if results.median(label, metric)}
    if len(known) < 2:
        return
    drawing.title(metric)
    for label, value in sorted(known.items(), key=lambda item: -item[1]):
        kind = "ours" if label.startswith("cframefs") else "floor" if label.startswith("floor") else "peer"
        drawing.bar(label, value / max(known.values()), COLOURS[kind], amount(value))


def picture(results, labels: list[str], metrics: list[str], verdicts: list[dict]) -> str:
    """`verdicts`: rows of Demand.judge(); none: that part is left out."""
    drawing = Picture()
    if verdicts:
        draw_verdicts(drawing, verdicts)
    for metric in metrics:
        draw_metric(drawing, results, labels, metric)
    return drawing.svg()
