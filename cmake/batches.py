"""Groups C++ sources into batches: each batch is compiled as one file that includes its sources.

    batches.py GROUPS LIST

GROUPS has a line for each group of sources that may share batches: target, compile options, the folder that its sources lie below,
a folder for its batches, and the sources, separated by tabs. LIST becomes what is to be compiled: target, options, path.
LIST.known keeps what each group became and the times of the files it was made from: groups without a change are not read again.

Headers cost most of the time of a short source; in a batch later sources find those of the earlier ones read. Each source must mean
in a batch what it means alone. A source or header may come after another that it does not include only if

- no mention in it can mean a name that the other declares at namespace scope, namespaces included;
- a name of a using-declaration or an alias at namespace scope of the other source means the same in it, or does not occur in it;
- no using-directive at namespace scope of the other source adds a meaning to a name that it mentions, also of what a third source declares.

So many pairs of sources have one order: the source that calls `help()` comes before the one that has a `help()` of its own.
A name counts as mentioned wherever the identifier stands, but not after `.`, `->` or `std::`, not where it means a member of the class around it or
a parameter of the template around it, and of a function only in calls, as in `name(` or `name<`. A mention can mean a name

- without a `::` before it: of a namespace that the source opens or has a using-directive for, unless the source itself first declares that name further inside;
- with one: of a namespace of this last name, or one that it is an alias of;
- of a function in a call, too: of a namespace in which the source knows a type. These are the namespaces of its arguments; a lookup by arguments
  ignores unnamed namespaces.

A function with a parameter of a closed type, one that its header declares and that nothing converts to, does not count: a source that does
not know the type has no argument for it. A source with preprocessor lines other than #include and OpenMP's, with operators of its own, or with extern "C" is
compiled alone; so is one with `using enum`, an inline namespace or a declarator in brackets. A header's macros and operators count too.

Order protects only names that are looked up where they are written. A call inside a template or a generic lambda is looked up once more
where it is instantiated, at the end of the batch: of these, and of functions mentioned without a call, nothing is checked.

LIST.d names the files read, for ninja.
"""
import functools
import json
import multiprocessing
import os
import re
import sys

import batch_mentions
import batch_source
from batch_source import changed, last_of, own_header, source_of

MOST_SOURCES = 12
MOST_LINES = 2500
FEW_SOURCES = 100  # are read in less time than more processes take to start

class Batch:
    """Sources in an order in which each means what it means alone."""

    def __init__(self, source):
        self.sources = [source]
        self.lines = source.lines
        self.headers = set(source.headers)

    def takes(self, source):
        """Adds the source, if the batch has an order with it."""
        if len(self.sources) == MOST_SOURCES or self.lines + source.lines > MOST_LINES:
            return False
        order, left = [], [*self.sources, source]
        while left:
            first = next((a for a in left if not any(disturbs(a, b) or any(opens_for(a, b, c) for c in self.sources + [source] if c not in (a, b))
                                                     for b in left if b is not a)), None)
            if first is None:
                return False
            order.append(first)
            left.remove(first)
        self.sources = order
        self.lines += source.lines
        self.headers |= source.headers
        return True


@functools.cache
def disturbs(source, other):
    """Whether `other`, or a header that only it includes, means something else, or nothing, after `source`."""
    return follows_badly(other, source) or any(follows_badly(source_of(header), source) for header in other.headers - source.headers)


@functools.cache
def follows_badly(file, source):
    """Whether the file means something else, or nothing, after `source` and the headers that only `source` includes."""
    if changes(source, file):
        return True
    for header in source.headers - file.headers - file.undisturbed_by:
        if header != file.path and (adds_more(source_of(header), file) or of_header(source_of(header), file)):
            return True
        file.undisturbed_by.add(header)
    return False


def changes(source, other):
    """Whether `other` means something else, or nothing, with the declarations of `source` before it."""
    if any(opens(source, other, *directive) for directive in source.directives - other.directives):
        return True
    if any(other.resolves_otherwise(name) or makes_ambiguous(name, other) for name in source.known_namespaces - other.known_namespaces):
        return True
    mentioned = source.declared & other.mentions.names.keys()
    if not mentioned:
        return False
    header = own_header(source.path)
    known = source_of(header) if header in other.headers or header == other.path else None
    return (any(matters(declared, name, source, other) for name in mentioned for declared in source.own.all.get(name, ()))
            or any(matters(declared, name, source, other) for name in mentioned for declared in source.defined.all.get(name, ())
                   if not (known and repeats(declared, known.defined.all.get(name, ()))))
            or any(means(other, name, scope) and ((scope, text) not in other.aliases.get(name, ()) or not declares_first(other, name, scope))
                   for name in mentioned & source.aliases.keys() for scope, text in source.aliases[name])
            or any(means(other, name, scope) and visible(other, name) != {source.target(scope, qualifier)}
                   for name in mentioned & source.used.keys() for scope, qualifier in source.used[name]))


