"""Proves that batches mean what their sources mean alone (docs/build.md): compiles each batch of a build, and each of its sources,
without optimisation and compares every function: what it refers to, the constants that it reads, and its machine code.

    batch_functions.py BUILD [PART...]

BUILD is a build folder with NUMEMU_BATCHES (build/release); PART limits the proof to some targets, as numemu_net or net_test, or to
batches with it in their name. Prints each function that differs; exits with 1 if there is one. The libraries and programs take six
minutes of two processors. For gcc and clang on x86-64.
"""
import collections
import concurrent.futures
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile

# Without optimisation no function depends on another, and each has a section with its name.
FLAGS = ['-O0', '-ffunction-sections', '-fdata-sections', '-fmerge-constants', '-w']
# What a compiler makes once for each file from all its variables.
PER_FILE = re.compile(r'_GLOBAL__sub_[ID]_|_Z41__static_initialization_and_destruction_0')
# Counters of a file: in a batch they go on from those of the sources before.
COUNTED = re.compile(r'(numemu_test_case|UlvE|UlT_E)\d+')


ABSOLUTE = (1, 10, 11)  # relocations R_X86_64_64, _32 and _32S
# What an exception would call: gcc leaves it out where it has seen before that nothing in a function throws.
CLEANS_UP = re.compile(r'_Unwind_Resume|__cxa_|_ZSt9terminatev|__gxx_personality|D[0-2]Ev$')


class Section:
    def __init__(self, name, kind, flags, data, link, info):
        self.name, self.kind, self.data, self.link, self.info = name, kind, data, link, info
        self.shared = bool(flags & 0x200)  # of a group: an inline function or template, made where it is used


def sections_of(path):
    """The sections of an ELF object, 64 bits, little-endian."""
    with open(path, 'rb') as file:
        data = file.read()
    start, = struct.unpack_from('<Q', data, 0x28)
    size, count, names = struct.unpack_from('<HHH', data, 0x3a)
    first = struct.unpack_from('<IIQQQQIIQQ', data, start)
    count, names = count or first[5], names if names != 0xffff else first[6]  # more sections than 16 bits count
    headers = [struct.unpack_from('<IIQQQQIIQQ', data, start + i * size) for i in range(count)]
    text = data[headers[names][4]:headers[names][4] + headers[names][5]]
    return [Section(text[h[0]:text.index(b'\0', h[0])].decode(), h[1], h[2], data[h[4]:h[4] + h[5]] if h[1] != 8 else b'', h[6], h[7])
            for h in headers]


def named(section):
    """The name of what a section holds; gcc has several kinds of sections for data."""
    return COUNTED.sub(r'\1', section[section.find('_Z') if '_Z' in section else 0:])


def constant(section, offset):
    """What code reads at an offset of constants: the bytes of a number, or a text."""
    size = re.search(r'\.cst(\d+)$', section.name)
    if size:
        return section.data[offset:offset + int(size.group(1))]
    text = section.data[offset:section.data.find(b'\0', offset)]
    return text if '.str' in section.name or text.isascii() else b''  # of a table of jumps


def functions_of(path):
    """Each section of code or data of an object that bears a name: its bytes and what it refers to."""
    sections = sections_of(path)
    symbols = []
    for table in (s for s in sections if s.kind == 2):
        names = sections[table.link].data
        for i in range(0, len(table.data), 24):
            name, info, _, index, value, _ = struct.unpack_from('<IBBHQQ', table.data, i)
            symbols.append((names[name:names.index(b'\0', name)].decode(), info & 15, index, value))
    refers = collections.defaultdict(list)
    for s in (s for s in sections if s.kind == 4):
        for i in range(0, len(s.data), 24):
            _, info, addend = struct.unpack_from('<QQq', s.data, i)
            name, kind, index, value = symbols[info >> 32]
            if kind == 3 or name.startswith('.L'):  # a section, as code refers to what only its file knows
                target = sections[index]
                unnamed = '.str' in target.name or target.name.startswith('.rodata') and '_Z' not in target.name
                at = value + addend + (0 if info & 0xffffffff in ABSOLUTE else 4)  # others count from behind the reference
                name = ('constant', constant(target, at)) if unnamed else (named(target.name), addend)
            refers[s.info].append(name)
    found = {}
    for i, s in enumerate(sections):
        if s.kind in (1, 8, 14, 15) and '_Z' in s.name and not re.search(r'\.str|\.gcc_except_table|\.DW\.ref\.', s.name):
            parts = [COUNTED.sub(r'\1', str(part)) for part in refers[i] if part != ('constant', b'')]
            if PER_FILE.search(s.name):
                found.setdefault('', [True, set(), set()])[1].update(part for part in parts if not PER_FILE.search(part))
            else:
                found[named(s.name)] = [s.shared, set(parts), {(tuple(parts), s.data)}]
    return found


