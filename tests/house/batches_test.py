"""Which sources cmake/batches.py compiles together: pairs that would mean something else together are kept apart."""
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'cmake'))
import batch_source
import batches


class Batches(unittest.TestCase):
    def order(self, first, second, **headers):
        """The order of two sources in their batch, 'ab' where each is possible; '' where they do not share one. Headers by their stems."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, text in {'a.cpp': first, 'b.cpp': second, **{f'{stem}.hpp': text for stem, text in headers.items()}}.items():
                paths.append(os.path.join(folder, name))
                with open(paths[-1], 'w', encoding='utf-8') as file:
                    file.write(text)
            sources = [batch_source.Source(path) for path in paths[:2]]
            found = batches.batches(sources)
            return ''.join(source.path[-5] for source in found[0].sources) if len(found) == 1 else ''

    def shared(self, first, second, **headers):
        return self.order(first, second, **headers) != ''

    def disturbs(self, first, second, **headers):
        """Whether the second means something else after the first."""
        with tempfile.TemporaryDirectory() as folder:
            def source(name, text):
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                    file.write(text)
                return os.path.join(folder, name)

            for stem, text in headers.items():
                source(f'{stem}.hpp', text)
            return batches.disturbs(batch_source.Source(source('a.cpp', first)), batch_source.Source(source('b.cpp', second)))

    def test_unrelated_sources_share(self):
        self.assertFalse(self.disturbs('namespace n { namespace { int one() { return 1; } } int a() { return one(); } }',
                                    'namespace n { namespace { int two() { return 2; } } int b() { return two(); } }'))

    def test_a_name_of_one_that_the_other_mentions(self):
        user = 'namespace n { void b() { help(2.5); } }'
        for helper in ('namespace { void help(int) {} }', 'static void help(int) {}', 'void help(int) {}', 'namespace { struct help {}; }',
                       'namespace { enum Kind { help }; }', 'using help = int;', 'namespace { constexpr int help = 1; }',
                       'namespace { template <class T> concept help = true; }', 'namespace help = std;', 'using std::help;'):
            with self.subTest(helper=helper):
                self.assertEqual((self.order(helper, user), self.order(user, helper)), ('ba', 'ab'))

    def test_members_and_text_are_no_mentions(self):
        self.assertFalse(self.disturbs('namespace { void help(int) {} }', 'void b(T t) { t.help(); t->help(); say("help"); } // help'))

    def test_what_the_header_declares_may_be_mentioned_by_those_who_include_it(self):
        defines, calls = '#include "a.hpp"\nvoid help(int) {}', 'void b() { help(1); }'
        self.assertFalse(self.disturbs(defines, '#include "a.hpp"\n' + calls, a='void help(int);'))
        self.assertFalse(self.disturbs(defines, '#include "c.hpp"\n' + calls, a='void help(int);', c='#include "a.hpp"'))
        self.assertTrue(self.disturbs(defines, calls, a='void help(int);'))

    def test_what_the_header_does_not_declare(self):
        defines = '#include "a.hpp"\n#include "c.hpp"\nvoid other() {}\nint help(int) {}'
        calls = '#include "a.hpp"\n#include "c.hpp"\nvoid b() { help(1); }'
        self.assertTrue(self.disturbs(defines, calls, a='void other();', c='int help(double);'))

    def test_what_the_header_declares_otherwise(self):
        user = '#include "a.hpp"\nnamespace m { void b() { help(1.0); } }'
        for header, defines in (('int help(int);', 'int help(int) {} int help(double) {}'), ('int help(int);', 'int help(int) {} namespace m { int help(int) {} }'),
                                ('int help(int, int); int help(long);', 'int help(int, int = 0) {} int help(long) {}')):
            with self.subTest(defines=defines):
                self.assertTrue(self.disturbs('#include "a.hpp"\n' + defines, user, a=header))
        self.assertFalse(self.disturbs('#include "a.hpp"\nint help(const T& x, int) {}', user, a='int help(const T&, int y = 0);'))

    def test_names_in_a_value_are_not_declared_there(self):
        for helper, value in (('int help(int) { return 1; }', '2 * help(1)'), ('constexpr int help = 1;', '2 * help'), ('constexpr int help = 1;', 'true && help')):
            with self.subTest(value=value):
                self.assertTrue(self.disturbs(f'namespace n {{ namespace {{ {helper} }} }}', f'namespace n::k {{ int v = {value}; }}'))

    def test_variables_with_a_value_in_parentheses(self):
        for helper in ('const T help(value);', 'T help(2);', 'const T help_ = 2;', 'constexpr T help_{2};'):
            with self.subTest(helper=helper):
                self.assertTrue(self.disturbs(f'namespace {{ {helper} }}', 'int b() { return help + help_; }'))
        self.assertFalse(self.disturbs('S::S() : help_(1), other_{2}, help_(3) {}', 'int b() { return help_; }'))
        self.assertFalse(self.disturbs('T help(value);', 'int b() { return help; }'))

    def test_directives_and_aliases_of_what_is_named(self):
        helper = 'namespace n { namespace { int help(int) { return 2; } } }'
        for user in ('using namespace ::n;\nint b() { return help(1); }', 'namespace k { using namespace n; }\nint b() { return k::help(1); }'):
            with self.subTest(user=user):
                self.assertTrue(self.disturbs(helper, user))
        alias = '#include "c.hpp"\nusing S = n::S;\nint S::f() { return help(1); }'
        self.assertFalse(self.shared(helper, alias, c='namespace n { struct S { int f(); }; }'))
        self.assertFalse(self.shared('inline namespace v { int a(); }', 'int b();'))
        self.assertTrue(self.disturbs('#include "c.hpp"\nvoid a();', 'void b();', c='namespace n { using namespace k; }'))
        self.assertTrue(self.disturbs('namespace m { using T = X; }\nnamespace k { using T = Y; }', 'namespace m { T b(); }'))
        self.assertTrue(self.disturbs('namespace m { using T = X; }', 'namespace m { T b(); using T = X; }'))

    def test_macros_and_operators_of_headers(self):
        self.assertTrue(self.disturbs('#include "c.hpp"\nint a();', 'int b() { return x.help(1); }', c='#define help(x) 2'))
        self.assertTrue(self.disturbs('namespace { int help(int); }', '#include "c.hpp"\nint b() { return HELP(1); }', c='#define HELP(x) help(x)'))
        self.assertTrue(self.disturbs('#include "c.hpp"\nint a();', '#include "d.hpp"\nint b();', d='namespace n { struct T {}; }',
                                      c='#include "d.hpp"\nnamespace n { bool operator<(const T&, const T&); }'))

    def test_nullptr_converts_to_a_pointer(self):
        first = 'namespace n { struct Kind { int i; }; int help(Kind%s k) { return k.i; } }'
        second = 'namespace n { int b() { return help(nullptr); } }'
        self.assertFalse(self.disturbs(first % '', second))
        self.assertTrue(self.disturbs(first % '*', second))

    def test_a_header_that_only_one_includes(self):
        self.assertTrue(self.disturbs('#include "c.hpp"\nvoid a() {}', 'void b() { help(1); }', c='inline void help(double) {}'))
        self.assertTrue(self.disturbs('#include "c.hpp"\nvoid a() {}', 'namespace n { using test::x; }', c='namespace n::test { }'))
        self.assertFalse(self.disturbs('#include "c.hpp"\nvoid a() {}', 'void b() {}', c='inline void help(double) {}'))

    def test_parts_of_the_standard_library_are_no_mentions(self):
        helper = 'namespace { void exp(double) {} }'
        self.assertFalse(self.disturbs(helper, 'double b() { return std::exp(1.0) + std::chrono::exp(1); }'))
        self.assertTrue(self.disturbs(helper, 'double b() { return ::exp(1.0); }'))
        self.assertTrue(self.disturbs(helper, 'double b() { return std::log(exp(1.0)); }'))

    def test_names_known_inside_one_declaration_are_not_declared(self):
        user = 'void b() { T(1); }'
        self.assertFalse(self.disturbs('template <class T, class U = V<T>> void help(U u) {}', user))
        self.assertFalse(self.disturbs('template <class C> concept Few = !Many<T, C> && requires(C c) { c.x; };', user))
        self.assertTrue(self.disturbs('template <class C> struct T {};', user))

    def test_a_function_must_be_called_another_name_only_be_seen(self):
        self.assertFalse(self.disturbs('namespace { void help(int) {} }', 'int b() { const int help = 1; return help; }'))
        self.assertTrue(self.disturbs('namespace { void help(int) {} }', 'int b() { return help<int>; }'))
        self.assertTrue(self.disturbs('namespace { void help(int) {} }', 'const int help = 1;'))
        self.assertTrue(self.disturbs('namespace { int help = 1; }', 'int b() { return help; }'))

    def test_names_of_a_namespace_that_the_other_does_not_open(self):
        kind = 'namespace n::m { struct Kind {}; }'
        self.assertFalse(self.disturbs(kind, 'namespace n { int b(Kind kind); }'))
        for user in ('namespace n::m { int b(Kind kind); }', 'namespace n::m::l { int b(Kind kind); }', 'namespace n { int b(m::Kind kind); }',
                     'namespace n { namespace l = n::m; int b(l::Kind kind); }'):
            with self.subTest(user=user):
                self.assertTrue(self.disturbs(kind, user))

    def test_calls_find_functions_in_the_namespaces_of_their_arguments(self):
        call = '#include "c.hpp"\nnamespace n { void b() { help(x); } }'
        self.assertTrue(self.disturbs('namespace n::m { void help(double) {} }', call, c='namespace n::m { struct Kind {}; }'))
        self.assertTrue(self.disturbs('namespace n::m { static void help(double) {} }', call, c='namespace n::m { struct Kind {}; }'))
        self.assertFalse(self.disturbs('namespace n::m { void help(double) {} }', call, c='namespace n { struct Kind {}; }'))
        self.assertFalse(self.disturbs('namespace n::m { namespace { void help(double) {} } }', call, c='namespace n::m { struct Kind {}; }'))

    def test_qualified_names(self):
        for text in ('void help(int) {}', 'namespace { void help(int) {} }', 'struct help {};'):
            with self.subTest(text=text):
                self.assertTrue(self.disturbs(f'namespace m {{ {text} }}', 'void b() { m::help(1); }'))
                self.assertTrue(self.disturbs(f'namespace m {{ {text} }}', 'namespace l = m;\nvoid b() { l::help(1); }'))
                self.assertTrue(self.disturbs(f'namespace m {{ {text} }}', 'void m::T::b() { help(1); }'))
                self.assertTrue(self.disturbs(f'namespace m {{ {text} }}', 'void b() { using namespace m; help(1); }'))
                self.assertFalse(self.disturbs(f'namespace m {{ {text} }}', 'namespace m {} void b() { m::other(1); o::help(1); T<int>::help(1); }'))

    def test_members_and_parameters_of_templates(self):
        helper = 'namespace { struct Help {}; void help(int) {} }'
        for user in ('struct B { enum class Help { one } help = Help::one; };', 'struct B { struct Help; Help* f(); };',
                     'template <class Help> Help b(Help x) { return x; }', 'class B { int help(int x); int f() { return help(1); } };'):
            with self.subTest(user=user):
                self.assertFalse(self.disturbs(helper, user))
        for user in ('struct B { enum class Help { one }; };\nHelp b();', 'struct B { Help x; };', 'struct B : Help {};',
                     'template <class T> Help b(T x) { return x; }', 'struct B { friend struct Help; Help* x; };', 'class B { int x = help(1); };',
                     'class B { int f() { int x; help(1); } };', 'struct B { T x = y * help; int f() { help(1); } };',
                     'struct B { friend int help(B) { return 3; } int f() { return help(1); } };', 'struct B { A<T, 1 * help(1)> x; };',
                     'struct B { int x : k * help(1); };', 'struct B { bool operator==(B) = default; Help x; };'):
            with self.subTest(user=user):
                self.assertTrue(self.disturbs(helper, user))

    def test_a_declaration_of_two_names_is_no_call(self):
        helper = 'namespace { void help(int) {} }'
        self.assertFalse(self.disturbs(helper, 'namespace n { void b() { Thing help(1); } }'))
        self.assertTrue(self.disturbs(helper, 'namespace n { int b() { return help(1); } }'))
        self.assertTrue(self.disturbs(helper, 'void b() {\n#pragma omp critical\nhelp(1); }'))

    def test_a_source_that_declares_the_name_further_inside(self):
        outer, inner = 'namespace n { namespace { int help = 1; } }', 'namespace n::m { namespace { int help = 2; } %s }%s'
        self.assertFalse(self.disturbs(outer, inner % ('int b() { return help; }', '')))
        self.assertTrue(self.disturbs(outer, inner % ('', ' namespace n { int b() { return help; } }')))
        self.assertTrue(self.disturbs(outer, 'namespace n::m { int b() { return help; } namespace { int help = 2; } }'))
        self.assertTrue(self.disturbs('namespace n::m { namespace { int help = 1; } }', 'namespace n::m { namespace { int help = 2; } int b() { return help; } }'))

    def test_headers_after_a_source(self):
        helper = 'namespace { int help(int) { return 1; } struct Kind {}; }'
        later = '#include "c.hpp"\nvoid b() {}'
        self.assertFalse(self.disturbs(helper, later, c='int help(double);\nstruct B { int help(double); };'))
        self.assertTrue(self.disturbs(helper, later, c='inline int c() { return help(2.5); }'))
        self.assertTrue(self.disturbs(helper, later, c='void c(Kind kind);'))
        self.assertTrue(self.disturbs(helper, '#include "d.hpp"', c='void c(Kind kind);', d='#include "c.hpp"'))
        self.assertFalse(self.disturbs('#include "c.hpp"\n' + helper, later, c='void c(Kind kind);'))
        self.assertTrue(self.disturbs('#include "d.hpp"\nvoid a() {}', later, c='inline int c() { return help(2.5); }', d='int help(int);'))
        self.assertFalse(self.disturbs('#include "d.hpp"\nvoid a() {}', later, c='class Kind;\nvoid c(Kind);', d='class Kind {};'))

    def test_headers_of_libraries_are_first(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (('a.hpp', '#include <set>\n'), ('a.cpp', '#include "a.hpp"\n#include <map>\n')):
                with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                    file.write(text)
            batch = batches.Batch(batch_source.Source(os.path.join(folder, 'a.cpp')))
            self.assertEqual(sorted(batches.text_of(batch).splitlines()[:2]), ['#include <map>', '#include <set>'])
            self.assertEqual(batches.text_of(batch).splitlines()[2:], [f'#include "{folder}/a.cpp"'])

    def test_an_order_of_three(self):
        with tempfile.TemporaryDirectory() as folder:
            def order(*texts):
                paths = [os.path.join(folder, f'{name}.cpp') for name in 'abc']
                for path, text in zip(paths, texts):
                    with open(path, 'w', encoding='utf-8') as file:
                        file.write(text)
                return [''.join(source.path[-5] for source in batch.sources) for batch in batches.batches(map(batch_source.Source, paths))]

            first = 'namespace { int %s = 1; } int %s() { return %s; }'
            self.assertEqual(order(first % ('x', 'a', 'x'), first % ('y', 'b', 'x'), first % ('z', 'c', 'y')), ['cba'])
            self.assertEqual(order(first % ('x', 'a', 'z'), first % ('y', 'b', 'x'), first % ('z', 'c', 'y')), ['ba', 'c'])

    def test_a_directive_shows_what_a_third_source_declares(self):
        with tempfile.TemporaryDirectory() as folder:
            def order(**texts):
                for name, text in {'m.hpp': 'namespace n::m { struct Kind {}; }', 'h.hpp': 'int help(int);'}.items():
                    with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                        file.write(text)
                for name, text in texts.items():
                    with open(os.path.join(folder, name + '.cpp'), 'w', encoding='utf-8') as file:
                        file.write(text)
                batch_source.source_of.cache_clear()
                return [''.join(source.path[-5] for source in batch.sources)
                        for batch in batches.batches([batch_source.Source(os.path.join(folder, name + '.cpp')) for name in texts])]

            using = '#include "m.hpp"\nnamespace n { namespace { using namespace m; } int b() { return 1; } }'
            calls = '#include "h.hpp"\nnamespace n { int c() { return help(1); } }'
            self.assertEqual(order(b=using, c=calls), ['bc'])
            for declares in ('namespace n::m { namespace { int help(long x) { return 2; } } int a() { return 1; } }',
                             'namespace n::m { namespace help { } int a() { return 1; } }'):
                with self.subTest(declares=declares):
                    for batch in order(a=declares, b=using, c=calls):
                        self.assertFalse({'b', 'c'} <= set(batch) and batch.index('b') < batch.index('c'), batch)

    def test_functions_of_closed_types(self):
        user = 'void b() { help(1); }'
        for closed in ('enum class Kind { one }; int help(Kind);', 'struct Kind { int x; }; int help(const n::Kind& kind, int);',
                       'enum class Kind { one }; int help(int, Kind);'):
            with self.subTest(closed=closed):
                self.assertFalse(self.disturbs('#include "c.hpp"\nvoid a() {}', user, c=closed))
                self.assertFalse(self.disturbs('#include "a.hpp"\nint help(Kind) { return 1; }', user, a=closed))
                self.assertTrue(self.disturbs('#include "c.hpp"\nvoid a() {}', 'void b() { help({}); }', c=closed))
                self.assertTrue(self.disturbs('#include "c.hpp"\nnamespace { int help(Kind) { return 1; } }', user, c=closed))
        for opened in ('struct Kind { Kind(int x); }; int help(Kind);', 'struct Kind : Base { using Base::Base; }; int help(Kind);', 'struct Kind : Base { int x; }; int help(Kind);',
                       'struct Kind; int help(Kind);', 'enum Kind { one }; int help(Kind);', 'enum class Kind { one }; int help(int, Kind = Kind::one);',
                       'template <class Kind> int help(Kind); enum class Kind { one };', 'struct Kind { int x; }; int help(const Kind* kind);'):
            with self.subTest(opened=opened):
                self.assertTrue(self.disturbs('#include "c.hpp"\nvoid a() {}', user, c=opened))

    def test_using_declarations(self):
        header = 'namespace n { struct Help {}; namespace m { struct Help {}; } }'
        using = '#include "c.hpp"\nnamespace n { using n::Help; }'
        self.assertFalse(self.disturbs(using, '#include "d.hpp"\nnamespace n { Help b(); }', c='namespace n { struct Help {}; }', d='#include "c.hpp"'))
        self.assertFalse(self.disturbs(using, '#include "c.hpp"\nusing n::Help;\nHelp b();', c='namespace n { struct Help {}; }'))
        self.assertTrue(self.disturbs(using, '#include "c.hpp"\nnamespace n::m { Help b(); }', c=header))
        self.assertTrue(self.disturbs('using n::Help;', 'using m::Help;\nHelp b();'))
        self.assertFalse(self.disturbs('namespace n { using std::string; }', 'using std::string;\nstring b();'))

    def test_a_namespace_with_the_name_of_something_else(self):
        function = 'using namespace n;\nnamespace { int law(int x) { return x; } }\nint b() { return law(1); }'
        self.assertEqual(self.order('#include "c.hpp"\nint a() { return n::law::one; }', '#include "d.hpp"\n' + function,
                                    c='namespace n::law { constexpr int one = 1; }', d='namespace n { }'), 'ba')

        directive = '#include "c.hpp"\nusing namespace n;\nint a() { return law::one; }'
        function = 'using namespace m;\nint b() { return law(1); }'
        self.assertTrue(self.disturbs(directive, '#include "d.hpp"\n' + function, c='namespace n::law { constexpr int one = 1; }',
                                      d='namespace n::k { } namespace m { inline int law(int x) { return x; } }'))

    def test_a_namespace_that_only_one_knows(self):
        inner = '#include "c.hpp"\nnamespace n { void a() {} }'
        uses = '#include "d.hpp"\nnamespace n { void b() { test::x = 1; } }'
        self.assertTrue(self.disturbs(inner, uses, c='namespace n::test { }', d='namespace test { }'))
        self.assertFalse(self.disturbs(inner, uses, c='namespace test { }', d='namespace n::test { }'))
        using = 'using namespace n;\nusing namespace m;\n'
        self.assertTrue(self.disturbs('#include "c.hpp"\n' + using, '#include "d.hpp"\n' + using + 'void b() { test::x = 1; }',
                                     c='namespace m::test { }', d='namespace n::test { }'))
        self.assertFalse(self.disturbs(inner, 'namespace n { int b(int test) { return test; } }', c='namespace n::test { }'))

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
                batch_source.source_of.cache_clear()
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
            write('d.hpp', 'inline int c(double) { return c(); }')  # beside c.cpp another c
            self.assertEqual(read_again(), (1, both.replace('c_and_1_more.cpp', 'c.cpp') + f'y\t\t{paths[3]}\n'))
            os.remove(os.path.join(folder, 'a_and_1_more.cpp'))
            self.assertEqual(read_again()[0], 1)
            write('list.known', '{')
            self.assertEqual(read_again()[0], 2)
            write('a.cpp', '#include "late.hpp"\nint a() { return 1; }\n')
            self.assertEqual(read_again()[0], 1)
            write('late.hpp', 'inline int b(double) { return b(); }')  # which b.cpp does not include
            self.assertEqual(read_again(), (1, f'x\t\t{paths[0]}\nx\t\t{paths[1]}\ny\t\t{paths[2]}\ny\t\t{paths[3]}\n'))

    def test_a_header_that_changes_while_it_is_read_is_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            def path(name):
                return os.path.join(folder, name)

            def write(name, text):
                with open(path(name), 'w', encoding='utf-8') as file:
                    file.write(text)

            def batches_of(during=lambda: None):
                batch_source.source_of.cache_clear()

                def sources(group):
                    self.assertTrue(all(source.files for source in group))
                    during()  # both sources and the header were read
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
            self.assertEqual(batches_of(lambda: write('a.hpp', 'inline int b(double) { return b(); }')), 1)
            self.assertEqual(batches_of(), 2)

    def test_every_run_writes_the_same_batch(self):
        with tempfile.TemporaryDirectory() as folder:
            def path(name):
                return os.path.join(folder, name)

            headers = ('array', 'cmath', 'functional', 'map', 'memory', 'optional', 'string', 'vector')
            for name in headers:
                with open(path(name + '.hpp'), 'w', encoding='utf-8') as file:
                    file.write(f'#include <{name}>\n')
            for name in ('a', 'b'):
                with open(path(name + '.cpp'), 'w', encoding='utf-8') as file:
                    file.write(''.join(f'#include "{header}.hpp"\n' for header in headers) + f'int {name}();\n')
            with open(path('groups'), 'w', encoding='utf-8') as file:
                file.write('\t'.join(['x', '', folder, path('batches'), path('a.cpp'), path('b.cpp')]) + '\n')
            texts = set()
            for seed in range(8):  # of the order of Python's sets
                subprocess.run([sys.executable, batches.__file__, path('groups'), path(f'list{seed}')], check=True,
                               env={**os.environ, 'PYTHONHASHSEED': str(seed)})
                with open(path('batches/a_and_1_more.cpp'), encoding='utf-8') as file:
                    texts.add(file.read())
            self.assertEqual(len(texts), 1)

    def test_using_directives(self):
        plain, using = 'namespace n { int a() { return 1; } }', 'using namespace m;\nint b() { return 1; }'
        self.assertEqual(self.order(plain, using), 'ab')
        self.assertFalse(self.disturbs('using namespace m;\nint a() { return 1; }', using))
        self.assertTrue(self.disturbs(using, plain))  # nothing is known of m
        using = '#include "c.hpp"\nusing namespace n::m;\nint a() { return 1; }'
        names = 'namespace n::m { struct Help {}; void help(int); namespace test {} }'
        for user in ('void b() { help(1); }', 'void b() { test::x(); }', '#include "d.hpp"\nHelp b();'):
            with self.subTest(user=user):
                self.assertTrue(self.disturbs(using, user, c=names, d='struct Help {};'))
        for user in ('void b();', 'namespace n::m { Help b(); }', '#include "d.hpp"\nnamespace l { Help b(); }', 'void b() { o::help(1); }'):
            with self.subTest(user=user):
                self.assertFalse(self.disturbs(using, '#include "c.hpp"\n' + user, c=names, d='namespace l { struct Help {}; }'))

    def test_sources_that_are_compiled_alone(self):
        for text in ('#define X 1', '#if A\n#endif', '#include "table.def"', 'bool operator<(T, T) { return false; }', 'extern "C" { int c; }',
                     'using enum n::Color;', 'using n::x, n::y;', 'const auto [x, y] = p;', 'auto&& [x, y] = p;', 'int (*help)(int) = two;', 'int (&help)[1] = x;',
                     'int (help)(int) { return 2; }', 'T (help)(int) { return 2; }', '_Pragma("GCC optimize")'):
            with self.subTest(text=text):
                self.assertFalse(self.shared(text, 'int b() { return 1; }'))


if __name__ == '__main__':
    unittest.main()
