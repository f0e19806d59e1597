"""The scripts of tools/: what they count, what they refuse, and what the mount helper makes of mount(8)'s call."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / 'tools'


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


class Directory(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='cframefs-test-'))
        self.addCleanup(shutil.rmtree, self.directory)

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
        return path


class TestSummary(Directory):
    def summary(self, *programs):
        self.write('meson-logs/testlog.json', '\n'.join(json.dumps(program) for program in programs))
        ran = run([sys.executable, TOOLS / 'dev/test_summary.py', self.directory])
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.split(), ran.stderr

    def test_counts_the_cases_of_googletest(self):
        output = ('[ RUN      ] A.One\n[       OK ] A.One (3 ms)\n'
                  '[ RUN      ] A.Two\nfoo.cc:1: Failure\n[  FAILED  ] A.Two (0 ms)\n'
                  '[ RUN      ] A.Three\nfoo.cc:9: Skipped\nno /dev/fuse\n\n[  SKIPPED ] A.Three (0 ms)\n'
                  '[ RUN      ] P/A.Four/0\n[  FAILED  ] P/A.Four/0, where GetParam() = "x y" (0 ms)\n'
                  '[  PASSED  ] 1 test.\n[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.Two\n')
        counts, text = self.summary({'name': 'cframefs:codec / a_test', 'result': 'FAIL', 'stdout': output})
        self.assertEqual(counts, ['1', '2', '1'])
        self.assertIn('FAILED  a_test: A.Two', text)
        self.assertIn('skipped 1 of a_test: no /dev/fuse', text)

    def test_tells_why_a_case_failed(self):
        long = ''.join(f'line {number}\n' for number in range(20))
        output = ('[ RUN      ] A.One\nfoo.cc:1: Failure\nValue of: one\n[  FAILED  ] A.One (0 ms)\n'
                  f'[ RUN      ] A.Two\nbar.cc:2: Failure\n{long}bar.cc:3: Failure\n[  FAILED  ] A.Two (0 ms)\n'
                  '[ RUN      ] A.Three\n[  FAILED  ] A.Three (0 ms)\n')
        _, text = self.summary({'name': 'a_test', 'result': 'FAIL', 'stdout': output})
        lines = [line.strip() for line in text.splitlines()]
        self.assertEqual(lines, ['FAILED  a_test: A.One', 'foo.cc:1: Failure', 'Value of: one', 'FAILED  a_test: A.Two',
                                 'bar.cc:2: Failure', *(f'line {number}' for number in range(7)),
                                 'FAILED  a_test: A.Three'])

    def test_tells_the_assertions_of_a_program_in_python(self):
        output = ('==7==ERROR: AddressSanitizer: x\nFAIL: test_x (a=1)\n  File "x.py"\nAssertionError: 1 != 2\n\n'
                  'ERROR: test_y\nOSError: [Errno 5] y: z\nFAILED (failures=2)\n')
        _, text = self.summary({'name': 'x_mount', 'result': 'FAIL', 'stderr': output})
        lines = [line.strip() for line in text.splitlines()]
        self.assertEqual(lines, ['FAILED  x_mount: FAIL: FAILED (failures=2)', '==7==ERROR: AddressSanitizer: x',
                                 'FAIL: test_x (a=1)', 'AssertionError: 1 != 2', 'ERROR: test_y', 'OSError: [Errno 5] y: z'])

    def test_a_crash_is_a_failure_whatever_passed_before(self):
        counts, text = self.summary(
            {'name': 'a', 'result': 'FAIL', 'stdout': '[       OK ] A.One (3 ms)\n', 'stderr': 'SUMMARY: leak\n'},
            {'name': 'b', 'result': 'TIMEOUT', 'stdout': ''},
            {'name': 'c', 'result': 'ERROR'})
        self.assertEqual(counts, ['1', '3', '0'])
        self.assertIn('a: FAIL: SUMMARY: leak', text)

    def test_other_programs_count_once(self):
        counts, text = self.summary(
            {'name': 'a', 'result': 'OK', 'stdout': 'fine\n'},
            {'name': 'b', 'result': 'SKIP', 'stdout': 'no seeds here\n'})
        self.assertEqual(counts, ['1', '0', '1'])
        self.assertIn('b: no seeds here', text)

    def test_no_log_is_an_error(self):
        self.assertNotEqual(run([sys.executable, TOOLS / 'dev/test_summary.py', self.directory]).returncode, 0)


class CheckLayout(Directory):
    def offences(self, name, text):
        path = self.write(name, text)
        ran = run([sys.executable, TOOLS / 'dev/check_layout.py'], cwd=self.directory)
        path.unlink()
        self.assertEqual(ran.returncode != 0, bool(ran.stdout))
        return ran.stdout

    def test_good_source_passes(self):
        table = 'constexpr std::array kTable = {\n' + '  1,\n' * 80 + '};\n'
        members = 'class A {\n' + '  int a = 1;\n' * 80 + '};\n'
        self.assertEqual(self.offences('codec/a.cc', '#include "codec/a.h"\n' + table + members), '')

    def test_long_functions(self):
        body = '  a += 1;\n' * 59
        self.assertEqual(self.offences('fs/a.cc', 'int f(int a) {\n' + body[10:] + '}\n'), '')
        self.assertIn('fs/a.cc:2: a function of 62 lines',
                      self.offences('fs/a.cc', 'namespace a {\nint f(int a,\n      char b = \'{\') {\n' + body + '}\n}\n'))
        self.assertIn('function', self.offences('fs/a.h', 'class A {\n  int f() {\n' + body + '  }\n};\n'))

    def test_long_files(self):
        self.assertIn('501 lines', self.offences('frame/io/a.h', '// x\n' * 501))
        for script in ('tests/fs/a_mount.py', 'tools/dev/a.sh', 'tools/a'):
            self.assertIn(f'{script}: 501 lines', self.offences(script, '#!/bin/sh\n' * 501))
            self.assertNotIn('501', self.offences(script, '#!/bin/sh\n' * 500))

    def test_classes_with_many_public_members(self):
        def members(count):
            return ''.join(f'  int f{i}(int a) const {{ return a; }}\n' for i in range(count))
        few = 'class A {\n public:\n' + members(20) + '};\n'
        many = 'namespace a {\nclass A final : public B {\n public:\n' + members(21) + '};\n}\n'
        for name in ('codec/a.h', 'frame/io/a.h', 'fs/a.cc', 'tools/lib/a.h', 'tests/fs/a.h'):
            self.assertEqual(self.offences(name, few + many.replace('class A', 'class B')),
                             f'{name}:25: B has 21 public members, at most 20\n')
        private = 'class A {\n' + members(30) + ' public:\n' + members(20) + '};\n'
        template = 'template <typename T>\nstruct B {\n' + members(20) + '  int a = 1;\n};\n'
        two = 'struct C {\n' + members(20) + '  std::map<int, int> a{}, b;\n};\n'
        self.assertEqual(self.offences('fs/a.h', private + template + two),
                         'fs/a.h:55: B has 21 public members, at most 20\n'
                         'fs/a.h:78: C has 22 public members, at most 20\n')

    def test_what_is_a_public_member(self):
        members = ''.join(f'  int f{i}();\n' for i in range(20))
        uncounted = (
            'A() = default;', 'explicit A(int a) : a_{a}, b_(a) { f(); }', '~A();', 'A(const A&) = delete;',
            'A& operator=(A&& other) { return *this; }', 'void f20() = delete;', 'void f21() override;',
            'bool f22(int) const override { return {}; }', 'using B = int;', 'friend class C;', 'friend void c(A a);',
            'struct D { int a; int b; };', 'class E;', 'enum class F : char { a, b };', 'static_assert(sizeof(int) == 4);',
            'int f3(double a);', '// int f23();', 'private:\n  int f24();\n public:')
        self.assertEqual(self.offences('fs/a.h', 'class A {\n public:\n' + members + '\n'.join(uncounted) + '};\n'), '')
        counted = (
            'bool operator==(const A& a) const;', 'explicit operator bool() const { return true; }', 'struct stat a {};',
            'template <typename T> T f20(T a = {1, 2});', 'static constexpr int kA = 1 << 3;',
            'std::function<void(int)> a = [](int) {};', 'int a GUARDED_BY(mutex_) = 0;', 'virtual void f20() = 0;',
            'int f20() REQUIRES(mutex_);', 'int a[3];', '[[nodiscard]] std::pair<int, int> f20() const;')
        classes = ''.join(f'class A{i} {{\n public:\n{members}{text}\n}};\n' for i, text in enumerate(counted))
        refused = ''.join(f'fs/a.h:{24 * i + 1}: A{i} has 21 public members, at most 20\n' for i in range(len(counted)))
        self.assertEqual(self.offences('fs/a.h', classes), refused)

    def test_layers(self):
        self.assertIn('comes after it', self.offences('codec/a.cc', '#include "frame/container/container.h"\n'))
        self.assertIn('comes after it', self.offences('frame/io/a.cc', '#include "fs/util/options.h"\n'))
        self.assertIn('FUSE', self.offences('tools/lib/a.cc', '#include <fuse_lowlevel.h>\n'))
        self.assertIn('FUSE', self.offences('fs/a.cc', '#include <fuse_lowlevel.h>\n'))
        self.assertEqual(
            self.offences('fs/fuse/a.cc', '#include <fuse_lowlevel.h>\n#include "frame/open/open.h"\n'), '')

    def test_sub_directories(self):
        self.assertIn('comes after it', self.offences('frame/io/a.cc', '#include "frame/open/open.h"\n'))
        self.assertEqual(self.offences('frame/open/a.cc', '#include "frame/io/file_ops.h"\n'), '')
        self.assertIn('not in DIRECTORIES', self.offences('frame/new/a.cc', '#include "frame/io/file_ops.h"\n'))
        self.assertIn('not in DIRECTORIES', self.offences('frame/open/a.cc', '#include "frame/file_ops.h"\n'))

    def test_casts(self):
        self.assertIn('reinterpret_cast', self.offences('codec/a.cc', 'auto x = reinterpret_cast<int*>(y);\n'))
        self.assertEqual(self.offences('codec/a.cc', 'auto x = reinterpret_cast<const char*>(y);\n'), '')


class CheckWords(Directory):
    def offences(self, name, text):
        self.write('README.md', '')
        path = self.write(name, text)
        ran = run([sys.executable, TOOLS / 'dev/check_words.py'], cwd=self.directory)
        path.unlink()
        self.assertEqual(ran.returncode != 0, bool(ran.stdout))
        return ran.stdout

    def test_plain_words_pass(self):
        self.assertEqual(self.offences('fs/a.cc', '// The cache evicts a block. There it is: whose, hex, this.\n'), '')
        self.assertEqual(self.offences('tests/golden/a.txt', 'nobody\n'), '')

    def test_each_kind_of_file(self):
        for name in ('codec/a.cc', 'frame/io/a.h', 'fs/a.txt', 'tools/cframe/cframe.1.scd', 'tests/fs/a_mount.py'):
            self.assertEqual(self.offences(name, 'a\nNobody reads it.\n'),
                             f'{name}:2: "Nobody": name the thread, caller or program: "no reader"\n')

    def test_every_word(self):
        for text in ('whoever', 'Somebody else', 'made anew', 'as ever', 'so many', 'is at fault', 'put up with',
                     'the folder', 'folders', 'he reads', 'him', 'his'):
            self.assertNotEqual(self.offences('fs/a.cc', f'// {text}\n'), '', text)


class CheckCitations(Directory):
    def offences(self, walk):
        self.write('README.md', '# A tree\n')
        self.write('meson.build', '')
        self.write('fs/a.cc', 'int read_frame(int at) {}\n')
        self.write('fs/README.md', walk)
        ran = run([sys.executable, TOOLS / 'dev/check_citations.py'], cwd=self.directory)
        self.assertEqual(ran.returncode != 0, bool(ran.stdout))
        return ran.stdout

    def test_a_walk_names_functions_of_files(self):
        self.assertEqual(self.offences('1. `fs/a.cc`, `read_frame`: reads.\n'), '')
        self.assertEqual(self.offences('1. `fs/b.cc`, `read_frame`: reads.\n'), 'fs/README.md: there is no file fs/b.cc\n')
        self.assertEqual(self.offences('12. `fs/a.cc`, `read`: reads.\n'), 'fs/README.md: fs/a.cc has no function read\n')


class CheckSemantics(Directory):
    DOCUMENT = """# Semantics

