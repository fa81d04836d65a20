"""Proves that the sources of a group (cmake/groups.cmake) refer to no name of each other: then each means in its group what it means alone.

    own_names_test.py BUILD [PART...]
    own_names_test.py --self-test

clang reads each group of a build folder as the build compiles it, and says what every name in a source refers to. A reference to what stands
in another source of the group is a finding: alone, the name would mean something else or nothing. PART limits it to groups with it in
their path. Exits with 1 after a finding, with 77 where clang's bindings (Debian: python3-clang) or groups are missing.
"""
import json
import multiprocessing
import os
import re
import shlex
import sys
import tempfile

sys.path.append('/usr/lib/python3/dist-packages')  # where Debian puts them, whichever python3 runs
try:
    import clang.cindex as clang
except ImportError:
    clang = None

ALONE = re.compile(r'^#(define|undef|if|pragma GCC)', re.M)  # as cmake/groups.cmake, which looks when it configures
WITH_VALUE = ('--param', '-o', '-include')
SHARED = ()  # what two sources may both declare: namespaces, and aliases of one, which the compiler compares
if clang is not None:
    SHARED = (clang.CursorKind.NAMESPACE, clang.CursorKind.NAMESPACE_ALIAS)
LEFT_OUT = ('-c', '-Winvalid-pch', '-Werror')


def arguments(command):
    """What clang needs to know of the compiler's command."""
    found, words = [], iter(shlex.split(command)[1:-1])
    for word in words:
        if word in WITH_VALUE:
            next(words)
        elif word not in LEFT_OUT and not word.endswith(('c++', 'g++', 'ccache', '.sh')):
            found.append(word)
    return found


def foreign(entry):
    """References of a source to what only another source of its group declares, and errors, as lines."""
    os.chdir(entry['directory'])
    unit = clang.Index.create().parse(entry['file'], args=arguments(entry['command']))
    findings = {f'{error.location.file}:{error.location.line}: {error.spelling}'
                for error in unit.diagnostics if error.severity >= clang.Diagnostic.Error}

    with open(entry['file'], encoding='utf-8') as file:
        sources = re.findall(r'#include "([^"]+)"', file.read())
        for source in sources if len(sources) > 1 else []:
            with open(source, encoding='utf-8') as text:
                if ALONE.search(text.read()):
                    findings.add(f'{source}: macros or conditions: configure again, so that it is compiled alone')

    def read(cursor, source):
        for child in cursor.get_children():
            meant = child.referenced
            if meant is not None and meant.kind not in SHARED:
                # An instance that a source demands of a template belongs to the header of the template.
                template = clang.conf.lib.clang_getSpecializedCursorTemplate(meant)
                file = (meant if template is None else template).canonical.location.file
                builtin = meant.spelling.startswith('__builtin_')  # declared where it is first named
                if file is not None and file.name.endswith('.cpp') and source not in (file.name, str(meant.location.file)) and not builtin:
                    findings.add(f'{source}:{child.location.line}: {meant.spelling} of {file.name}')
            read(child, source)

    for cursor in unit.cursor.get_children():
        if cursor.location.file is not None and cursor.location.file.name.endswith('.cpp'):
            read(cursor, cursor.location.file.name)
    return sorted(findings)


def findings(build, parts):
    """The number of findings in all groups; None without groups."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        groups = [e for e in json.load(file) if '/Unity/' in e['file'] and (not parts or any(part in e['file'] for part in parts))]
    if not groups:
        return None
    count = 0
    with multiprocessing.Pool() as pool:
        for lines in pool.imap_unordered(foreign, groups):
            for line in lines:
                print(line)
            count += len(lines)
    print(f'{len(groups)} groups, {count} findings')
    return count


def self_test():
    """A better overload of a neighbour is found; a group whose sources keep to themselves passes."""
    sources = {'macro': '#define N 2',
               'calls': 'namespace n { int f(long); int g() { return f(1); } }',
               'owns': 'namespace n { namespace { int f(int) { return 2; } } int h() { return f(1); } }'}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, 'Unity'))
        for name, text in sources.items():
            with open(os.path.join(folder, name + '.cpp'), 'w', encoding='utf-8') as file:
                file.write(text + '\n')
        counts = []
        for order in (('calls', 'owns'), ('owns', 'calls'), ('macro', 'owns')):
            group = os.path.join(folder, 'Unity', 'group.cxx')
            with open(group, 'w', encoding='utf-8') as file:
                file.write(''.join(f'#include "{folder}/{name}.cpp"\n' for name in order))
            with open(os.path.join(folder, 'compile_commands.json'), 'w', encoding='utf-8') as file:
                json.dump([{'directory': folder, 'file': group, 'command': f'c++ -std=c++20 -o x.o -c {group}'}], file)
            counts.append(findings(folder, []))
    return counts == [0, 1, 1]


if __name__ == '__main__':
    if clang is None:
        print('skipped: own names: python3-clang is not installed')
        sys.exit(77)
    if sys.argv[1] == '--self-test':
        sys.exit(not self_test())
    found = findings(sys.argv[1], sys.argv[2:])
    if found is None:
        print('skipped: own names: this build compiles every source alone (CMAKE_UNITY_BUILD)')
        sys.exit(77)
    sys.exit(found > 0)