@functools.cache
def opens_for(source, other, third):
    """Whether a using-directive of `source` shows `other` what `third`, before both, adds to the namespace."""
    return any(opens(source, other, *directive, third) for directive in source.directives - other.directives)


def declares_first(other, name, scope):
    """Whether the first mention of the name in `other` is its declaration."""
    return (name, scope) in other.before_others or name in other.mentions.aliases


def repeats(declared, known):
    """Whether the declaration says nothing that those of the header do not say."""
    return any(declared.namespace == other.namespace and declared.function == other.function and declared.parameters == other.parameters
               for other in known)


def makes_ambiguous(namespace, other):
    """Whether `other` mentions something else that it knows by the last name of the namespace."""
    around, _, name = namespace.rpartition('::')
    qualifiers = other.mentions.plain.get(name)
    return bool(qualifiers) and other.sees(around, qualifiers) and bool(other.meanings(name))


def adds_more(header, other):
    """Whether the header changes `other` by more than names: by macros, operators, or declarations that are not understood."""
    return (header.changes_others or not header.macro_names.isdisjoint(other.words)
            or any(not operator.types.isdisjoint(other.known_names) and (operator.namespace in other.argument_namespaces or other.sees(operator.namespace, {''}))
                   and not has_no_arguments(operator, header, other) for operator in header.operators))


def of_header(header, other):
    """Whether `other`, which does not include the header, mentions a name that the header declares."""
    mentioned = header.declared & other.mentions.names.keys()
    return (any(matters(declared, name, header, other) for names in (header.own.all, header.defined.all)
                for name in mentioned for declared in names.get(name, ()))
            or any(means(other, name, scope) for names in (header.aliases, header.used) for name in mentioned for scope, _ in names.get(name, ())))


def means(other, name, namespace):
    """Whether a mention of the name in `other` could mean one in that namespace."""
    qualifiers = other.mentions.names.get(name, set())
    return other.sees(namespace, qualifiers - {''} if other.hides(name, namespace) else qualifiers)


@functools.cache
def visible(other, name):
    """The namespaces of what `name` may mean in `other`."""
    return {entity for space, entity in other.meanings(name) if means(other, name, space)}


def matters(declared, name, source, other):
    """Whether a mention of the name in `other` could mean what `source` declares."""
    if not declared.function:
        return means(other, name, declared.namespace) and (declared.unnamed or (name, declared.namespace) not in other.forward)
    if not other.header and any(d.namespace == declared.namespace for names in (other.own, other.defined) for d in names.all.get(name, ())):
        return True
    called = other.mentions.called.get(name, set())
    if not called:
        return False
    sees = other.sees(declared.namespace, called - {''} if other.hides(name, declared.namespace) else called)
    if not declared.unnamed and name not in other.mentions.braced and has_no_arguments(declared, source, other):
        return sees and would_hide(declared, name, other)
    return sees or '' in called and not declared.unnamed and declared.namespace in other.argument_namespaces


def has_no_arguments(declared, source, other):
    """Whether `other` cannot call the function: nothing that it knows converts to one of its parameters."""
    def unknown(type):
        files = [file for file in source.files if type in file.declared]
        return files and all(type in file.closed and file not in other.files for file in files) and type not in other.known_names
    return any(map(unknown, declared.types))


def would_hide(declared, name, other):
    """Whether `other` means a function of another namespace, which a lookup that finds the declared one may not get to."""
    spaces = {space for space, _ in other.meanings(name)}
    return bool(spaces) and declared.namespace not in spaces


def opens(source, other, scope, name, *more):
    """Whether a using-directive of `source` before `other` changes what it means, where `more` sources are before it, too."""
    namespace, files = source.target(scope, name), (source, other, *more)
    if namespace not in source.known_namespaces:
        return True
    around = scope
    while around and not namespace.startswith(around + '::'):
        around = around.rpartition('::')[0]  # where the names of the namespace appear

    for inner in set().union(*(file.known_namespaces for file in files)):
        if inner.startswith(namespace + '::') and last_of(inner) in other.mentions.first:
            known = {known for known in other.known_namespaces if last_of(known) == last_of(inner)}
            if known != {inner} and not found_before(other, around, {known.rpartition('::')[0] for known in known}):
                return True
    return any(shows(other, namespace, around, name, function) for file in files
               for name, function in file.names_in(namespace) & other.names_and_calls)


