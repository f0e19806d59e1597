#!/usr/bin/python3
"""Holds fs/doc/semantics.md to the tests, and fs/doc/troubleshooting.md to the sources. Run by tools/check from the top of
the tree.

In semantics.md each list item, paragraph and row of a table is a statement, except before the first section, in the
sections of FREE and in a paragraph that ends with a colon. A statement has an identifier: "[N4]" at its end, or "N4" in
the first cell of its row. A test names the statements that it shows in a comment of its own, alone in its line:
"semantics: N4, N7" after # within a Python test, or after // above a C++ test. The section NOT_TESTED lists the
statements that no test here can show, with the reason.

In troubleshooting.md the first cell of each row holds messages in backquotes, "…" where a message varies. What is
literal must occur in a string literal of the program, or for the section ERRNO be the text of the errno after it.

Prints one line for each offence; exit status 1 if there is one.
"""

import errno
import os
import pathlib
import re
import sys

SEMANTICS = pathlib.Path('fs/doc/semantics.md')
TROUBLESHOOTING = pathlib.Path('fs/doc/troubleshooting.md')
FREE = {'Words', 'Results of test suites'}
NOT_TESTED = 'Statements without a test'
ERRNO = 'Errors that programs get'
FOREIGN = 'Messages of other programs'
PROGRAMS = ['codec', 'frame', 'fs', 'tools']

HEADING = re.compile(r'(#+)\s+(.*)')
IDENTIFIER = re.compile(r'[A-Z]\d+')
AT_END = re.compile(r'\[([A-Z]\d+)\]$')
ITEM = re.compile(r'(?:[-*]|\d+\.) ')
MARKER = re.compile(r'\s*(?:#|//+) semantics:(.*)')
IDENTIFIERS = re.compile(r' [A-Z]\d+(?:, [A-Z]\d+)*')
PYTHON_BLOCK = re.compile(r'\s*(?:async )?(?:def|class) (\w+)')
CPP_TEST = re.compile(r'(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(')
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SPAN = re.compile(r'`([^`]+)`')
SHORTEST = 4  # letters of a literal part that are looked for


def cells(row):
    return [cell.strip() for cell in row.strip().strip('|').split('|')]


def blocks(text):
    """Yields (line, section, block): rows of tables without their heads, list items, paragraphs. A section is the heading
    of the second level."""
    section, block, first, is_head, fenced = None, '', 0, False, False
    for number, line in enumerate([*text.splitlines(), ''], 1):
        stripped = line.strip()
        if stripped.startswith('```'):
            fenced = not fenced
        is_row = stripped.startswith('|') and not fenced
        heading = None if fenced else HEADING.match(line)
        if block and (not stripped or is_row or heading or ITEM.match(stripped)):
            yield first, section, block
            block = ''
        if is_row:
            is_rule = set(stripped) <= set('|-: ')
            if not is_rule and is_head:
                yield number, section, stripped
            is_head = is_head or is_rule
            continue
        is_head = False
        if heading:
            section = heading.group(2) if len(heading.group(1)) == 2 else section
        elif stripped and not fenced and not stripped.startswith('```'):
            first = first if block else number
            block = f'{block} {stripped}' if block else stripped


def identifier_of(block):
    """The identifier of a statement, or None."""
    if block.startswith('|'):
        first = cells(block)[0]
        return first if IDENTIFIER.fullmatch(first) else None
    found = AT_END.search(block)
    return found.group(1) if found else None


def statements(text):
    """({identifier: line}, {identifier without a test: line}, offences) of semantics.md."""
    defined, untested, offences = {}, {}, []
    for line, section, block in blocks(text):
        if section is None or section in FREE or block.endswith(':'):
            continue
        where = f'{SEMANTICS}:{line}'
        identifier = identifier_of(block)
        known = untested if section == NOT_TESTED else defined
        if identifier is None:
            offences.append(f'{where}: a statement without an identifier: {block[:60]}')
        elif identifier in known:
            offences.append(f'{where}: {identifier} is also the identifier of line {known[identifier]}')
        else:
            known[identifier] = line
            if known is untested and not all(cells(block)[1:]):
                offences.append(f'{where}: no reason why {identifier} has no test')
    return defined, untested, offences


