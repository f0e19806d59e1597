#!/usr/bin/python3
"""Holds comments, messages and documents to plain technical English. Run by tools/check from the top of the tree.

The subject of a sentence is a thing that exists in the code (a class, a function, a thread, a caller, a program), and a
thing has one name. The list has the words that say less than a technical term, each with what to write instead.

Prints one line for each offence; exit status 1 if there is one.
"""

import pathlib
import re
import sys

WORDS = {
    'whoever': 'name the thread, caller or program',
    'nobody': 'name the thread, caller or program: "no reader"',
    'somebody': 'another program, another thread',
    'anew': 'again',
    'as ever': 'as before',
    'so many': 'a number, or "this many"',
    'at fault': 'damaged, invalid',
    'put up with': 'tolerated',
    'folder': 'directory',
    'folders': 'directories',
    'he': 'the thread, the caller, the reader',
    'him': 'the thread, the caller, the reader',
    'his': 'of the thread, of the caller, of the reader',
}
LIST = re.compile(r'(?<![\w-])(' + '|'.join(re.escape(word) for word in WORDS) + r')(?![\w-])', re.IGNORECASE)
KINDS = {'.cc', '.h', '.py', '.md', '.scd', '.build', '.sh', '.txt'}
ROOTS = ['codec', 'frame', 'fs', 'tools', 'tests', 'README.md', 'meson.build', 'meson_options.txt']
# Data, and this list.
SKIPPED = ('tests/golden/', 'tests/fuzz/corpus/', 'tools/dev/check_words.py', 'tests/tools/scripts_test.py')


def files():
    for root in map(pathlib.Path, ROOTS):
        yield from sorted(root.rglob('*')) if root.is_dir() else [root]


def main():
    found = 0
    for path in files():
        name = path.as_posix()
        if path.suffix not in KINDS or not path.is_file() or name.startswith(SKIPPED):
            continue
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
            for word in LIST.findall(line):
                print(f'{name}:{number}: "{word}": {WORDS[word.lower()]}')
                found += 1
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
