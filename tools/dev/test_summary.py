#!/usr/bin/python3
"""Counts the test cases of a `meson test` run, for tools/check.

Usage: test_summary.py BUILD_DIR

Reads meson-logs/testlog.json, which contains the output of each program. Counts the cases of GoogleTest programs one
by one, and any other program as one case. Prints failed and skipped cases, with the reason, to standard error, and
one line "PASSED FAILED SKIPPED" to standard output. The reason of a failed case is the first lines of what it says:
a log of the whole run may be cut before the program's own output.

A program that failed without naming a failed case (a crash, a time-out, a sanitizer's report at exit) counts as
one failure, in addition to its cases.
"""

import collections
import json
import pathlib
import re
import sys

CASE = re.compile(r'^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \(\d+ ms\)$')
SKIPPED_AT = re.compile(r'^.*: Skipped$')
FAILED_AT = re.compile(r'^.*: Failure$')
# Of a program in Python: the case, and what it asserted. A sanitizer's finding in a program that it runs.
REASON = re.compile(r'^(FAIL|ERROR): |^\w*(Error|Exception)\b.*: |.*(ERROR: \w+Sanitizer|runtime error): ')
REASON_LINES, REASON_WIDTH = 8, 300


class Counts:
    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = collections.Counter()  # by program and reason


def lines_of(test):
    return ((test.get('stdout') or '') + '\n' + (test.get('stderr') or '')).splitlines()


def last_line(test):
    lines = [line.strip() for line in lines_of(test) if line.strip()]
    return lines[-1] if lines else 'no reason given'


def first_of(lines):
    """The beginning of a reason, as lines to be printed below what failed."""
    return ''.join('\n           ' + line[:REASON_WIDTH] for line in lines[:REASON_LINES])


def add_cases(counts, name, output):
    """Adds the cases of a GoogleTest program; returns how many there were."""
    found = 0
    reason = None
    failed_at = None  # the line of the first failure of this case
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if SKIPPED_AT.match(line) and number + 1 < len(lines):
            reason = lines[number + 1].strip()
        if FAILED_AT.match(line) and failed_at is None:
            failed_at = number
        case = CASE.match(line)
        if not case:
            continue
        found += 1
        if case.group(1) == 'OK':
            counts.passed += 1
        elif case.group(1) == 'FAILED':
            said = [] if failed_at is None else lines[failed_at:number]
            counts.failures.append(f'{name}: {case.group(2)}{first_of(said)}')
        else:
            counts.skips[f'{name}: {reason or "no reason given"}'] += 1
        reason = None
        failed_at = None
    return found


def add_program(counts, test):
    name = re.split(r'[ /:]+', test['name'])[-1]
    good = test['result'] in ('OK', 'EXPECTEDFAIL')
    before = len(counts.failures)
    found = add_cases(counts, name, test.get('stdout') or '')
    if test['result'] == 'SKIP':
        if found == 0:
            counts.skips[f'{name}: {last_line(test)}'] += 1
    elif not good and len(counts.failures) == before:
        said = [line for line in lines_of(test) if REASON.match(line)]
        counts.failures.append(f'{name}: {test["result"]}: {last_line(test)}{first_of(said)}')
    elif good and found == 0:
        counts.passed += 1


def main():
    counts = Counts()
    with open(pathlib.Path(sys.argv[1]) / 'meson-logs' / 'testlog.json', encoding='utf-8') as log:
        for line in log:
            add_program(counts, json.loads(line))
    for failure in counts.failures:
        print(f'   FAILED  {failure}', file=sys.stderr)
    for reason, number in sorted(counts.skips.items()):
        print(f'   skipped {number} of {reason}', file=sys.stderr)
    print(counts.passed, len(counts.failures), sum(counts.skips.values()))


if __name__ == '__main__':
    main()
