#!/usr/bin/python3
"""Checks rules of the source tree that a compiler does not check. Run by tools/check from the top of the tree.

- A source file or script has at most 500 lines, a function of C++ at most 60 (80 if it contains a switch).
- A class has at most 20 public members: functions and data by name, overloads once. Constructors, the destructor,
  assignments, deleted functions, overrides of an interface, types and friends do not count.
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
MOST_PUBLIC_MEMBERS = 20

SOURCE_SUFFIXES = ('.cc', '.h', '.cpp', '.hpp')

LAYERS = ['codec', 'frame', 'fs', 'tools']
# A directory includes only itself and the directories before it.
DIRECTORIES = [
    'codec/base', 'codec/format', 'codec/filter', 'codec/stream', 'codec',
    'frame/base', 'frame/io', 'frame/container', 'frame/cframe', 'frame/compat', 'frame/numpy', 'frame/array', 'frame/open',
    'frame/write', 'frame/repair', 'frame/store',
    'frame/remote/http', 'frame/remote/access', 'frame/remote/objects', 'frame/remote/listings', 'frame/remote/publishing',
    'frame/remote',
    'fs/util', 'fs/sandbox', 'fs/caller', 'fs/kernel', 'fs/read', 'fs/write', 'fs/tree',
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


def code_of(source):
    """Returns the source with comments, literals and preprocessor lines blanked."""
    source = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", '_', source)
    source = TOKEN.sub(blank, source)
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, source, flags=re.MULTILINE)


def functions(source):
    """Yields (first line, last line, has switch) of every block of code_of() that is not a type, a namespace or an
    initialiser."""
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


TYPE = re.compile(r'(?<!enum )\b(?:class|struct|union)\s+(?:\w+\([^()]*\)\s*|\[\[.*?\]\]\s*)?'
                  r'(?P<name>\w+)\s*(?:<[^;{}()]*>)?\s*(?:final\s*)?(?::(?!:)[^;{}()]*)?\{')
NO_MEMBER = re.compile(r'(?:using|typedef|friend|static_assert)\b|(?:enum(?:\s+class)?|class|struct|union)\b'
                       r'\s*\w*\s*(?:final\s*)?(?::[^:].*)?(?:\{\})?$', re.DOTALL)
ACCESS = re.compile(r'\s*(public|protected|private)\s*:(?!:)')


def statements(code, begin):
    """Yields the declarations of the class whose body begins at `begin`, with the contents of () and {} left out."""
    depth = 0
    text = ''
    for position in range(begin, len(code)):
        char = code[position]
        if char in ')}':
            depth -= 1
        if depth < 0:
            return
        if depth == 0 and char != ';':
            text += char
        if char in '({':
            depth += 1
        ends = char == ';' or (char == '}' and not re.match(r'\s*[,;{]', code[position + 1:]))
        if depth == 0 and ends:
            yield text
            text = ''


def without_angles(text):
    previous = None
    while previous != text:
        previous, text = text, re.sub(r'<[^<>]*>', ' ', text)
    return text


def declared(statement, class_name):
    """Returns the names that a declaration adds to a class."""
    text = re.sub(r'\boperator\s*(\(\)|\[\]|[^\w\s(]+)', lambda found: 'operator_' + found.group(1).encode().hex(),
                  statement)
    text = re.sub(r'\[\[.*?\]\]|\b[A-Z][A-Z_]+\(\)|\balignas\(\)', ' ', text, flags=re.DOTALL)
    text = without_angles(text).strip()
    text = re.sub(r'^(?:template\s+)+', '', text)
    if not text or NO_MEMBER.match(text) or re.search(r'=\s*delete\s*$|\)[^=]*\b(?:override|final)\b', text):
        return []
    function = re.search(r'([~\w]+)\s*\(', text.split('=')[0])
    if not function:
        declarators = re.sub(r'=[^,]*|\{\}|\[[^\]]*\]|:\s*\d+', ' ', text).split(',')
        return [name for declarator in declarators for name in re.findall(r'(\w+)\s*$', declarator)]
    name = function.group(1)
    return [] if name.startswith('~') or name in (class_name, 'operator_' + b'='.hex()) else [name]


def public_members(code):
    """Yields (line, class, number of public members) of every class of code_of()."""
    for found in TYPE.finditer(code):
        public = code[found.start():].startswith(('struct', 'union'))
        names = set()
        for statement in statements(code, found.end()):
            while label := ACCESS.match(statement):
                public = label.group(1) == 'public'
                statement = statement[label.end():]
            if public:
                names.update(declared(statement, found['name']))
        yield code.count('\n', 0, found.start()) + 1, found['name'], len(names)


def class_offences(name, code):
    for line, class_name, members in public_members(code):
        if members > MOST_PUBLIC_MEMBERS:
            yield f'{name}:{line}: {class_name} has {members} public members, at most {MOST_PUBLIC_MEMBERS}'


def offences(path):
    text = path.read_text(encoding='utf-8')
    name = path.as_posix()
    yield from length_offences(name, text)
    if path.suffix not in SOURCE_SUFFIXES:
        return
    lines = text.splitlines()
    code = code_of(text)
    yield from class_offences(name, code)
    outermost_end = 0
    for first, last, has_switch in sorted(functions(code)):
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