@functools.cache
def shows(other, namespace, around, name, function):
    """Whether the name means something else in `other` where those of the namespace appear around it."""
    known = visible(other, name)
    return (known != {namespace} and bool(known or function)
            and not found_before(other, around, {space for space, _ in other.meanings(name)}))


def found_before(other, around, spaces):
    """Whether a lookup in any scope of `other` finds a name in one of the spaces before it gets to `around`."""
    return all(any(space != around and (around == '' or space.startswith(around + '::')) and (scope + '::').startswith(space + '::')
                   for space in spaces) for scope in other.scopes)


def is_alone(source):
    return source.alone or source.names_a_class_by_an_alias


def batches(sources):
    """The sources that disturb most others first, each in the batch that reads most of its headers."""
    sources = sorted(sources, key=lambda source: source.path)
    shared = [source for source in sources if not is_alone(source)]
    apart = {source: sum(disturbs(source, other) and disturbs(other, source) for other in shared if other is not source) for source in shared}
    found = []
    for source in sorted(shared, key=lambda source: -apart[source]):
        if not any(batch.takes(source) for batch in sorted(found, key=lambda batch: -len(batch.headers & source.headers))):
            found.append(Batch(source))
    return found + [Batch(source) for source in sources if is_alone(source)]


def text_of(batch):
    """The batch as a source: first the headers of libraries, so that none of them sees ours. They are sorted, because an order that
    differs from run to run would compile every batch of a target again after a change to one source."""
    libraries = sorted({name for source in batch.sources for file in source.files if not file.conditional
                        for name in file.included if name[0] == '<'})
    return ''.join(f'#include {header}\n' for header in [*libraries, *(f'"{source.path}"' for source in batch.sources)])


def write(path, text):
    """An unchanged file keeps its time, so that nothing is compiled or configured again."""
    if os.path.exists(path):
        with open(path, encoding='utf-8') as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def compiled(group):
    """What a group of sources is compiled as, and the files that this depends on with their times; None where there is none."""
    name, _, root, folder, *paths = group.split('\t')
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
    read = {**{path: changed(path) for path in (__file__, batch_source.__file__, batch_mentions.__file__)}, **{path: None for path in paths}}
    for source in sources:
        for file in (source, *map(source_of, source.headers)):
            read.update({path: None for path in (own_header(file.path), *file.absent) if not os.path.exists(path)})
            read[file.path] = file.changed
            if os.path.exists(own_header(file.path)):
                read[own_header(file.path)] = source_of(own_header(file.path)).changed
    return found, read


def read_all(groups):
    processes = len(os.sched_getaffinity(0))
    if processes > 1 and sum(group.count('\t') for group in groups) > FEW_SOURCES:
        try:
            pool = multiprocessing.Pool(processes)
        except (ImportError, OSError):  # a machine without semaphores
            return map(compiled, groups)
        with pool:
            return pool.map(compiled, groups, chunksize=1)
    return map(compiled, groups)


def main():
    groups, target = sys.argv[1:]
    try:
        with open(target + '.known', encoding='utf-8') as file:
            known = json.load(file)
    except (OSError, ValueError):
        known = {}
    with open(groups, encoding='utf-8') as file:
        wanted = file.read().splitlines()
    now = {}
    for group in wanted:
        try:
            found, files = known[group]
        except (KeyError, TypeError, ValueError):  # a file of another version
            continue
        if files and all(changed(path) == time for path, time in files.items()) and all(map(os.path.exists, found)):
            now[group] = found, files
    # The groups with most sources first, so that all processors are busy until the end.
    rest = sorted((group for group in wanted if group not in now), key=lambda group: -group.count('\t'))
    now.update(zip(rest, read_all(rest)))
    lines, read, owner = [], set(), {}
    for group in wanted:
        name, options, _, _, *paths = group.split('\t')
        found, files = now[group]
        for path in set(found) - set(paths):
            if owner.setdefault(path, name) != name:
                sys.exit(f'{path}: {owner[path]} and {name} would write their batch there: list a source of both in another order')
        lines += [f'{name}\t{options}\t{path}\n' for path in found]
        read |= files.keys()
    write(target, ''.join(lines))
    write(target + '.known', json.dumps({group: now[group] for group in wanted}))
    escaped = [re.sub(r'([ #])', r'\\\1', path).replace('$', '$$') for path in [target, *sorted(filter(os.path.exists, read))]]
    write(target + '.d', f'{escaped[0]}: \\\n' + ' \\\n'.join(escaped[1:]) + '\n')


if __name__ == '__main__':
    main()
