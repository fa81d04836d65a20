"""Reads every source of a build folder with clang, as the build compiles it, and prints its errors and warnings. It writes no objects:
a build takes several times as long.

    clang_syntax_test.py BUILD [PART...]
    clang_syntax_test.py --self-test

PART limits it to sources with it in their path. Exits with 1 if clang refuses a source, with 77 where clang is not installed.
"""
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

# What gcc alone knows. Groups of sources have the second, for which clang needs another (cmake/groups.cmake).
OF_GCC = ('-munroll-only-small-loops', '-Wno-subobject-linkage', '-Wno-maybe-uninitialized', '-Winvalid-pch', '-c')
WITH_VALUE = ('--param', '-o', '-include', '-x')
FLAGS = ['-Werror', '-Wno-pass-failed']


def arguments(entry):
    """Those of clang, and the precompiled header."""
    given, found, header = shlex.split(entry['command'])[1:-1], [], None
    words = iter(given)
    for word in words:
        if word in WITH_VALUE:
            value = next(words)
            header = value if word == '-include' else header
        elif word not in OF_GCC:
            found.append(word)
    return [*found, *FLAGS, *(['-Wno-shadow'] if '-Wno-subobject-linkage' in given else [])], header


def run(entry, *words):
    done = subprocess.run(['clang++', *words], cwd=entry['directory'], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def precompiled(entry, options, header, known, folder):
    """The header as clang wants it, made once for all sources with the same options."""
    key = (header, *options)
    if key not in known:
        known[key] = os.path.join(folder, f'{len(known)}.pch')
        with open(header, encoding='utf-8') as file:
            text = file.read().replace('#pragma GCC system_header', '')
        with open(known[key][:-3] + 'hpp', 'w', encoding='utf-8') as file:
            file.write(text)
        status, errors = run(entry, *options, '-x', 'c++-header', known[key][:-3] + 'hpp', '-o', known[key])
        if status != 0:
            raise SystemExit(errors)
    return known[key]


def refused(build, parts):
    """The number of sources that clang refuses."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        entries = [e for e in json.load(file) if e['file'].endswith('.cpp') and (not parts or any(part in e['file'] for part in parts))]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        known, jobs = {}, []
        for entry in entries:
            options, header = arguments(entry)
            if header is not None:
                options = [*options, '-include-pch', precompiled(entry, options, header, known, folder)]
            jobs.append(pool.submit(run, entry, *options, '-fsyntax-only', entry['file']))
        results = [job.result() for job in jobs]
    for entry, (status, errors) in zip(entries, results):
        if status != 0:
            print(f'{entry["file"]}:\n{errors}')
    print(f'{len(entries)} sources')
    return sum(status != 0 for status, _ in results)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        entries = []
        for name, text in (('good', 'int f(const std::string& x) { return x.size() > 1; }'),
                           ('bad', 'int f() { auto [a, b] = std::pair(1, 2); return [&] { return a; }() + b; }')):
            path = os.path.join(folder, name + '.cpp')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text + '\n')
            entries.append({'directory': folder, 'file': path, 'command': f'c++ -std=c++20 --param ggc-min-heapsize=1 -include {folder}/all.hpp -o x.o -c {path}'})
        with open(os.path.join(folder, 'all.hpp'), 'w', encoding='utf-8') as file:
            file.write('#pragma GCC system_header\n#include <string>\n#include <utility>\n')
        with open(os.path.join(folder, 'compile_commands.json'), 'w', encoding='utf-8') as file:
            json.dump(entries, file)
        return refused(folder, ['good']) == 0 and refused(folder, []) == 1


if __name__ == '__main__':
    if shutil.which('clang++') is None:
        print('skipped: clang syntax: clang++ is not installed')
        sys.exit(77)
    sys.exit(not self_test() if sys.argv[1] == '--self-test' else refused(sys.argv[1], sys.argv[2:]) != 0)
