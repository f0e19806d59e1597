#!/usr/bin/python3
"""Counts what a `meson test` run did, case by case, for tools/check.

Usage: test_summary.py BUILD_DIR

Reads meson-logs/testlog.json and, for each GoogleTest program, the XML file that it left in BUILD_DIR. Prints what
failed and what was skipped, with the reason, on standard error; and on standard output one line
"PASSED FAILED SKIPPED".

A program that ended badly without naming a failed case (a crash, a time-out, a sanitizer's report at exit) counts as
one failure, whatever its cases say.
"""

import collections
import json
import pathlib
import sys
import xml.etree.ElementTree


class Counts:
    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = collections.Counter()  # by reason

    def add_case(self, program, case):
        name = f'{program}: {case.get("classname")}.{case.get("name")}'
        skipped = case.find('skipped')
        if case.find('failure') is not None or case.find('error') is not None:
            self.failures.append(name)
            return False
        if skipped is not None or case.get('status') == 'notrun':
            reason = 'disabled' if skipped is None else skipped.get('message') or 'no reason given'
            # GoogleTest puts the place in the source before what was said.
            self.skips[f'{program}: {reason.strip().splitlines()[-1]}'] += 1
            return True
        self.passed += 1
        return True


def last_line(test):
    text = (test.get('stdout') or '') + '\n' + (test.get('stderr') or '')
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else 'no reason given'


def add_program(counts, build, test):
    name = test['name'].split(' / ')[-1]
    name = name.split(':', 1)[-1]
    good = test['result'] in ('OK', 'EXPECTEDFAIL')
    report = build / f'{name}.xml'
    if report.exists():
        before = len(counts.failures)
        try:
            for case in xml.etree.ElementTree.parse(report).iter('testcase'):
                counts.add_case(name, case)
        except xml.etree.ElementTree.ParseError:
            good = False
        if not good and len(counts.failures) == before:
            counts.failures.append(f'{name}: {test["result"]}: {last_line(test)}')
    elif test['result'] == 'SKIP':
        counts.skips[f'{name}: {last_line(test)}'] += 1
    elif good:
        counts.passed += 1
    else:
        counts.failures.append(f'{name}: {test["result"]}: {last_line(test)}')


def main():
    build = pathlib.Path(sys.argv[1])
    counts = Counts()
    with open(build / 'meson-logs' / 'testlog.json', encoding='utf-8') as log:
        for line in log:
            add_program(counts, build, json.loads(line))
    for failure in counts.failures:
        print(f'   FAILED  {failure}', file=sys.stderr)
    for reason, number in sorted(counts.skips.items()):
        print(f'   skipped {number} of {reason}', file=sys.stderr)
    print(counts.passed, len(counts.failures), sum(counts.skips.values()))


if __name__ == '__main__':
    main()
