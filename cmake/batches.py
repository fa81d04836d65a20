"""Groups C++ sources into batches: each batch is compiled as one file that includes its sources.

    batches.py LIST ROOT FOLDER SOURCE...     writes batches of the SOURCEs (below ROOT) below FOLDER, and into LIST what is to be compiled

Headers cost most of the time of a short source; a batch reads them once, before its sources. Each source must mean in a batch
what it means alone. Two sources share a batch only if

- no name that one of them declares for itself occurs in the other: names in unnamed namespaces, `static` ones, aliases and
  using-declarations at namespace scope, and functions and variables that it defines although the other does not include its header;
- no name that a header of ours declares at namespace scope, a nested namespace included, occurs in a source of the batch that does not include this header;
- their using-directives at namespace scope are equal.

A name counts as occurring wherever the identifier stands, unless it follows `.` or `->`. A source with preprocessor lines other
than #include and OpenMP's, with operators of its own, or with extern "C" is compiled alone.
"""
import functools
import os
import re
import sys

MOST_SOURCES = 12
MOST_LINES = 2500

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
                   r'|[A-Za-z_]\w*|\d(?:[\w.]|\'\w)*|::|->|\S', re.S)
KEYWORDS = frozenset('''alignas alignof and auto bool break case catch char class concept const consteval constexpr constinit
continue decltype default delete do double else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not nullptr operator or private protected public requires return short signed sizeof static
static_assert struct switch template this throw true try typedef typename union unsigned using virtual void volatile
while'''.split())
# Macros that look like functions at namespace scope and declare nothing by their own name.
MACROS = frozenset(['TEST_CASE', 'TEMPLATE_TEST_CASE', 'TEMPLATE_TEST_CASE_SIG', 'TEMPLATE_LIST_TEST_CASE'])


def is_name(token):
    return (token[0].isalpha() or token[0] == '_') and token not in KEYWORDS


