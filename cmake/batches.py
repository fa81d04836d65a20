"""Groups C++ sources into batches: each batch is compiled as one file that includes its sources.

    batches.py GROUPS LIST

GROUPS has a line for each group of sources that may share batches: target, compile options, the folder that its sources lie below,
a folder for its batches, and the sources, separated by tabs. LIST becomes what is to be compiled: target, options, path.
LIST.known keeps what each group became and the times of the files it was made from: groups without a change are not read again.

Headers cost most of the time of a short source; a batch reads them once, before its sources. Each source must mean in a batch
what it means alone. Two sources share a batch only if

- no name that one of them declares for itself occurs in the other: names in unnamed namespaces, `static` ones, aliases at
  namespace scope, and functions and variables that it defines although the other does not include its header;
- no name that a header of ours declares at namespace scope, a nested namespace included, occurs in a source of the batch that does not include this header;
- a name of a using-declaration at namespace scope means the same in the other, or does not occur there;
- their using-directives at namespace scope are equal.

A name counts as occurring wherever the identifier stands, unless it follows `.`, `->` or `std::`. Of a function only calls count, as in
`name(` or `name<`. They find functions in the namespaces of their arguments, too, so a function's own namespace does not matter. Other names
count only where the source opens their namespace or names it before a `::`, names of namespaces only before a `::`. A function whose first parameter is of a closed
type, one that its header declares and that nothing converts to, does not count: who does not include the header has no argument for it.
A source with preprocessor lines other than #include and OpenMP's, with operators of its own, or with extern "C" is compiled alone.

LIST.d names the files read, for ninja.
"""
import functools
import json
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
MACROS = frozenset(['TEST_CASE', 'TEMPLATE_TEST_CASE', 'TEMPLATE_TEST_CASE_SIG', 'TEMPLATE_LIST_TEST_CASE', 'NUMEMU_FUZZ_TARGET'])

# Namespaces in which no source of ours declares anything: their names mean the same beside any of our declarations.
LIBRARIES = frozenset(['std', 'fmt', 'Catch'])


def is_name(token):
    return (token[0].isalpha() or token[0] == '_') and token not in KEYWORDS


def mentions(tokens):
    """The names that occur as more than a member or a part of a library (std::exp); those before a `::`, the first ones of
    qualified names apart; those before a `(` or `<`; those before a `({`."""
    names, qualifiers, first, called, braced = set(), set(), set(), set(), set()
    library = False  # inside std::...::
    for before, token, after, second in zip([''] + tokens, tokens, tokens[1:] + [''], tokens[2:] + ['', '']):
        if not is_name(token):
            continue
        library = before == '::' and library or before != '::' and token in LIBRARIES and after == '::'
        if before not in ('.', '->') and not library:
            names.add(token)
            if after == '::':
                qualifiers.add(token)
                if before != '::':
                    first.add(token)
            if after in ('(', '<'):
                called.add(token)
            if after == '(' and second == '{':
                braced.add(token)
    return names, qualifiers, first, called, braced


class Names:
    """Names at namespace scope: functions, which calls find in the namespaces of their arguments too, and others."""

    def __init__(self):
        self.functions, self.others = {}, {}  # with their namespaces

    def add(self, name, function, namespace):
        (self.functions if function else self.others).setdefault(name, set()).add(namespace)

    def spaces(self, name):
        return self.functions.get(name, set()) | self.others.get(name, set())

    def without(self, names):
        rest = Names()
        rest.functions = {name: spaces for name, spaces in self.functions.items() if name not in names}
        rest.others = {name: spaces for name, spaces in self.others.items() if name not in names}
        return rest

    def meant_by(self, source):
        """Whether a mention in the source could mean one of them."""
        return not self.functions.keys().isdisjoint(source.called | source.declared) or any(
            source.sees(namespace) for name in self.others.keys() & source.mentioned for namespace in self.others[name])


