#!/usr/bin/python3
"""Checks rules of the source tree that a compiler does not check. Run by tools/check from the top of the tree.

- A source file or script has at most 500 lines, a function of C++ at most 60 (80 if it contains a switch).
- Layers: tools -> fs -> frame -> codec; a layer includes only itself and the layers to its right. The directories of
  a layer have an order, too: DIRECTORIES. Only fs/fuse includes FUSE headers (and tests/bench, which has its own server to
  compare with).
- No reinterpret_cast outside the byte helpers, except to characters; no TODO comments.

Prints one line for each offence; exit status 1 if there is one.
"""

import pathlib
import re
import sys

MOST_LINES = 500
MOST_FUNCTION_LINES = 60
MOST_SWITCH_LINES = 80

SOURCE_SUFFIXES = ('.cc', '.h', '.cpp', '.hpp')

LAYERS = ['codec', 'frame', 'fs', 'tools']
# A directory includes only itself and the directories before it.
DIRECTORIES = [
    'codec/base', 'codec/format', 'codec/filter', 'codec/stream', 'codec',
    'frame/base', 'frame/io', 'frame/container', 'frame/cframe', 'frame/compat', 'frame/numpy', 'frame/array', 'frame/open',
    'frame/write', 'frame/repair', 'frame/store',
    'fs/util', 'fs/caller', 'fs/kernel', 'fs/read', 'fs/write', 'fs/tree',
    'fs/mount', 'fs/coherence', 'fs/frames', 'fs/files', 'fs/attributes', 'fs/names', 'fs', 'fs/fuse',
    'tools', 'tools/lib', 'tools/stream', 'tools/cframe', 'tools/cframefs',
]
# The adapter keeps a pointer in the 64 bits that the kernel returns with each call on an open file.
MAY_CAST = {'codec/base/bytes.h', 'fs/fuse/fuse_requests.h'}
# Bytes may be cast to characters, which C libraries need.
CHARACTERS = re.compile(r'^(?:const )?char\s*\*$')

# The text before the brace of a block that is not a function's body.
NO_FUNCTION = re.compile(r'^\s*(?:template\s*<.*>\s*)?(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b')
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def blank(match):
    """Replaces a comment or literal by spaces and keeps line breaks. (A quote after a digit, 1'000, begins no literal.)"""
    text = match.group(0)
    return re.sub(r'[^\n]', ' ', text)


def functions(source):
    """Yields (first line, last line, has switch) of every block that is not a type, a namespace or an initialiser."""
    source = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", '_', source)
    source = TOKEN.sub(blank, source)
    source = re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', lambda found: re.sub(r'[^\n]', ' ', found.group(0)), source,
                    flags=re.MULTILINE)
    stack = []
    head_begin = 0
    line = 1
    parentheses = 0
    for position, char in enumerate(source):
        if char == '\n':
            line += 1
        elif char == '{':
            head = source[head_begin:position]
            first = line - head.lstrip().count('\n')
            is_body = not NO_FUNCTION.match(head.strip()) and not head.rstrip().endswith(('=', ',', '(', 'return', '{'))
            stack.append((first, position, is_body, parentheses))
            head_begin = position + 1
            parentheses = 0
        elif char == '}' and stack:
            first, begin, is_body, parentheses = stack.pop()
            head_begin = position + 1
            if is_body:
                yield first, line, re.search(r'\bswitch\b', source[begin:position]) is not None
        elif char == '(':
            parentheses += 1
        elif char == ')':
            parentheses -= 1
        elif char == ';' and parentheses <= 0:
            head_begin = position + 1


def offences(path):
    text = path.read_text(encoding='utf-8')
    name = path.as_posix()
    yield from length_offences(name, text)
    if path.suffix not in SOURCE_SUFFIXES:
        return
    lines = text.splitlines()
    outermost_end = 0
    for first, last, has_switch in sorted(functions(text)):
        most = MOST_SWITCH_LINES if has_switch else MOST_FUNCTION_LINES
        length = last - first + 1
        if length > most and first > outermost_end:
            outermost_end = last
            yield f'{name}:{first}: a function of {length} lines, at most {most}'
    layer = path.parts[0]
    for number, line in enumerate(lines, 1):
        yield from (f'{name}:{number}: {reason}' for reason in line_offences(name, layer, line))


def length_offences(name, text):
    lines = len(text.splitlines())
    if lines > MOST_LINES:
        yield f'{name}: {lines} lines, at most {MOST_LINES}'


def is_script(path):
    if path.suffix or not path.is_file():
        return path.suffix in ('.py', '.sh')
    with path.open('rb') as file:
        return file.read(2) == b'#!'


def line_offences(name, layer, line):
    include = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
    if include:
        here = str(pathlib.PurePosixPath(name).parent)
        there = str(pathlib.PurePosixPath(include.group(1)).parent)
        top = include.group(1).split('/')[0]
        if layer in LAYERS and here not in DIRECTORIES:
            yield f'{here} is not in DIRECTORIES'
        elif layer in LAYERS and top in LAYERS and there not in DIRECTORIES:
            yield f'{there} is not in DIRECTORIES'
        elif layer in LAYERS and top in LAYERS and DIRECTORIES.index(there) > DIRECTORIES.index(here):
            yield f'{here} includes {include.group(1)}, which comes after it in DIRECTORIES'
        if layer in LAYERS and top == 'tests':
            yield 'includes a test'
        if re.match(r'fuse', top) and here != 'fs/fuse' and not name.startswith('tests/'):
            yield f'{here} includes a FUSE header'
    code = line.split('//')[0]
    casts = re.findall(r'reinterpret_cast<([^>]*)>', code)
    if layer in LAYERS and name not in MAY_CAST and any(not CHARACTERS.match(cast) for cast in casts):
        yield 'reinterpret_cast outside the byte helpers'
    if re.search(r'\b(?:TODO|FIXME|XXX|HACK)\b', line):
        yield 'a TODO comment'


def main():
    files = sorted(path for directory in LAYERS + ['tests'] for path in pathlib.Path(directory).rglob('*')
                   if path.suffix in SOURCE_SUFFIXES or is_script(path))
    found = [offence for path in files for offence in offences(path)]
    for offence in found:
        print(offence)
    if not files:
        print('no source file found: not at the top of the tree?')
    sys.exit(1 if found or not files else 0)


if __name__ == '__main__':
    main()
