"""Which sources cmake/batches.py compiles together: pairs that would mean something else together are kept apart."""
import os
import sys
import tempfile
import unittest

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

    def test_a_header_that_only_one_includes(self):
        self.assertFalse(self.shared('#include "c.hpp"\nvoid a() {}', 'void b() { help(1); }', c='inline void help(double) {}'))
        self.assertFalse(self.shared('#include "c.hpp"\nvoid a() {}', 'namespace n { using test::x; }', c='namespace n::test { }'))
        self.assertTrue(self.shared('#include "c.hpp"\nvoid a() {}', 'void b() {}', c='inline void help(double) {}'))

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
