"""Which sources cmake/batches.py compiles together: pairs that would mean something else together are kept apart."""
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'cmake'))
import batches


class Batches(unittest.TestCase):
    def shared(self, first, second, **headers):
        """Whether two sources share a batch; headers by their stems."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, text in {'a.cpp': first, 'b.cpp': second, **{f'{stem}.hpp': text for stem, text in headers.items()}}.items():
                paths.append(os.path.join(folder, name))
                with open(paths[-1], 'w', encoding='utf-8') as file:
                    file.write(text)
            return len(batches.batches([batches.Source(path) for path in paths[:2]])) == 1

    def test_unrelated_sources_share(self):
        self.assertTrue(self.shared('namespace n { namespace { int one() { return 1; } } int a() { return one(); } }',
                                    'namespace n { namespace { int two() { return 2; } } int b() { return two(); } }'))

    def test_a_name_of_one_that_the_other_mentions(self):
        user = 'namespace n { void b() { help(2.5); } }'
        for helper in ('namespace { void help(int) {} }', 'static void help(int) {}', 'void help(int) {}', 'namespace { struct help {}; }',
                       'namespace { enum Kind { help }; }', 'using help = int;', 'namespace { constexpr int help = 1; }',
                       'namespace { template <class T> concept help = true; }', 'namespace help = std;', 'using std::help;'):
            for first, second in ((helper, user), (user, helper)):
                with self.subTest(first=first, second=second):
                    self.assertFalse(self.shared(first, second))

    def test_members_and_text_are_no_mentions(self):
        self.assertTrue(self.shared('namespace { void help(int) {} }', 'void b(T t) { t.help(); t->help(); say("help"); } // help'))

    def test_what_the_header_declares_may_be_mentioned_by_those_who_include_it(self):
        defines, calls = '#include "a.hpp"\nvoid help(int) {}', 'void b() { help(1); }'
        self.assertTrue(self.shared(defines, '#include "a.hpp"\n' + calls, a='void help(int);'))
        self.assertTrue(self.shared(defines, '#include "c.hpp"\n' + calls, a='void help(int);', c='#include "a.hpp"'))
        self.assertFalse(self.shared(defines, calls, a='void help(int);'))

    def test_what_the_header_does_not_declare(self):
        defines = '#include "a.hpp"\n#include "c.hpp"\nvoid other() {}\nint help(int) {}'
        calls = '#include "a.hpp"\n#include "c.hpp"\nvoid b() { help(1); }'
        self.assertFalse(self.shared(defines, calls, a='void other();', c='int help(double);'))

    def test_nullptr_converts_to_a_pointer(self):
        first = 'namespace n { struct Kind { int i; }; int help(Kind%s k) { return k.i; } }'
        second = 'namespace n { int b() { return help(nullptr); } }'
        self.assertTrue(self.shared(first % '', second))
        self.assertFalse(self.shared(first % '*', second))

    def test_a_header_that_only_one_includes(self):
        self.assertFalse(self.shared('#include "c.hpp"\nvoid a() {}', 'void b() { help(1); }', c='inline void help(double) {}'))
        self.assertFalse(self.shared('#include "c.hpp"\nvoid a() {}', 'namespace n { using test::x; }', c='namespace n::test { }'))
        self.assertTrue(self.shared('#include "c.hpp"\nvoid a() {}', 'void b() {}', c='inline void help(double) {}'))

    def test_parts_of_the_standard_library_are_no_mentions(self):
        helper = 'namespace { void exp(double) {} }'
        self.assertTrue(self.shared(helper, 'double b() { return std::exp(1.0) + std::chrono::exp(1); }'))
        self.assertFalse(self.shared(helper, 'double b() { return other::exp(1.0); }'))
        self.assertFalse(self.shared(helper, 'double b() { return std::log(exp(1.0)); }'))

    def test_names_known_inside_one_declaration_are_not_declared(self):
        user = 'void b() { T(1); }'
        self.assertTrue(self.shared('template <class T, class U = V<T>> void help(U u) {}', user))
        self.assertTrue(self.shared('template <class C> concept Few = !Many<T, C> && requires(C c) { c.x; };', user))
        self.assertFalse(self.shared('template <class C> struct T {};', user))

    def test_a_function_must_be_called_another_name_only_be_seen(self):
        self.assertTrue(self.shared('namespace { void help(int) {} }', 'int b() { const int help = 1; return help; }'))
        self.assertFalse(self.shared('namespace { void help(int) {} }', 'int b() { return help<int>; }'))
        self.assertFalse(self.shared('namespace { void help(int) {} }', 'const int help = 1;'))
        self.assertFalse(self.shared('namespace { int help = 1; }', 'int b() { return help; }'))

    def test_names_of_a_namespace_that_the_other_does_not_open(self):
        kind = 'namespace n::m { struct Kind {}; }'
        self.assertTrue(self.shared(kind, 'namespace n { int b(Kind kind); }'))
        for user in ('namespace n::m { int b(Kind kind); }', 'namespace n::m::l { int b(Kind kind); }', 'namespace n { int b(m::Kind kind); }',
                     'namespace n { namespace l = n::m; int b(l::Kind kind); }'):
            with self.subTest(user=user):
                self.assertFalse(self.shared(kind, user))
        self.assertFalse(self.shared('namespace n::m { void help(double) {} }', 'namespace n { void b() { help(x); } }'))

    def test_functions_of_closed_types(self):
        user = 'void b() { help(1); }'
        for closed in ('enum class Kind { one }; int help(Kind);', 'struct Kind { int x; }; int help(const n::Kind& kind, int);'):
            with self.subTest(closed=closed):
                self.assertTrue(self.shared('#include "c.hpp"\nvoid a() {}', user, c=closed))
                self.assertTrue(self.shared('#include "a.hpp"\nint help(Kind) { return 1; }', user, a=closed))
                self.assertFalse(self.shared('#include "c.hpp"\nvoid a() {}', 'void b() { help({}); }', c=closed))
                self.assertFalse(self.shared('#include "c.hpp"\nnamespace { int help(Kind) { return 1; } }', user, c=closed))
        for opened in ('struct Kind { Kind(int x); }; int help(Kind);', 'struct Kind : Base { using Base::Base; }; int help(Kind);',
                       'struct Kind; int help(Kind);', 'enum Kind { one }; int help(Kind);', 'enum class Kind { one }; int help(int, Kind);'):
            with self.subTest(opened=opened):
                self.assertFalse(self.shared('#include "c.hpp"\nvoid a() {}', user, c=opened))

    def test_using_declarations(self):
        header = 'namespace n { struct Help {}; namespace m { struct Help {}; } }'
        using = '#include "c.hpp"\nnamespace n { using n::Help; }'
        self.assertTrue(self.shared(using, '#include "d.hpp"\nnamespace n { Help b(); }', c='namespace n { struct Help {}; }', d='#include "c.hpp"'))
        self.assertTrue(self.shared(using, '#include "c.hpp"\nusing n::Help;\nHelp b();', c='namespace n { struct Help {}; }'))
        self.assertFalse(self.shared(using, '#include "c.hpp"\nnamespace n::m { Help b(); }', c=header))
        self.assertFalse(self.shared('using n::Help;', 'using m::Help;\nHelp b();'))
        self.assertTrue(self.shared('namespace n { using std::string; }', 'using std::string;\nstring b();'))

    def test_a_namespace_that_only_one_knows(self):
        inner = '#include "c.hpp"\nnamespace n { void a() {} }'
        uses = '#include "d.hpp"\nnamespace n { void b() { test::x = 1; } }'
        self.assertFalse(self.shared(inner, uses, c='namespace n::test { }', d='namespace test { }'))
        self.assertTrue(self.shared(inner, uses, c='namespace test { }', d='namespace n::test { }'))
        using = 'using namespace n;\nusing namespace m;\n'
        self.assertFalse(self.shared('#include "c.hpp"\n' + using, '#include "d.hpp"\n' + using + 'void b() { test::x = 1; }',
                                     c='namespace m::test { }', d='namespace n::test { }'))
        self.assertTrue(self.shared(inner, 'namespace n { int b(int test) { return test; } }', c='namespace n::test { }'))

    def test_a_deleted_source_does_not_stop_the_build(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                    file.write(text)

            def run(*command):
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

            os.symlink(os.path.dirname(batches.__file__), os.path.join(folder, 'cmake'))
            write('CMakeLists.txt', 'cmake_minimum_required(VERSION 3.25)\nproject(few LANGUAGES CXX)\nset(NUMEMU_BATCHES ON)\n'
                  'include(cmake/batches.cmake)\nfile(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/*.cpp)\n'
                  'add_library(few STATIC ${sources})\nnumemu_batches(few)\n')
            for name in 'abc':
                write(name + '.cpp', f'int {name}() {{ return 1; }}\n')
            run('cmake', '-G', 'Ninja', '-B', 'build')
            run('ninja', '-C', 'build')
            os.remove(os.path.join(folder, 'b.cpp'))
            run('ninja', '-C', 'build')
            with open(os.path.join(folder, 'build', 'batches'), encoding='utf-8') as file:
                self.assertIn('a_and_1_more.cpp', file.read())

    def test_only_groups_with_a_change_are_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                    file.write(text)

            def read_again():
                """How many groups a run reads, and the list that it writes."""
                batches.source_of.cache_clear()
                target = os.path.join(folder, 'list')
                with mock.patch.object(sys, 'argv', ['batches.py', os.path.join(folder, 'groups'), target]), \
                        mock.patch.object(batches, 'compiled', wraps=batches.compiled) as compiled:
                    batches.main()
                with open(target, encoding='utf-8') as file:
                    return compiled.call_count, file.read()

            for name in 'abcd':
                write(name + '.cpp', f'#include "{name}.hpp"\nint {name}() {{ return 1; }}\n')
                write(name + '.hpp', '')
            paths = [os.path.join(folder, name + '.cpp') for name in 'abcd']
            write('groups', ''.join('\t'.join([target, '', folder, folder, *group]) + '\n'
                                    for target, group in (('x', paths[:2]), ('y', paths[2:]))))
            both = f'x\t\t{folder}/a_and_1_more.cpp\ny\t\t{folder}/c_and_1_more.cpp\n'
            self.assertEqual(read_again(), (2, both))
            self.assertEqual(read_again(), (0, both))
            write('d.hpp', 'int c(double);')  # what c.cpp, which does not include it, calls c
            self.assertEqual(read_again(), (1, both.replace('c_and_1_more.cpp', 'c.cpp') + f'y\t\t{paths[3]}\n'))
            os.remove(os.path.join(folder, 'a_and_1_more.cpp'))
            self.assertEqual(read_again()[0], 1)
            write('list.known', '{')
            self.assertEqual(read_again()[0], 2)
            write('a.cpp', '#include "late.hpp"\nint a() { return 1; }\n')
            self.assertEqual(read_again()[0], 1)
            write('late.hpp', 'int b(double);')  # which b.cpp does not include
            self.assertEqual(read_again(), (1, f'x\t\t{paths[0]}\nx\t\t{paths[1]}\ny\t\t{paths[2]}\ny\t\t{paths[3]}\n'))

    def test_a_header_that_changes_while_it_is_read_is_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            def path(name):
                return os.path.join(folder, name)

            def write(name, text):
                with open(path(name), 'w', encoding='utf-8') as file:
                    file.write(text)

            def batches_of(during=lambda: None):
                batches.source_of.cache_clear()

                def sources(group):
                    during()  # both sources and the header were read, or are on their way
                    return by_conflicts(group)

                by_conflicts = batches.batches
                with mock.patch.object(sys, 'argv', ['batches.py', path('groups'), path('list')]), \
                        mock.patch.object(batches, 'batches', sources):
                    batches.main()
                with open(path('list'), encoding='utf-8') as file:
                    return len(file.readlines())

            write('a.cpp', '#include "a.hpp"\nint a() { return 1; }\n')
            write('a.hpp', '')
            write('b.cpp', 'int b() { return 1; }\n')
            write('groups', '\t'.join(['x', '', folder, folder, path('a.cpp'), path('b.cpp')]) + '\n')
            self.assertEqual(batches_of(lambda: write('a.hpp', 'int b(double);')), 1)
            self.assertEqual(batches_of(), 2)

    def test_using_directives(self):
        plain, using = 'namespace n { int a() { return 1; } }', 'using namespace m;\nint b() { return 1; }'
        self.assertFalse(self.shared(plain, using))
        self.assertTrue(self.shared('using namespace m;\nint a() { return 1; }', using))

    def test_sources_that_are_compiled_alone(self):
        for text in ('#define X 1', '#if A\n#endif', '#include "table.def"', 'bool operator<(T, T) { return false; }', 'extern "C" { int c; }'):
            with self.subTest(text=text):
                self.assertFalse(self.shared(text, 'int b() { return 1; }'))


if __name__ == '__main__':
    unittest.main()