def compiled(command, source, folder):
    out = tempfile.mktemp('.o', dir=folder)
    subprocess.run([*command, '-o', out, '-c', source], check=True)
    try:
        return functions_of(out)
    finally:
        os.remove(out)


def differences(command, batch, folder):
    """The functions of a batch that differ from those of its sources, with an example of a reference that only one has."""
    with open(batch, encoding='utf-8') as file:
        sources = re.findall(r'^#include "(/.*)"$', file.read(), re.M)
    alone = {}
    for source in sources:
        for name, (shared, parts, codes) in compiled(command, source, folder).items():
            known = alone.setdefault(name, [shared, set(), set()])
            known[1].update(parts)
            known[2].update(codes)
    together, found = compiled(command, batch, folder), []
    for name in together.keys() | alone.keys():
        if name not in together or name not in alone:
            if not (together.get(name) or alone[name])[0]:
                found.append(f'{name}: missing')
            continue
        (_, parts, codes), (_, own, bodies) = together[name], alone[name]
        other = sorted(part for part in parts ^ own if not CLEANS_UP.search(part))
        if other:
            found.append(f'{name}: {other[0]}')
        elif not any(map(CLEANS_UP.search, parts | own)) and any(code not in bodies and any(references == code[0] for references, _ in bodies) for code in codes):
            found.append(f'{name}: its machine code')
    return found


def main():
    build, *wanted_parts = sys.argv[1:]
    with open(os.path.join(build, 'batches'), encoding='utf-8') as file:
        wanted = [path for target, _, path in (line.split('\t') for line in file.read().splitlines())
                  if not wanted_parts or any(part == target or part in path for part in wanted_parts)]
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = {entry['file']: shlex.split(entry['command']) for entry in json.load(file)}
    wanted = [path for path in wanted if '_more.cpp' in path and path in commands]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        headers = {}

        def plain(command):
            """The command without output and optimisation, with precompiled headers of its own."""
            command = command[next(i for i, word in enumerate(command) if re.search(r'(g|clang|c)\+\+[^/]*$', word)):command.index('-o')]
            command = [word for word in command if not re.match(r'-O|-W', word)] + FLAGS
            if '-include' in command:
                at = command.index('-include') + 1
                key = ' '.join(command)
                if key not in headers:
                    header = os.path.join(folder, f'h{len(headers)}', 'cmake_pch.hxx')
                    os.makedirs(os.path.dirname(header))
                    with open(header, 'w', encoding='utf-8') as file:
                        file.write(f'#include "{command[at]}"\n')
                    subprocess.run([*command[:at - 1], *command[at + 1:], '-x', 'c++-header', '-o', header + '.gch', '-c', header], check=True)
                    headers[key] = header
                command[at] = headers[key]
            return command

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [(path, pool.submit(differences, command, path, folder)) for path, command in
                    [(path, plain(commands[path])) for path in wanted]]
            for path, job in jobs:
                for name in sorted(job.result()):
                    failed += 1
                    print(f'{path}: {name} differs from its source alone', flush=True)
    print(f'{len(wanted)} batches, {failed} differences')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
