#!/usr/bin/python3
"""Resolves each citation of a document in comments and documents. Run by tools/check from the top of the tree.

A citation names a document and optionally a section after it: "chunk.md section 4.1", "codecs.md §6, §7". The document
is a path from the top of the tree or from the citing file's directory, or a file name that is unique in the tree.
A section is the number of a heading ("### 4.1 Reading"). Markdown links are checked, too, with their anchors, and the
functions of a walk through the code ("1. `fs/file.cc`, `function`: …").

Prints one line for each citation without a target; exit status 1 if there is one.
"""

import os
import pathlib
import re
import sys

DIRECTORIES = ['codec', 'frame', 'fs', 'tools', 'tests', '.ci']
CITING = {'.cc', '.h', '.py', '.md', '.build', '.scd', '.sh', ''}
DOCUMENT = re.compile(r'(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.md)\b')
SECTIONS = re.compile(r"(?:'s)?,?\s+(?:\(?sections?\s+|§+\s*)(\d+(?:\.\d+)*(?:(?:,| and| to|,? §|–)\s*§?\s*\d+(?:\.\d+)*)*)")
NUMBER = re.compile(r'\d+(?:\.\d+)*')
LINK = re.compile(r'\]\(([^)\s:]+)\)')
STEP = re.compile(r'^\d+\. `([^`]+)`, `(\w+)`:', re.MULTILINE)
HEADING = re.compile(r'^#+\s+(.*)$', re.MULTILINE)
HEADING_NUMBER = re.compile(r'(\d+(?:\.\d+)*)\.?\s')
# Joins the lines of a comment.
CONTINUATION = re.compile(r'\n\s*(?://+|#|"""|\*)?\s*')


def anchor(heading):
    """Returns the anchor that GitHub gives to a heading."""
    return re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')


def beside(citing, name):
    return pathlib.Path(os.path.normpath(citing.parent / name))


class Documents:
    def __init__(self, paths):
        self.headings = {path: HEADING.findall(path.read_text(encoding='utf-8')) for path in paths}

    def find(self, name, citing):
        """Returns the document that a file cites, or None."""
        for path in (pathlib.Path(name), beside(citing, name)):
            if path in self.headings:
                return path
        named = [path for path in self.headings if path.name == name]
        return named[0] if len(named) == 1 else None

    def has_section(self, path, number):
        return any((found := HEADING_NUMBER.match(heading)) and found.group(1) == number
                   for heading in self.headings[path])

    def has_anchor(self, path, name):
        return any(anchor(heading) == name for heading in self.headings[path])


def offences(citing, documents):
    text = citing.read_text(encoding='utf-8')
    joined = CONTINUATION.sub(' ', text) if citing.suffix != '.md' else text.replace('\n', ' ')
    for found in DOCUMENT.finditer(joined):
        path = documents.find(found.group(1), citing)
        if path is None:
            yield f'{citing}: there is no document {found.group(1)}'
            continue
        sections = SECTIONS.match(joined, found.end())
        for number in NUMBER.findall(sections.group(1)) if sections else []:
            if not documents.has_section(path, number):
                yield f'{citing}: {path} has no section {number}'
    if citing.suffix == '.md':
        for target in LINK.findall(text):
            name, _, wanted = target.partition('#')
            linked = beside(citing, name) if name else citing
            if not linked.exists():
                yield f'{citing}: a link to {target}, which does not exist'
            elif wanted and linked in documents.headings and not documents.has_anchor(linked, wanted):
                yield f'{citing}: {linked} has no heading for #{wanted}'


def steps_without_function(citing):
    for name, function in STEP.findall(citing.read_text(encoding='utf-8')):
        path = pathlib.Path(name)
        if not path.exists():
            yield f'{citing}: there is no file {name}'
        elif not re.search(rf'\b{function}\(', path.read_text(encoding='utf-8')):
            yield f'{citing}: {name} has no function {function}'


def main():
    files = [pathlib.Path('README.md'), pathlib.Path('meson.build')]
    for directory in DIRECTORIES:
        files += [path for path in pathlib.Path(directory).rglob('*')
                  if path.is_file() and path.suffix in CITING and 'golden' not in path.parts and 'corpus' not in path.parts
                  and '__pycache__' not in path.parts]
    documents = Documents([path for path in files if path.suffix == '.md'])
    found = [offence for path in sorted(files) for offence in offences(path, documents)]
    found += [offence for path in documents.headings for offence in steps_without_function(path)]
    print(*found, sep='\n', end='\n' if found else '')
    sys.exit(1 if found or not documents.headings else 0)


if __name__ == '__main__':
    main()