def is_in_test(path, lines, at):
    """Whether a marker in this line belongs to a test."""
    if path.suffix == '.py':
        above = next((found.group(1) for line in reversed(lines[:at]) if (found := PYTHON_BLOCK.match(line))), '')
        return above.startswith('test_')
    below = next((line for line in lines[at:] if not line.lstrip().startswith('//')), '')
    return CPP_TEST.match(below) is not None


def named_by_tests():
    """({identifier: place}, offences) of the comments in tests."""
    named, offences = {}, []
    for path in sorted(pathlib.Path('tests').rglob('*')):
        if path.suffix not in ('.py', '.cc', '.h') or 'golden' in path.parts:
            continue
        lines = path.read_text(encoding='utf-8').splitlines()
        for at, line in enumerate(lines):
            marker = MARKER.match(line)
            if not marker:
                continue
            where = f'{path}:{at + 1}'
            if not IDENTIFIERS.fullmatch(marker.group(1)):
                offences.append(f'{where}: not a list of identifiers:{marker.group(1)}')
            elif not is_in_test(path, lines, at):
                offences.append(f'{where}: this comment belongs to no test')
            else:
                for identifier in IDENTIFIER.findall(marker.group(1)):
                    named.setdefault(identifier, where)
    return named, offences


def semantics_offences():
    defined, untested, offences = statements(SEMANTICS.read_text(encoding='utf-8'))
    named, of_tests = named_by_tests()
    offences += of_tests
    for identifier, line in defined.items():
        if identifier not in named and identifier not in untested:
            offences.append(f'{SEMANTICS}:{line}: no test names {identifier}')
    for identifier, where in named.items():
        if identifier not in defined:
            offences.append(f'{where}: {SEMANTICS} has no statement {identifier}')
    for identifier, line in untested.items():
        if identifier not in defined:
            offences.append(f'{SEMANTICS}:{line}: there is no statement {identifier}')
        elif identifier in named:
            offences.append(f'{SEMANTICS}:{line}: {named[identifier]} is a test of {identifier}')
    return offences if defined else [*offences, f'{SEMANTICS}: no statement found']


def literals_of_programs():
    """All string literals, those that the compiler joins as one, in one text."""
    found = []
    for directory in PROGRAMS:
        for path in sorted(pathlib.Path(directory).rglob('*')):
            if path.suffix in ('.cc', '.h') or path.name == 'mount.cframefs':
                text = path.read_text(encoding='utf-8')
                text = re.sub(r'^\s*//.*$', '', text, flags=re.MULTILINE)
                found += STRING.findall(re.sub(r'(?<!\\)"\s*\n\s*"', '', text))
    return '\n'.join(found)


def message_offences(section, message, row, literals):
    if section == FOREIGN:
        return
    if section == ERRNO:
        name = row[1].strip('`')
        if not hasattr(errno, name) or os.strerror(getattr(errno, name)) != message:
            yield f'"{message}" is not the text of {name}'
        return
    parts = [part for part in message.split('…') if len(re.sub(r'\W', '', part)) >= SHORTEST]
    if not parts:
        yield f'"{message}" has no literal part of {SHORTEST} letters'
    for part in parts:
        if part not in literals:
            yield f'no string of the program contains "{part}"'


def troubleshooting_offences():
    literals, offences, messages = literals_of_programs(), [], 0
    for line, section, block in blocks(TROUBLESHOOTING.read_text(encoding='utf-8')):
        if not block.startswith('|'):
            continue
        row = cells(block)
        where = f'{TROUBLESHOOTING}:{line}'
        spans = SPAN.findall(row[0])
        messages += len(spans)
        if not spans:
            offences.append(f'{where}: no message in backquotes: {row[0]}')
        if len(row) < 3 or not all(row):
            offences.append(f'{where}: a row lacks a cell: {row[0]}')
            continue
        for message in spans:
            offences += [f'{where}: {offence}' for offence in message_offences(section, message, row, literals)]
    return offences if messages else [*offences, f'{TROUBLESHOOTING}: no message found']


def main():
    offences = semantics_offences() + troubleshooting_offences()
    print(*offences, sep='\n', end='\n' if offences else '')
    sys.exit(1 if offences else 0)


if __name__ == '__main__':
    main()