Free text.

## Tenets

In this order:

1. **Exact.** A read is
   exact. [T1]

## Words

A word is free.

## read

- A read reads. [R1]

| id | call | answer |
|---|---|---|
| R2 | a bad read | EIO |

## Statements without a test

| id | reason |
|---|---|
| R2 | no machine has it |
"""
    TEST = 'def test_a():\n    # semantics: T1, R1\n    pass\n'
    MESSAGES = '| message | cause | action |\n|---|---|---|\n'
    SOURCE = 'const char* a = "unknown option \'" + name + "\' of "\n    "a mount";\n'

    def offences(self, document=DOCUMENT, test=TEST, messages='', name='tests/a_test.py'):
        self.write('fs/doc/semantics.md', document)
        self.write('fs/doc/troubleshooting.md', f"{self.MESSAGES}{messages or '| `unknown option …` | a | b |'}\n")
        self.write('fs/a.cc', self.SOURCE)
        path = self.write(name, test)
        ran = run([sys.executable, TOOLS / 'dev/check_semantics.py'], cwd=self.directory)
        path.unlink()
        self.assertEqual(ran.returncode != 0, bool(ran.stdout), ran.stderr)
        return ran.stdout

    def without(self, text, put=''):
        self.assertIn(text, self.DOCUMENT)
        return self.DOCUMENT.replace(text, put)

    def test_all_in_order(self):
        self.assertEqual(self.offences(), '')
        self.assertEqual(self.offences(test='// semantics: T1, R1\n// More.\nTEST_F(A, B) {\n', name='tests/fs/a.cc'), '')

    def test_each_statement_has_an_identifier_of_its_own(self):
        for document, line in ((self.without(' [R1]'), 18), (self.without(' [T1]'), 9), (self.without('| R2 | a', '| | a'), 22)):
            self.assertIn(f'fs/doc/semantics.md:{line}: a statement without an identifier', self.offences(document))
        self.assertIn('without an identifier: Text.', self.offences(self.without('- A read', 'Text.\n\n- A read')))
        self.assertEqual(self.offences(self.without('| R2 | a bad read', '| R1 | a bad read')).splitlines()[0],
                         'fs/doc/semantics.md:22: R1 is also the identifier of line 18')

    def test_each_statement_has_a_test_or_a_reason(self):
        self.assertEqual(self.offences(test='def test_a():\n    # semantics: T1\n'), 'fs/doc/semantics.md:18: no test names R1\n')
        self.assertEqual(self.offences(self.without('| R2 | no machine has it |')), 'fs/doc/semantics.md:22: no test names R2\n')
        self.assertIn('no reason why R2', self.offences(self.without('no machine has it')))
        self.assertIn('no statement R9', self.offences(self.without('| R2 | no', '| R9 | no')))
        self.assertIn('is a test of R2', self.offences(test='def test_a():\n    # semantics: T1, R1, R2\n'))

    def test_a_test_names_what_there_is(self):
        self.assertEqual(self.offences(test='def test_a():\n    # semantics: T1, R1, R7\n'),
                         'tests/a_test.py:2: fs/doc/semantics.md has no statement R7\n')
        for malformed in ('R1 T1', 'T1; R1', 'T1,R1', 'the reads'):
            self.assertIn('not a list of identifiers', self.offences(test=f'def test_a():\n    # semantics: {malformed}\n'))

    def test_a_comment_that_belongs_to_no_test_counts_for_none(self):
        for name, text in (('tests/a.py', '# semantics: T1, R1\n'), ('tests/a.py', 'def help():\n    # semantics: T1, R1\n'),
                           ('tests/a.cc', '// semantics: T1, R1\nint f();\n'), ('tests/a.cc', '// semantics: T1, R1\n\nTEST(A, B) {}\n')):
            found = self.offences(test=text, name=name)
            self.assertIn('belongs to no test', found)
            self.assertIn('no test names T1', found)

    def test_messages_occur_in_the_sources(self):
        for message in ("unknown option '…' of a mount", '…nknown opti… of a mount', 'of a mount'):
            self.assertEqual(self.offences(messages=f'| `{message}` | a | b |'), '')
        self.assertEqual(self.offences(messages='| `unknown …` or `of no mount` | a | b |'),
                         'fs/doc/troubleshooting.md:3: no string of the program contains "of no mount"\n')
        self.assertIn('has no literal part', self.offences(messages='| `…: …` | a | b |'))
        self.assertIn('no message in backquotes', self.offences(messages='| unknown option | a | b |'))
        self.assertIn('lacks a cell', self.offences(messages='| `unknown option` | a | |'))
        self.assertIn('no message found', self.offences(messages='Text.'))

    def test_texts_of_errors_are_those_of_the_system(self):
        for row, is_right in (('`Input/output error` | `EIO`', True), ('`Input error` | `EIO`', False), ('`x` | `ENOTHING`', False)):
            found = self.offences(messages=f'| `of a mount` | a | b |\n\n## Errors that programs get\n\n{self.MESSAGES}| {row} | c |')
            self.assertEqual('is not the text of' in found, not is_right)
        foreign = f'| `of a mount` | a | b |\n\n## Messages of other programs\n\n{self.MESSAGES}| `anything` | a | b |'
        self.assertEqual(self.offences(messages=foreign), '')


class CheckInRoot(Directory):
    def test_other_arguments_are_refused(self):
        for arguments in ((), ('sid',), ('--fast', 'trixie'), ('trixie', 'a', 'b'), ('--with', 'trixie'), ('trixie', '--check', 'a'),
                          ('--with', 'g++-13; true', 'trixie'), ('--with',), ('--check',)):
            with self.subTest(arguments):
                ran = run([TOOLS / 'dev/check-in-root', *arguments])
                self.assertEqual((ran.returncode, ran.stdout), (2, ''))
                self.assertRegex(ran.stderr, r'\AUsage: tools/dev/check-in-root .*\n\Z')

    def test_needs_root(self):
        self.directory.chmod(0o755)
        for name in ('check-in-root', 'packages.sh', 'roots.sh'):
            shutil.copy(TOOLS / 'dev' / name, self.directory)
        ran = run([self.directory / 'check-in-root', '--check', '--with', 'clang++-18', 'trixie', self.directory / 'root'], cwd='/',
                  **({'user': 65534} if os.geteuid() == 0 else {}))
        self.assertEqual((ran.returncode, ran.stdout), (3, ''))
        self.assertIn('check-in-root: needs root', ran.stderr)
        self.assertFalse((self.directory / 'root').exists())


class CheckPackage(Directory):
    def test_other_arguments_are_refused(self):
        for arguments in ((), ('sid',), ('--fast', 'trixie'), ('trixie', 'a', 'b')):
            with self.subTest(arguments):
                ran = run([TOOLS / 'dev/check-package', *arguments])
                self.assertEqual((ran.returncode, ran.stdout), (2, ''))
                self.assertRegex(ran.stderr, r'\AUsage: tools/dev/check-package .*\n\Z')

    def test_needs_root(self):
        self.directory.chmod(0o755)
        for name in ('check-package', 'packages.sh', 'roots.sh'):
            shutil.copy(TOOLS / 'dev' / name, self.directory)
        ran = run([self.directory / 'check-package', 'trixie', self.directory / 'roots'], cwd='/',
                  **({'user': 65534} if os.geteuid() == 0 else {}))
        self.assertEqual((ran.returncode, ran.stdout), (3, ''))
        self.assertIn('check-package: needs root', ran.stderr)
        self.assertFalse((self.directory / 'roots').exists())


class Package(Directory):
    def test_other_arguments_are_refused(self):
        for arguments in ((), ('',), ('--help',), ('a', 'b')):
            with self.subTest(arguments):
                ran = run([TOOLS / 'package', *arguments], cwd=self.directory)
                self.assertEqual((ran.returncode, ran.stdout), (2, ''))
                self.assertEqual(ran.stderr, 'Usage: tools/package DIRECTORY\n')
                self.assertEqual(list(self.directory.iterdir()), [])

    def test_build_depends_and_the_list_of_packages_are_the_same(self):
        control = (TOOLS / 'debian/control').read_text(encoding='utf-8')
        wanted = set(re.findall(r'^ ([a-z0-9.+-]+)(?: \(.*\))?,$', control, re.MULTILINE))
        listed = run(['bash', '-c', 'source "$1"; printf "%s\\n" "${build_packages[@]}"', 'bash', TOOLS / 'dev/packages.sh'])
        # Meson brings ninja; g++ is build-essential; fuse3 is to mount; pkg-config is pkgconf under its old name.
        self.assertEqual(wanted - {'debhelper-compat', 'pkgconf'},
                         set(listed.stdout.split()) - {'fuse3', 'g++', 'ninja-build', 'pkg-config'})


class Units(unittest.TestCase):
    """Both units: a mount must be seen by other programs, and what it has in memory must be written before it is killed."""

    def test_no_option_hides_the_mount(self):
        for name in ('cframefs@.service.in', 'cframefs@.user.service.in'):
            unit = (TOOLS / 'systemd' / name).read_text(encoding='utf-8')
            options = re.findall(r'^(\w+)=', unit, re.MULTILINE)
            self.assertEqual([option for option in options if re.match(r'Protect|Private|ReadOnly|ReadWrite|Bind|Mount', option)], [])
            self.assertIn('\nType=notify\n', unit)
            self.assertIn('\nKillMode=mixed\n', unit)
            self.assertIn('\nExecStart=@program@ -f -o ${OPTIONS} -- ${SOURCE} %f\n', unit)
            if '.user.' in name:
                # These imply NoNewPrivileges= for services of ordinary users, and fusermount3 could not mount.
                self.assertEqual([option for option in options if re.match(r'NoNew|Memory|Restrict|Lock|SystemCall', option)], [])


class MountHelper(Directory):
    def mount(self, *arguments, user=1000):
        program = self.write('cframefs', '#!/bin/sh\nprintf "%s\\n" "$@"\n')
        program.chmod(0o755)
        who = self.write('path/id', f'#!/bin/sh\necho {user}\n')
        who.chmod(0o755)
        helper = self.directory / 'mount.cframefs'
        shutil.copy(TOOLS / 'cframefs/mount.cframefs', helper)
        return run([helper, *arguments], env={**os.environ, 'PATH': f"{self.directory / 'path'}:{os.environ['PATH']}"})

    def test_hands_options_over(self):
        ran = self.mount('/a b', '/mnt', '-n', '-o', 'ro,names=keep', '-v', '-o', 'nofail')
        self.assertEqual(ran.stdout.splitlines(), ['-o', 'ro,names=keep,nofail', '--', '/a b', '/mnt'])

    def test_needs_no_options(self):
        self.assertEqual(self.mount('a', 'm').stdout.splitlines(), ['--', 'a', 'm'])
        self.assertEqual(self.mount('a', 'm', '-t', 'cframefs', '-s').stdout.splitlines(), ['--', 'a', 'm'])

    def test_mounts_of_root_have_what_mount_takes_for_the_default(self):
        # semantics: U3
        # mount(8) calls its helpers without `suid` and `dev`, whether they are given or not.
        for given, expected in ((None, 'dev,suid'), ('rw', 'dev,suid,rw'), ('rw,nosuid', 'dev,rw,nosuid'),
                                ('nodev,ro', 'suid,nodev,ro'), ('noexec,nosuid,nodev,user', 'noexec,nosuid,nodev,user')):
            ran = self.mount('a', 'm', *(('-o', given) if given else ()), user=0)
            self.assertEqual(ran.stdout.splitlines(), ['-o', expected, '--', 'a', 'm'])

    def test_fake_mounts_nothing(self):
        ran = self.mount('a', 'm', '-f')
        self.assertEqual((ran.returncode, ran.stdout), (0, ''))

    def test_refuses_what_it_does_not_know(self):
        self.assertNotEqual(self.mount('a').returncode, 0)
        self.assertNotEqual(self.mount('a', 'm', '-x').returncode, 0)

    def test_finds_the_program_when_called_by_a_link(self):
        program = self.write('prefix/bin/cframefs', '#!/bin/sh\nprintf "%s\\n" here "$@"\n')
        program.chmod(0o755)
        helper = self.directory / 'prefix/sbin/mount.cframefs'
        helper.parent.mkdir()
        shutil.copy(TOOLS / 'cframefs/mount.cframefs', helper)
        (self.directory / 'link').symlink_to(helper)
        ran = run([self.directory / 'link', 'a', 'm'])
        # What mount(8) gives root and not others.
        rights = ['-o', 'dev,suid'] if os.geteuid() == 0 else []
        self.assertEqual(ran.stdout.splitlines(), ['here', *rights, '--', 'a', 'm'])


class InstallMountHelper(Directory):
    """What `meson install` runs, in a root of its own."""

    def install(self, prefix, directory='sbin', **environment):
        (self.directory / 'root' / prefix.lstrip('/') / directory.lstrip('/')).mkdir(parents=True, exist_ok=True)
        ran = run([TOOLS / 'cframefs/install_mount_helper', directory],
                  env={**os.environ, 'MESON_INSTALL_PREFIX': prefix, 'DESTDIR': str(self.directory / 'root'), **environment})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def links(self):
        paths = [pathlib.Path(directory) / name for directory, _, names in os.walk(self.directory / 'root') for name in names]
        return {str(path.relative_to(self.directory / 'root')): os.readlink(path) for path in paths if path.is_symlink()}

    def test_another_prefix_is_linked_from_where_mount_looks(self):
        looked_in = 'usr/sbin' if os.path.islink('/sbin') else 'sbin'
        for prefix in ('/usr/local', '/opt/x', '/usr/local'):
            self.install(prefix)
            self.assertEqual(self.links(), {looked_in + '/mount.cframefs': prefix + '/sbin/mount.cframefs'})

    def test_a_helper_in_its_place_needs_no_link(self):
        for prefix in ('/usr', '/'):
            self.assertEqual(self.install(prefix), '')
            self.assertEqual(self.links(), {})

    def test_what_is_there_stays_and_the_user_is_told(self):
        for place in ('sbin', 'usr/sbin'):
            self.write('root/' + place + '/mount.cframefs', 'of a package')
        self.assertIn('ln -s /usr/local/sbin/mount.cframefs /sbin/mount.cframefs', self.install('/usr/local'))
        self.assertEqual((self.directory / 'root/usr/sbin/mount.cframefs').read_text(encoding='utf-8'), 'of a package')

    def test_a_directory_of_another_user_is_not_run_by_root(self):
        someone = self.write('programs/id', '#!/bin/sh\necho 54321\n')
        someone.chmod(0o755)
        said = self.install('/home/user/.local', PATH=f"{someone.parent}:{os.environ['PATH']}")
        self.assertIn('belongs to another user', said)
        self.assertEqual(self.links(), {})


if __name__ == '__main__':
    os.environ['LC_ALL'] = 'C'
    unittest.main()
