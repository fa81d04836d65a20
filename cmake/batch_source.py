"""What of a C++ source decides which other sources may be compiled with it (batches.py): the names that it declares at namespace
scope, what it mentions and includes. Read from its tokens: nothing is compiled."""
import functools
import os
import re
import typing

from batch_mentions import LIBRARIES, TYPES, Mentions, after_parameters, is_name, tokens_of

# Macros that look like functions at namespace scope and declare nothing by their own name.
MACROS = frozenset(['TEST_CASE', 'TEMPLATE_TEST_CASE', 'TEMPLATE_TEST_CASE_SIG', 'TEMPLATE_LIST_TEST_CASE', 'NUMEMU_FUZZ_TARGET'])


def joined(scopes):
    """The full name of a namespace, without the unnamed ones in it."""
    return '::'.join(filter(None, scopes))


def last_of(namespace):
    return namespace.rpartition('::')[2]


class Declared(typing.NamedTuple):
    """What a file declares at namespace scope."""
    namespace: str
    function: bool
    unnamed: bool  # in an unnamed namespace, where no lookup by arguments finds it
    types: frozenset = frozenset()  # types of parameters without a default
    parameters: str = ''  # without their names and defaults; None where the source gives a default


class Names:
    """Names at namespace scope, each with what it means."""

    def __init__(self):
        self.all = {}

    def add(self, name, *declared):
        self.all.setdefault(name, []).append(Declared(*declared))

    def spaces(self, name):
        return {declared.namespace for declared in self.all.get(name, ())}


