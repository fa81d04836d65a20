"""Compares a build with batches of sources with a plain one of the same tree, symbol by symbol.

    batch_symbols.py PLAIN_BUILD BATCHED_BUILD

What a library or program refers to outside itself must be equal: a call that means another function in a batch is another symbol.
Exit status 1 if a target differs.
"""
import collections
import pathlib
import subprocess
import sys


def external_symbols(build):
    """For each target the symbols of ours that its objects use and do not define."""
    used, defined = collections.defaultdict(set), collections.defaultdict(set)
    for path in pathlib.Path(build).rglob('*.o'):
        target = next((part for part in path.parts if part.endswith('.dir')), None)
        if target is None:
            continue
        for line in subprocess.run(['nm', path], capture_output=True, text=True, check=True).stdout.splitlines():
            *_, kind, name = line.split()
            if 'numemu' in name:
                (used if kind == 'U' else defined)[target].add(name)
    return {target: names - defined[target] for target, names in used.items()}


def main():
    plain, batched = map(external_symbols, sys.argv[1:3])
    different = False
    for target in sorted(plain.keys() | batched.keys()):
        for build, names in (('plain', plain.get(target, set()) - batched.get(target, set())),
                             ('batched', batched.get(target, set()) - plain.get(target, set()))):
            for name in sorted(names):
                different = True
                print(f'{target}: only the {build} build refers to {name}')
    print(f'{len(plain)} targets, {sum(map(len, plain.values()))} references: {"different" if different else "equal"}')
    return different


if __name__ == '__main__':
    sys.exit(main())