def changed(path):
    """When the file was changed; None where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


class Source:
    """What decides which sources may share a batch."""

    def __init__(self, path):
        self.changed = changed(path)  # before it is read: what changes while it is read is read again
        with open(path, encoding='utf-8') as file:
            text = file.read()
        self.path = path
        self.absent = set()  # headers that would be ours if they were there
        self.lines = text.count('\n')
        directives = re.findall(r'^[ \t]*#[ \t]*(\w+)(.*)$', text, re.M)
        self.included = [rest.strip() for word, rest in directives if word == 'include']
        self.alone = any(word not in ('include', 'pragma') or word == 'pragma' and rest.split()[0] != 'omp'
                         or '.def"' in rest or '.inc"' in rest for word, rest in directives)
        code = re.sub(r'^[ \t]*#[ \t]*(?!pragma)[^\n]*(?:\\\n[^\n]*)*', '', text, flags=re.M)
        tokens = [t for t in (m.group() for m in TOKEN.finditer(code)) if not t.startswith(('//', '/*'))]
        self.mentioned, self.qualifiers, self.first_qualifiers, self.called, self.braced = mentions(tokens)
        self.own = Names()       # no other source of the batch may mention these
        self.defined = Names()   # nor these, unless it includes this source's header
        self.typed = Names()     # nor call these with braces first: functions whose first parameter is of a closed type
        self.closed = set()      # types that nothing converts to, of this file and the header of its name
        self.aliases = {}        # aliases: name to scope and text; another may only repeat them
        self.used = {}           # using-declarations: name to scope and qualifier; to another the name must mean the same
        self.namespaces = set()  # by their full names, with those around them
        self.scopes = set()      # the namespaces that something but a namespace stands in
        self.directives = set()  # using-directives, with the namespace that they are in
        header = own_header(path)
        if path != header and os.path.isfile(header):
            self.closed |= source_of(header).closed
        self._read(tokens + [';'])

    @functools.cached_property
    def declared(self):
        """What it declares at namespace scope."""
        return (self.own.others.keys() | self.own.functions.keys() | self.defined.others.keys() | self.defined.functions.keys()
                | self.aliases.keys() | self.used.keys())

    def sees(self, namespace):
        """Whether a name of the namespace may be meant without it, or through a qualified name."""
        return (namespace == '' or namespace in self.namespaces or bool(self.directives)
                or namespace.split('::')[-1] in self.qualifiers)

    def resolves_otherwise(self, namespace):
        """Whether `namespace`, unknown to this source, may be what it names by a `name::` without a qualifier before it."""
        around, _, name = ('::' + namespace).rpartition('::')
        around = around.removeprefix('::')
        if name not in self.first_qualifiers:
            return False
        if self.directives:  # through which it may be ambiguous
            return True
        return any(scope == around or around == '' or scope.startswith(around + '::') for scope in self.scopes
                   if not any((scope + '::').startswith(known.removesuffix(name)) and len(known) > len(namespace)
                              for known in self.known_namespaces if known.endswith('::' + name)))

    def meanings(self, name):
        """The namespaces of what `name` may mean here."""
        found = set()
        for file in (self, *map(source_of, self.headers)):
            found |= file.own.spaces(name) | file.defined.spaces(name) | file.typed.spaces(name)
            found |= {file.aliases[name]} if name in file.aliases else set()
            found |= {self.target(*file.used[name])} if name in file.used else set()
        return found

    def target(self, scope, qualifier):
        """The namespace that a using-declaration in a scope takes its name from."""
        if qualifier.split('::')[0] in LIBRARIES:
            return qualifier
        while scope and f'{scope}::{qualifier}' not in self.known_namespaces:
            scope = scope.rpartition('::')[0]
        return f'{scope}::{qualifier}'.removeprefix('::')

    @functools.cached_property
    def known_namespaces(self):
        return self.namespaces.union(*(source_of(header).namespaces for header in self.headers))

    @functools.cached_property
    def headers(self):
        """Our headers that it includes, directly or not."""
        found = set()
        for name in self.included:
            header = find_header(self.path, name, self.absent)
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
                if token not in ('namespace', '}', ';'):
                    self.scopes.add('::'.join(filter(None, scopes)))
                if token == 'namespace':
                    end = next(j for j in range(i, len(tokens)) if tokens[j] in ('{', ';'))
                    if tokens[end] == '{':
                        scopes.append(''.join(tokens[i + 1:end]))
                        self._namespace('::'.join(scopes))
                    else:
                        self.aliases[tokens[i + 1]] = '::'.join(scopes) + ' ' + ' '.join(tokens[i:end])
                        self.qualifiers.add(tokens[end - 1])
                    i = start = end + 1
                    continue
                if token == 'using':
                    end = tokens.index(';', i)
                    meaning = '::'.join(scopes) + ' ' + ' '.join(tokens[i + 1:end])
                    if tokens[i + 1] == 'namespace':
                        self.directives.add(meaning)
                    elif '=' in tokens[i:end]:
                        self.aliases[tokens[i + 1]] = meaning
                    else:
                        self.used[tokens[end - 1]] = ('::'.join(filter(None, scopes)), ''.join(tokens[i + 1:end - 2]))
                    i = start = end + 1
                    continue
                if token == 'template' and tokens[i + 1] == '<':
                    i = self._after_parameters(tokens, i + 1)
                    continue
                if token in ('operator', 'asm') or token == 'extern' and tokens[i + 1][0] == '"':
                    self.alone = True
                space = '::'.join(filter(None, scopes))
                if token in ('struct', 'class', 'enum', 'union') and tokens[i - 1] not in ('<', ',', 'typename'):
                    i = self._type(tokens, i, space)
                    token = tokens[i]
                elif token == 'concept':
                    self.own.add(tokens[i + 1], False, space)
                    i = start = self._end(tokens, i)
                    continue
                else:
                    self._declaration(tokens, i, start, '' in scopes, space)
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
        parts = [part for part in name.split('::') if part]
        self.namespaces.update('::'.join(parts[:count]) for count in range(1, len(parts) + 1))

    @staticmethod
    def _end(tokens, i):
        """Behind the declaration that i is in: behind its next semicolon outside of all brackets."""
        depth = 0
        while depth or tokens[i] != ';':
            depth += (tokens[i] in '([{') - (tokens[i] in ')]}')
            i += 1
        return i + 1

    @staticmethod
    def _after_parameters(tokens, i):
        """Where the template parameters that begin at i end: their names are known in their template alone."""
        angles = depth = 0
        while True:
            depth += (tokens[i] in '([{') - (tokens[i] in ')]}')
            if depth == 0:
                angles += (tokens[i] == '<') - (tokens[i] == '>')
                if angles == 0:
                    return i + 1
            i += 1

    def _type(self, tokens, i, space):
        """Notes the type that the keyword at i declares, and the enumerators of an unscoped one; returns where its body or its use begins."""
        scoped = tokens[i] != 'enum' or tokens[i + 1] in ('class', 'struct')
        name = i + 1 if tokens[i] != 'enum' or not scoped else i + 2
        if is_name(tokens[name]):
            self.own.add(tokens[name], False, space)
        end = next(j for j in range(name, len(tokens)) if tokens[j] in ('{', ';', '(', '='))
        if tokens[end] != '{':
            return name
        if not scoped:
            for enumerator in filter(is_name, tokens[end:tokens.index('}', end)]):
                self.own.add(enumerator, False, space)
        elif tokens[i] == 'enum' or not self._has_constructor(tokens, end, tokens[name]):
            self.closed.add(tokens[name])
        return end

    @staticmethod
    def _has_constructor(tokens, i, name):
        """Of a class whose body begins at i: of its own or taken from a base."""
        depth = 0
        while True:
            depth += (tokens[i] in '([{') - (tokens[i] in ')]}')
            if depth == 0:
                return False
            if depth == 1 and (tokens[i] == 'using' or tokens[i] == name and tokens[i + 1] == '(' and tokens[i - 1] != '~'):
                return True
            i += 1

    def _declaration(self, tokens, i, start, unnamed, space):
        """Notes the function or variable that token i declares, if it is the name of one."""
        if not is_name(tokens[i]) or tokens[i] in MACROS or i == 0 or tokens[i - 1] == '::':
            return
        if tokens[i].endswith('_'):  # a member in the initialisers of a constructor
            return
        if tokens[i + 1] in ('(', '=', '{', ';', '[', ',', ':'):
            function = tokens[i + 1] == '('
            unnamed = unnamed or 'static' in tokens[start:i]
            if function and not unnamed and self._takes_closed_type(tokens, i + 2):
                self.typed.add(tokens[i], True, space)
            else:
                (self.own if unnamed else self.defined).add(tokens[i], function, space)

    def _takes_closed_type(self, tokens, i):
        """Whether the parameters that begin at i begin with one of a closed type, as a value or by reference."""
        if tokens[i] == 'const':
            i += 1
        while tokens[i + 1] == '::':
            i += 2
        return tokens[i] in self.closed and tokens[i + 1] != '*' and tokens[i + 1:i + 3] != ['const', '*']  # nullptr converts


@functools.cache
def source_of(path):
    return Source(path)


def own_header(path):
    return os.path.splitext(path)[0] + '.hpp'


def find_header(path, name, absent):
    """The header of ours that the source at `path` includes as `name`; None for those of libraries and generated ones. Adds the
    places before it to `absent`."""
    folder = os.path.dirname(path)
    while name[0] == '"' and folder != '/':
        candidate = os.path.join(folder, name.strip('"'))
        if os.path.isfile(candidate):
            return candidate
        absent.add(candidate)
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
    if source.own.meant_by(other) or not source.typed.functions.keys().isdisjoint(other.braced):
        return True
    if any(name in other.mentioned and other.aliases.get(name) != meaning for name, meaning in source.aliases.items()):
        return True
    if any(name in other.mentioned and other.meanings(name) != {source.target(*used)} for name, used in source.used.items()):
        return True
    header = own_header(source.path)
    known = source_of(header).declared if header in other.headers else ()
    if source.defined.without(known).meant_by(other):
        return True
    if any(other.resolves_otherwise(name) for name in source.known_namespaces - other.known_namespaces):
        return True
    return any(of_header(header, other) for header in map(source_of, source.headers - other.headers))


def of_header(header, other):
    """Whether `other`, which does not include the header, mentions a name that the header declares."""
    return (header.own.meant_by(other) or header.defined.meant_by(other) or not header.typed.functions.keys().isdisjoint(other.braced)
            or not (header.aliases.keys() | header.used.keys()).isdisjoint(other.mentioned))


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


def compiled(name, root, folder, paths):
    """What a group of sources is compiled as, and the files that this depends on with their times; None where there is none."""
    sources = [source_of(path) for path in paths if os.path.exists(path)]  # one that was deleted is no error: see batches.cmake
    found = []
    for batch in batches(sources):
        path = batch.sources[0].path
        if len(batch.sources) > 1:
            stem = os.path.splitext(os.path.relpath(path, root))[0]
            if stem.startswith('..'):  # the target whose folder that is may have a batch of that name
                stem = f'{name}_{os.path.basename(stem)}'
            path = f'{folder}/{stem}_and_{len(batch.sources) - 1}_more.cpp'
            write(path, text_of(batch))
        found.append(path)
    read = {__file__: changed(__file__), **{path: None for path in paths}}
    for source in sources:
        for file in (source, *map(source_of, source.headers)):
            read.update({path: None for path in (own_header(file.path), *file.absent) if not os.path.exists(path)})
            read[file.path] = file.changed
            if os.path.exists(own_header(file.path)):
                read[own_header(file.path)] = source_of(own_header(file.path)).changed
    return found, read


def main():
    groups, target = sys.argv[1:]
    try:
        with open(target + '.known', encoding='utf-8') as file:
            known = json.load(file)
    except (OSError, ValueError):
        known = {}
    lines, read, now, owner = [], set(), {}, {}
    with open(groups, encoding='utf-8') as file:
        for group in file.read().splitlines():
            name, options, root, folder, *paths = group.split('\t')
            try:
                found, files = known[group]
            except (KeyError, TypeError, ValueError):  # a file of another version
                found, files = [], {}
            if not files or any(changed(path) != time for path, time in files.items()) or not all(map(os.path.exists, found)):
                found, files = compiled(name, root, folder, paths)
            now[group] = found, files
            for path in set(found) - set(paths):
                if owner.setdefault(path, name) != name:
                    sys.exit(f'{path}: {owner[path]} and {name} would write their batch there: list a source of both in another order')
            lines += [f'{name}\t{options}\t{path}\n' for path in found]
            read |= files.keys()
    write(target, ''.join(lines))
    write(target + '.known', json.dumps(now))
    escaped = [re.sub(r'([ #])', r'\\\1', path).replace('$', '$$') for path in [target, *sorted(filter(os.path.exists, read))]]
    write(target + '.d', f'{escaped[0]}: \\\n' + ' \\\n'.join(escaped[1:]) + '\n')


if __name__ == '__main__':
    main()
