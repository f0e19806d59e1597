"""Latencies beside slow requests, held against those of the idle mount and against what is demanded. No measuring here."""

from bench_report import aligned, number

MOST_RATIO = 3  # of the median, to that of the idle mount
MOST_MS = 100  # of the longest
MOST_MS_BESIDE_WAITING = 20
COLD = "read, cold file"
COLD_RATIO, COLD_SPARE_MS = 2, 20
GONE_SECONDS = 0.5
LEAST_THROUGHPUT = 0.98
WAITING = ("fsync", "lock")  # loads that compute nothing


def share(kind: str, count: int, processors: int) -> float:
    """Returns how many times as long a request takes when it shares the processors evenly with count loads."""
    return 1 if kind in WAITING else max(1, (count + 1) / processors)


def judge(kind: str, count: int, what: str, found: dict, idle: dict, processors: int) -> dict:
    """One line of the table, in ms. `found`, `idle`: quantiles of the client."""
    median, longest, alone = found["p50_us"] / 1e3, found["max_us"] / 1e3, idle["p50_us"] / 1e3
    row = {"kind": kind, "count": count, "what": what, "asked": found["count"], "median": median, "longest": longest,
           "ratio": median / alone, "missed": []}
    if what == COLD:
        most = COLD_RATIO * share(kind, count, processors) * alone + COLD_SPARE_MS
    else:
        most = MOST_MS_BESIDE_WAITING if kind in WAITING else MOST_MS
        if row["ratio"] > MOST_RATIO:
            row["missed"].append("median")
    row["most"] = most
    if longest > most:
        row["missed"].append("longest")
    if found.get("unanswered"):
        row["missed"].append("unanswered")
    if found.get("error"):
        row["missed"].append(found["error"])
    return row


def latency_table(rows: list[dict]) -> list[str]:
    lines = [["beside", "N", "what", "asked", "median ms", "x idle", "longest ms", "at most", "missed"]]
    for row in rows:
        lines.append([row["kind"], str(row["count"]), row["what"], str(row["asked"]), f"{row['median']:.2f}",
                      f"{row['ratio']:.1f}", f"{row['longest']:.1f}", f"{row['most']:.0f}", ", ".join(row["missed"])])
    return aligned(lines)


def summary_table(rows: list[dict]) -> list[str]:
    """The worst of each kind of load and number of them."""
    lines = [["beside", "N", "worst median, x idle", "longest ms", "lines that miss", "slow requests done"]]
    for kind, count in dict.fromkeys((row["kind"], row["count"]) for row in rows):
        of_one = [row for row in rows if (row["kind"], row["count"]) == (kind, count)]
        lines.append([kind, str(count), f"{max(row['ratio'] for row in of_one):.1f}",
                      f"{max(row['longest'] for row in of_one):.1f}",
                      f"{sum(bool(row['missed']) for row in of_one)} of {len(of_one)}",
                      str(of_one[0].get("rounds", "-"))])
    return aligned(lines)


def judge_killed(row: dict, processors: int) -> dict:
    """Blocks that were begun when the readers were killed may be finished: one for each processor, at most."""
    missed = []
    if row["gone_s"] > GONE_SECONDS:
        missed.append("gone")
    if row["decoded"] > min(row["count"], processors):
        missed.append("decodes")
    return {**row, "missed": missed}


def killed_table(rows: list[dict]) -> list[str]:
    lines = [["after SIGKILL in", "N", "gone after s", "at most", "blocks decoded in all", "CPU s of the daemon after that",
              "missed"]]
    for row in rows:
        lines.append([row["kind"], str(row["count"]), f"{row['gone_s']:.2f}", f"{GONE_SECONDS}", str(row["decoded"]),
                      f"{row['cpu_s']:.2f}", ", ".join(row["missed"])])
    return aligned(lines)


def undisturbed(values: list[float]) -> float:
    """What other work on the machine takes makes figures smaller, never larger: the mean of the better half."""
    best = sorted(values)[len(values) // 2 :]
    return sum(best) / len(best)


def throughput_table(pairs: dict[str, list[tuple[float, float]]]) -> tuple[list[str], bool]:
    """`pairs`: by metric, what the old and the new program reached in each round. Also whether all is as it has to be."""
    lines = [["without slow requests", "old", "new", "new / old", "of the rounds", "demanded", "verdict"]]
    met = True
    for metric, found in pairs.items():
        old, new = (undisturbed(list(values)) for values in zip(*found))
        ratios = [one[1] / one[0] for one in found]
        met = met and new / old >= LEAST_THROUGHPUT
        lines.append([metric, number(old), number(new), f"{new / old:.3f}", f"{min(ratios):.2f} to {max(ratios):.2f}",
                      f">= {LEAST_THROUGHPUT}", "met" if new / old >= LEAST_THROUGHPUT else "short"])
    return aligned(lines), met
