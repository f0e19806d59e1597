"""A strict parser of OpenMetrics 1.0 text, for tests of what a mount exposes. It raises ValueError for all that the
specification forbids and a collector may forgive."""

import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
NUMBER = re.compile(r"(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]Inf|NaN)\Z")
CANONICAL = re.compile(r"(?:[0-9]+\.[0-9]+|[0-9](?:\.[0-9]+)?e[+-][0-9]{2}|\+Inf)\Z")
SUFFIXES = {
    "counter": {"_total", "_created"},
    "gauge": {""},
    "info": {"_info"},
    "histogram": {"_bucket", "_sum", "_count", "_created"},
}


class Family:
    def __init__(self, name):
        self.name, self.type, self.help, self.unit = name, None, None, None
        self.samples = []  # (suffix, labels, value)

    def value(self, suffix="", **labels):
        """The value of the one sample with these labels among its own."""
        found = [value for given, own, value in self.samples if given == suffix and labels.items() <= own.items()]
        if len(found) != 1:
            raise ValueError(f"{len(found)} samples {self.name}{suffix} {labels}")
        return found[0]


def number(text):
    if not NUMBER.match(text):
        raise ValueError(f"no number: {text!r}")
    return float(text.replace("Inf", "inf"))


def labels_of(text):
    """The labels in "{...}" and the rest behind it."""
    labels, at = {}, 1
    while text[at] != "}":
        if labels:
            if text[at] != ",":
                raise ValueError(f"no comma: {text!r}")
            at += 1
        equals = text.index("=", at)
        name = text[at:equals]
        if not LABEL.match(name) or name in labels or text[equals + 1] != '"':
            raise ValueError(f"label {name!r}: {text!r}")
        value, at = "", equals + 2
        while text[at] != '"':
            if text[at] == "\\":
                at += 1
                value += {"n": "\n", "\\": "\\", '"': '"'}[text[at]]
            else:
                value += text[at]
            at += 1
        labels[name] = value
        at += 1
    if not labels:
        raise ValueError(f"empty labels: {text!r}")
    return labels, text[at + 1:]


def check_histogram(family):
    series = {}
    for suffix, labels, value in family.samples:
        rest = tuple(sorted((name, text) for name, text in labels.items() if name != "le"))
        series.setdefault(rest, []).append((suffix, labels.get("le"), value))
    for samples in series.values():
        buckets = [(le, value) for suffix, le, value in samples if suffix == "_bucket"]
        for le, _ in buckets:
            if not CANONICAL.match(le):
                raise ValueError(f"{family.name}: le={le!r} is not canonical")
        bounds = [number(le) for le, _ in buckets]
        counts = [value for _, value in buckets]
        if bounds != sorted(set(bounds)) or bounds[-1] != math.inf:
            raise ValueError(f"{family.name}: bounds {bounds}")
        if counts != sorted(counts):
            raise ValueError(f"{family.name}: counts fall: {counts}")
        totals = [value for suffix, _, value in samples if suffix == "_count"]
        if totals != [counts[-1]] or [suffix for suffix, _, _ in samples].count("_sum") != 1:
            raise ValueError(f"{family.name}: count {totals}, +Inf {counts[-1]}")


def check(family):
    if family.type not in SUFFIXES or not family.samples:
        raise ValueError(f"{family.name}: type {family.type}, {len(family.samples)} samples")
    if family.unit is not None and (not family.name.endswith("_" + family.unit) or family.type == "info"):
        raise ValueError(f"{family.name}: unit {family.unit}")
    seen = set()
    for suffix, labels, value in family.samples:
        key = (suffix, tuple(sorted(labels.items())))
        if key in seen:
            raise ValueError(f"{family.name}{suffix}: twice {labels}")
        seen.add(key)
        if ("le" in labels) != (suffix == "_bucket"):
            raise ValueError(f"{family.name}{suffix}: le in {labels}")
        if family.type != "gauge" and (value < 0 or math.isnan(value)):
            raise ValueError(f"{family.name}{suffix}: {value}")
        if family.type == "info" and value != 1:
            raise ValueError(f"{family.name}: {value}")
    if family.type == "histogram":
        check_histogram(family)


def describe(families, line):
    """Takes a line "# HELP ...", "# TYPE ..." or "# UNIT ..."; returns its family."""
    words = line.split(" ", 3)
    if len(words) != 4 or words[1] not in ("HELP", "TYPE", "UNIT") or not NAME.match(words[2]):
        raise ValueError(f"not a line of a family: {line!r}")
    if words[2] not in families:
        families[words[2]] = Family(words[2])
    family = families[words[2]]
    field = words[1].lower()
    if family.samples or getattr(family, field) is not None:
        raise ValueError(f"late or repeated: {line!r}")
    setattr(family, field, words[3])
    return family


def sample(family, line):
    name = re.match(r"[^{ ]*", line).group(0)
    if family is None or not NAME.match(name) or not name.startswith(family.name):
        raise ValueError(f"outside of its family: {line!r}")
    suffix = name[len(family.name):]
    if suffix not in SUFFIXES[family.type]:
        raise ValueError(f"a {family.type} has no {suffix!r}: {line!r}")
    labels, rest = labels_of(line[len(name):]) if line[len(name)] == "{" else ({}, line[len(name):])
    if not rest.startswith(" "):
        raise ValueError(f"no space before the value: {line!r}")
    family.samples.append((suffix, labels, number(rest[1:])))


def parse(text):
    """{name: Family} of a whole exposition."""
    if not text.endswith("# EOF\n") or "\r" in text or "\t" in text:
        raise ValueError("no end mark, or other white space")
    families, family = {}, None
    for line in text.removesuffix("# EOF\n").splitlines():
        if line == "":
            raise ValueError("an empty line")
        if line.startswith("#"):
            described = describe(families, line)
            if described is not family and described.samples:
                raise ValueError(f"a family in two parts: {line!r}")
            family = described
        else:
            sample(family, line)
    for known in families.values():
        check(known)
    return families