def changed(path):
    """When the file was changed; None where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


class Source:
    """A source or header."""

    def __init__(self, path):
        self.changed = changed(path)  # before it is read: what changes while it is read is read again
        with open(path, encoding='utf-8') as file:
            text = file.read()
        self.path = path
        self.header = path.endswith('.hpp')
        self.absent = set()  # headers that would be ours if they were there
        self.lines = text.count('\n')
        directives = re.findall(r'^[ \t]*#[ \t]*(\w+)(.*)$', text, re.M)
        self.included = [rest.strip() for word, rest in directives if word == 'include']
        self.conditional = any(word.startswith('if') for word, _ in directives)
        self.alone = not self.header and any(word not in ('include', 'pragma') or word == 'pragma' and rest.split()[0] != 'omp'
                         or '.def"' in rest or '.inc"' in rest for word, rest in directives)
        macros = re.findall(r'^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)', text, re.M)
        macros = [(name, body) for name, body in macros if body.strip() or not re.search(rf'#\s*ifndef\s+{name}\b', text)]
        self.changes_others = False  # of a header: by what no lookup of a name tells
        self.operators = []          # of a header
        self.macro_names = {name for name, _ in macros if not re.search(rf'#[ \t]*undef[ \t]+{name}\b', text)}
        self.words = set(re.findall(r'\w+', text)) - {name for name, _ in macros}
        self.macros = tokens_of(';'.join(body.replace('\\\n', ' ') for _, body in macros))
        tokens = tokens_of(text)
        self.mentions = Mentions(tokens)
        self.own = Names()       # in unnamed namespaces, static, and types
        self.defined = Names()   # functions and variables: the header of this source declares them, or none does
        self.forward = set()     # types that are declared without a body, with their namespaces
        self.closed = set()      # types that nothing converts to
        self.aliases = {}        # aliases: name to scopes and texts; another may only repeat them
        self.used = {}           # using-declarations: name to scopes and qualifiers; to another the name must mean the same
        self.namespaces = set()  # by their full names, with those around them
        self.scopes = set()      # the namespaces that something but a namespace stands in
        self.entered = set()     # what is before the `::` of names that are declared: the bodies see the namespace of their class
        self.classes = set()     # and those of the templates among them
        self.directives = set()  # using-directives: scope and namespace
        self.undisturbed_by = set()  # headers known to declare nothing that it mentions: a memory of batches.py
        self.before_others = set()  # names whose declaration here is their first mention, with its namespace
        self._read(tokens + [';'])
        macros_known = [token for header in self.headers for token in [*source_of(header).macros, ';']]
        if not self.header and macros_known:
            self.mentions.add(macros_known)

    @functools.cached_property
    def declared(self):
        """What it declares at namespace scope."""
        return self.own.all.keys() | self.defined.all.keys() | self.aliases.keys() | self.used.keys()

    def sees(self, namespace, qualifiers):
        """Whether a name of the namespace may be meant with one of the qualifiers."""
        if '' in qualifiers and (namespace == '' or namespace in self.namespaces or last_of(namespace) in self.entered
                                 or any(('::' + namespace).endswith('::' + name) or name.rpartition('::')[2] in self.namespace_aliases
                                        for name in self.all_directives)):
            return True
        if not qualifiers.isdisjoint(self.directed):  # a directive in the namespace that is named
            return True
        return any(last_of(namespace) in self.namespace_aliases.get(qualifier, ()) or qualifier == last_of(namespace)
                   for qualifier in qualifiers if qualifier)

    @functools.cached_property
    def files(self):
        """It and the headers of ours that it includes."""
        return [self, *map(source_of, self.headers)]

    @functools.cached_property
    def known_names(self):
        return set().union(*(file.declared for file in self.files))

    @functools.cached_property
    def all_directives(self):
        return set().union(*(file.mentions.directives for file in self.files))

    @functools.cached_property
    def directed(self):
        """The last names of namespaces, and of their aliases, that have using-directives."""
        found = {last_of(scope) for file in self.files for scope, _ in file.directives if scope}
        return found | {name for name, targets in self.namespace_aliases.items() if targets & found}

    @functools.cached_property
    def names_a_class_by_an_alias(self):
        """Whether the bodies of its members see namespaces that are not written before them."""
        return any(name in names for file in self.files for names in (file.aliases, file.used) for name in self.classes)

    @functools.cached_property
    def namespace_aliases(self):
        found = {}
        for file in self.files:
            for name, targets in file.mentions.aliases.items():
                found.setdefault(name, set()).update(targets)
        for name in found:  # aliases of aliases
            while not all(found.get(target, set()) <= found[name] for target in found[name]):
                found[name] = found[name].union(*(found.get(target, set()) for target in found[name]))
        return found

    @functools.cached_property
    def argument_namespaces(self):
        """The namespaces of the types that its arguments may have: in them calls find functions, too."""
        return set().union(*(file.scopes for file in self.files))

    def resolves_otherwise(self, namespace):
        """Whether `namespace`, unknown to this source, may be what it names by a `name::` without a qualifier before it."""
        around, _, name = ('::' + namespace).rpartition('::')
        around = around.removeprefix('::')
        if name not in self.mentions.first:
            return False
        if self.all_directives:  # through which it may be ambiguous
            return True
        return any(scope == around or around == '' or scope.startswith(around + '::') for scope in self.scopes
                   if not any((scope + '::').startswith(known.removesuffix(name)) and len(known) > len(namespace)
                              for known in self.known_namespaces if known.endswith('::' + name)))

    @functools.cache
    def meanings(self, name):
        """What `name` may mean here: the namespaces that it is declared in, each with that of the entity, for aliases with their text."""
        found = set()
        for file in self.files:
            found |= {(space, space) for space in file.own.spaces(name) | file.defined.spaces(name)}
            found |= file.aliases.get(name, set())
            found |= {(scope, self.target(scope, qualifier)) for scope, qualifier in file.used.get(name, ())}
        return found

    @functools.cached_property
    def names_and_calls(self):
        """The names that it mentions without a `::` before them, each with whether it is called."""
        return ({(name, False) for name, qualifiers in self.mentions.names.items() if '' in qualifiers}
                | {(name, True) for name, qualifiers in self.mentions.called.items() if '' in qualifiers})

    @functools.cache
    def names_in(self, namespace):
        """The names that are known of a namespace, each with whether it is a function."""
        if len(self.files) > 1:
            return frozenset().union(*(file.own_names_in(namespace) for file in self.files))
        return self.own_names_in(namespace)

    @functools.cache
    def own_names_in(self, namespace):
        return frozenset({(name, declared.function) for names in (self.own.all, self.defined.all) for name, all in names.items()
                          for declared in all if declared.namespace == namespace}
                         | {(name, False) for names in (self.aliases, self.used) for name, all in names.items()
                            for scope, _ in all if scope == namespace}
                         | {(last_of(inner), False) for inner in self.namespaces if inner.rpartition('::')[0] == namespace})

    def target(self, scope, qualifier):
        """The namespace that a using-declaration in a scope takes its name from."""
        if qualifier.split('::')[0] in LIBRARIES:
            return qualifier
        while scope and f'{scope}::{qualifier}' not in self.known_namespaces:
            scope = scope.rpartition('::')[0]
        return f'{scope}::{qualifier}'.removeprefix('::')

    def hides(self, name, namespace):
        """Whether an unqualified `name` here means a declaration of this source, before any of the namespace around it."""
        return any(found == name and inner and (namespace == '' or inner.startswith(namespace + '::'))
                   and all((scope + '::').startswith(inner + '::') for scope in self.scopes) for found, inner in self.before_others)

    @functools.cached_property
    def known_namespaces(self):
        return set().union(*(file.namespaces for file in self.files))

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
                    self.scopes.add(joined(scopes))
                if token == 'namespace':
                    if tokens[i - 1] == 'inline' or 'inline' in tokens[i:i + 5]:
                        self.alone = self.changes_others = True
                    end = next(j for j in range(i, len(tokens)) if tokens[j] in ('{', ';'))
                    if tokens[end] == '{':
                        scopes.append(''.join(tokens[i + 1:end]))
                        self._namespace(joined(scopes))
                    else:
                        self.aliases.setdefault(tokens[i + 1], set()).add((joined(scopes), '::'.join(scopes) + ' ' + ' '.join(tokens[i:end])))
                    i = start = end + 1
                    continue
                if token == 'using':
                    end = tokens.index(';', i)
                    if tokens[i + 1] == 'namespace':
                        self.directives.add((joined(scopes), ''.join(tokens[i + 2:end])))
                        self.changes_others = True
                    elif tokens[i + 1] == 'enum' or ',' in tokens[i:end] and '=' not in tokens[i:end]:
                        self.alone = self.changes_others = True
                    elif '=' in tokens[i:end]:
                        if self.mentions.position.get(tokens[i + 1]) == i + 1:
                            self.before_others.add((tokens[i + 1], joined(scopes)))
                        self.aliases.setdefault(tokens[i + 1], set()).add((joined(scopes), '::'.join(scopes) + ' ' + ' '.join(tokens[i + 1:end])))
                    else:
                        self.used.setdefault(tokens[end - 1], set()).add((joined(scopes), ''.join(tokens[i + 1:end - 2])))
                    i = start = end + 1
                    continue
                if token == 'template' and tokens[i + 1] == '<':
                    i = after_parameters(tokens, i + 1)
                    continue
                if token == 'operator' and self.header:
                    begin = tokens.index('(', i + 2)
                    types = frozenset(self._parameter_types(tokens, begin)) - set(self._template_parameters(tokens, start))
                    self.operators.append(Declared(joined(scopes), True, False, types))
                    i = begin
                    token = '('
                elif token in ('operator', 'asm', '_Pragma') or token == 'extern' and tokens[i + 1][0] == '"' and not self.header or self._is_hidden(tokens, start, i):
                    self.alone = True
                if token in ('struct', 'class', 'enum', 'union') and tokens[i - 1] not in ('<', ',', 'typename'):
                    i = self._type(tokens, i, joined(scopes), '' in scopes)
                    token = tokens[i]
                elif token == 'concept':
                    self.own.add(tokens[i + 1], joined(scopes), False, '' in scopes)
                    i = start = self._end(tokens, i)
                    continue
                else:
                    self._declaration(tokens, i, start, '' in scopes, joined(scopes))
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

    @staticmethod
    def _is_hidden(tokens, start, i):
        """Whether the bracket at i begins a declarator in brackets: `int (*x)(int)`, `int (x)(int)`, `auto [x, y]`."""
        before = tokens[i - 1] if i else ';'
        if tokens[i] == '[':
            return before == 'auto' or before == '&' and 'auto' in tokens[max(start, i - 3):i]
        declaration = tokens[after_parameters(tokens, start + 1) if tokens[start] == 'template' else start:i]
        if tokens[i] != '(' or {'=', ':'} & {*declaration} or tokens[start] == ',' or declaration.count('<') != declaration.count('>'):
            return False
        return (tokens[i + 1] in ('*', '&') or is_name(tokens[i + 1]) and tokens[i + 2] in ('::', ')')
                and before not in MACROS and (before in TYPES and tokens[i + 2] == ')' or tokens[i + 2] == ')' and tokens[i + 3] in ('(', '[') and tokens[start] != 'template'))

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

    def _type(self, tokens, i, space, unnamed):
        """Notes the type that the keyword at i declares, and the enumerators of an unscoped one; returns where its body or its use begins."""
        scoped = tokens[i] != 'enum' or tokens[i + 1] in ('class', 'struct')
        name = i + 1 if tokens[i] != 'enum' or not scoped else i + 2
        if is_name(tokens[name]) and tokens[name + 1] == ';':
            self.forward.add((tokens[name], space))
        if is_name(tokens[name]):
            self._add(self.own, tokens, name, space, False, unnamed)
        end = next(j for j in range(name, len(tokens)) if tokens[j] in ('{', ';', '(', '='))
        if tokens[end] != '{':
            return name
        if not scoped:
            for enumerator in filter(is_name, tokens[end:tokens.index('}', end)]):
                self.own.add(enumerator, space, False, unnamed)
        elif tokens[i] == 'enum' or ':' not in tokens[name:end] and not self._has_constructor(tokens, end, tokens[name]):
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
        if not is_name(tokens[i]) or tokens[i] in MACROS or tokens[i + 1] not in ('(', '=', '{', ';', '[', ',', ':'):
            return
        if i and tokens[i - 1] == '::':
            self.classes.update(tokens[j] for j in range(start, i - 1) if is_name(tokens[j]) and tokens[j + 1] in ('::', '<'))
            self.entered.update(token for token, after in zip(tokens[start:i], tokens[start + 1:i]) if after == '::')
            return
        if i == 0 or tokens[i].endswith('_') and (':' in tokens[start:i] or tokens[start] == ','):  # a member in the initialisers of a constructor
            return
        function = tokens[i + 1] == '('
        if function and self._is_value(tokens, start, i):
            self._add(self.own, tokens, i, space, False, unnamed)
        own = unnamed or 'static' in tokens[start:i]
        types = frozenset(self._parameter_types(tokens, i + 1)) - set(self._template_parameters(tokens, start)) if function else ()
        parameters = self._parameters(tokens, i + 1, self.header) if function else ''
        value = '=' in tokens[after_parameters(tokens, start + 1) if tokens[start] == 'template' else start:i]
        self._add(self.own if own else self.defined, tokens, i, space, function, unnamed, types, parameters, value=value)

    @staticmethod
    def _is_value(tokens, start, i):
        """Whether the parentheses behind the name at i may hold the value of a variable: `const T x(y);`, `T x(1);`."""
        depth, end = 1, i + 2
        while depth:
            depth += (tokens[end] in '([{') - (tokens[end] in ')]}')
            end += 1
        return ('=' not in tokens[start:i] and tokens[end] == ';' and tokens[i + 2] != ')'
                and ({'const', 'constexpr', 'constinit'} & set(tokens[start:i]) and tokens[i - 1] not in ('&', '*')
                     or not is_name(tokens[i + 2]) and tokens[i + 2] not in {*TYPES, '::', '.', 'struct', 'class', 'enum', 'typename'}))

    def _add(self, names, tokens, i, space, *declared, value=False):
        names.add(tokens[i], space, *declared)
        declares = tokens[i + 1] in '{;:' if tokens[i - 1] in ('struct', 'class') else is_name(tokens[i - 1]) or tokens[i - 1] in {*TYPES, '>'} or tokens[i - 1] == '&' != tokens[i - 2]
        if declares and not value and self.mentions.position.get(tokens[i]) == i:
            self.before_others.add((tokens[i], space))

    def _template_parameters(self, tokens, start):
        return tokens[start:after_parameters(tokens, start + 1)] if tokens[start] == 'template' else ()

    @staticmethod
    def _parameters(tokens, i, defaults):
        """The parameters between the parentheses that begin at i, without their names and defaults; None with a default where none is expected."""
        found, parameter, depth, angles = [], [], 0, 0
        while True:
            token = tokens[i]
            depth += (token in '([{') - (token in ')]}')
            angles += (token == '<') - (token == '>')
            if depth == 0 or depth == 1 and angles == 0 and token == ',':
                if '=' in parameter:
                    if not defaults:
                        return None
                    del parameter[parameter.index('='):]
                if len(parameter) > 1 and is_name(parameter[-1]) and parameter[-2] not in ('::', 'const', 'struct', 'class', 'enum', 'typename'):
                    del parameter[-1]
                found.append(' '.join(parameter))
                parameter = []
            elif depth > 1 or token != '(':
                parameter.append(token)
            if depth == 0:
                return ', '.join(found)
            i += 1

    @staticmethod
    def _parameter_types(tokens, i):
        """The types of the parameters without a default between the parentheses that begin at i: of those that are taken as values or
        by reference the last names."""
        found, parameter, depth, angles = [], [], 0, 0
        while True:
            token = tokens[i]
            depth += (token in '([{') - (token in ')]}')
            angles += (token == '<') - (token == '>')
            if depth == 0 or depth == 1 and angles == 0 and token == ',':
                if parameter and not set('=*<([') & set(parameter):
                    words = [word for word in parameter if word != 'const']
                    while len(words) > 2 and words[1] == '::':
                        words = words[2:]
                    found.append(words[0])
                parameter = []
            elif depth > 1 or token != '(':
                parameter.append(token)
            if depth == 0:
                return found
            i += 1


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