class Source:
    """What decides which sources may share a batch."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            text = file.read()
        self.path = path
        self.lines = text.count('\n')
        directives = re.findall(r'^[ \t]*#[ \t]*(\w+)(.*)$', text, re.M)
        self.included = [rest.strip() for word, rest in directives if word == 'include']
        self.alone = any(word not in ('include', 'pragma') or word == 'pragma' and rest.split()[0] != 'omp'
                         or '.def"' in rest or '.inc"' in rest for word, rest in directives)
        code = re.sub(r'^[ \t]*#[ \t]*(?!pragma)[^\n]*(?:\\\n[^\n]*)*', '', text, flags=re.M)
        tokens = [t for t in (m.group() for m in TOKEN.finditer(code)) if not t.startswith(('//', '/*'))]
        self.mentioned = {t for before, t in zip([''] + tokens, tokens) if is_name(t) and before not in ('.', '->')}
        self.own = set()         # no other source of the batch may mention these
        self.defined = set()     # nor these, unless it includes this source's header
        self.aliases = {}        # aliases and using-declarations: name to scope and text; another may only repeat them
        self.namespaces = set()  # by their full names
        self.directives = set()  # using-directives, with the namespace that they are in
        self._read(tokens + [';'])

    @functools.cached_property
    def declared(self):
        """All names at namespace scope."""
        return self.own | self.defined | self.aliases.keys()

    @functools.cached_property
    def known_namespaces(self):
        return self.namespaces.union(*(source_of(header).namespaces for header in self.headers))

    @functools.cached_property
    def headers(self):
        """Our headers that it includes, directly or not."""
        found = set()
        for name in self.included:
            header = find_header(self.path, name)
            if header and header not in found:
                found |= {header} | source_of(header).headers
        return found

    def _read(self, tokens):
        """Walks over the namespace scopes of the file."""
        scopes = []  # names of open namespaces, '' for unnamed ones, None for any other braces
        depth = 0    # of parentheses and brackets
        start = 0    # of the current declaration
        i = 0
        while i < len(tokens):
            token = tokens[i]
            if None not in scopes and depth == 0:
                if token == 'namespace':
                    end = next(j for j in range(i, len(tokens)) if tokens[j] in ('{', ';'))
                    if tokens[end] == '{':
                        scopes.append(''.join(tokens[i + 1:end]))
                        self._namespace('::'.join(scopes))
                    else:
                        self.aliases[tokens[i + 1]] = '::'.join(scopes) + ' ' + ' '.join(tokens[i:end])
                    i = start = end + 1
                    continue
                if token == 'using':
                    end = tokens.index(';', i)
                    meaning = '::'.join(scopes) + ' ' + ' '.join(tokens[i + 1:end])
                    if tokens[i + 1] == 'namespace':
                        self.directives.add(meaning)
                    else:
                        self.aliases[tokens[i + 1] if '=' in tokens[i:end] else tokens[end - 1]] = meaning
                    i = start = end + 1
                    continue
                if token in ('operator', 'asm') or token == 'extern' and tokens[i + 1][0] == '"':
                    self.alone = True
                if token in ('struct', 'class', 'enum', 'union') and tokens[i - 1] not in ('<', ',', 'typename'):
                    i = self._type(tokens, i)
                    token = tokens[i]
                else:
                    self._declaration(tokens, i, start, '' in scopes)
            if token in ('(', '['):
                depth += 1
            elif token in (')', ']'):
                depth -= 1
            elif token == '{':
                scopes.append(None)
            elif token == '}' and scopes:
                scopes.pop()
            if None not in scopes and depth == 0 and token in (';', '}'):
                start = i + 1
            i += 1

    def _namespace(self, name):
        parts = name.split('::')
        self.namespaces.update('::'.join(parts[:count]) for count in range(1, len(parts) + 1))

    def _type(self, tokens, i):
        """Notes the type that the keyword at i declares, and the enumerators of an unscoped one; returns where its body or its use begins."""
        scoped = tokens[i] != 'enum' or tokens[i + 1] in ('class', 'struct')
        name = i + 1 if tokens[i] != 'enum' or not scoped else i + 2
        if is_name(tokens[name]):
            self.own.add(tokens[name])
        end = next(j for j in range(name, len(tokens)) if tokens[j] in ('{', ';', '(', '='))
        if tokens[end] != '{':
            return name
        if not scoped:
            self.own.update(filter(is_name, tokens[end:tokens.index('}', end)]))
        return end

    def _declaration(self, tokens, i, start, unnamed):
        """Notes the function or variable that token i declares, if it is the name of one."""
        if not is_name(tokens[i]) or tokens[i] in MACROS or i == 0 or tokens[i - 1] == '::':
            return
        if tokens[i].endswith('_'):  # a member in the initialisers of a constructor
            return
        if tokens[i + 1] in ('(', '=', '{', ';', '[', ',', ':') or 'concept' == tokens[i - 1]:
            (self.own if unnamed or 'static' in tokens[start:i] else self.defined).add(tokens[i])


@functools.cache
def source_of(path):
    return Source(path)


@functools.cache
def find_header(path, name):
    """The header of ours that the source at `path` includes as `name`; None for those of libraries and generated ones."""
    folder = os.path.dirname(path)
    while name[0] == '"' and folder != '/':
        candidate = os.path.join(folder, name.strip('"'))
        if os.path.isfile(candidate):
            return candidate
        folder = os.path.dirname(folder)
    return None


class Batch:
    def __init__(self):
        self.sources = []
        self.lines = 0

    def takes(self, source):
        if not self.sources:
            return True
        return (len(self.sources) < MOST_SOURCES and self.lines + source.lines <= MOST_LINES
                and self.sources[0].directives == source.directives
                and not any(disturbs(other, source) or disturbs(source, other) for other in self.sources))

    def add(self, source):
        self.sources.append(source)
        self.lines += source.lines


def disturbs(source, other):
    """Whether `other` mentions a name that means something else, or nothing, without `source` before it."""
    if not source.own.isdisjoint(other.mentioned):
        return True
    if any(name in other.mentioned and other.aliases.get(name) != meaning for name, meaning in source.aliases.items()):
        return True
    header = os.path.splitext(source.path)[0] + '.hpp'
    if header not in other.headers and not source.defined.isdisjoint(other.mentioned):
        return True
    if any(name.split('::')[-1] in other.mentioned for name in source.known_namespaces - other.known_namespaces):
        return True
    return any(not source_of(header).declared.isdisjoint(other.mentioned) for header in source.headers - other.headers)


def batches(sources):
    """First fit in the order of the paths, so that sources of a folder meet."""
    alone, shared = [], []
    for source in sorted(sources, key=lambda source: source.path):
        batch = Batch() if source.alone else next((b for b in shared if b.takes(source)), None)
        if batch is None:
            batch = Batch()
            shared.append(batch)
        elif source.alone:
            alone.append(batch)
        batch.add(source)
    return shared + alone


def text_of(batch):
    """The batch as a source: all headers first, so that none of them sees the names of a source."""
    headers = dict.fromkeys(header for source in batch.sources for header in source.included)
    return ''.join(f'#include {header}\n' for header in [*headers, *(f'"{source.path}"' for source in batch.sources)])


def write(path, text):
    """An unchanged file keeps its time, so that nothing is compiled or configured again."""
    if os.path.exists(path):
        with open(path, encoding='utf-8') as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def main():
    target, root, folder, *paths = sys.argv[1:]
    compiled = []
    for batch in batches([source_of(path) for path in paths]):
        path = batch.sources[0].path
        if len(batch.sources) > 1:
            stem = os.path.splitext(os.path.relpath(path, root))[0]
            path = f'{folder}/{stem}_and_{len(batch.sources) - 1}_more.cpp'
            write(path, text_of(batch))
        compiled.append(path)
    write(target, ''.join(path + '\n' for path in compiled))


if __name__ == '__main__':
    main()
