# Writes what one build of numemu computes into a folder, so that two builds can be compared byte by byte: encode, quantize, gemm of
# every named unit, analyze, a step of training, the first points of the default sweep. What a command refuses is an output, too.
# usage: outputs.py FOLDER PREFIX...     PREFIX...: what stands before the name of a program's group, as in  qemu-aarch64 cli/numemu-
import array
import itertools
import json
import os
import random
import subprocess
import sys

ROWS, DEPTH, LANES = 19, 256, 37
DISTRIBUTIONS = 'normal', 'laplace', 'uniform', 'lognormal:1'
OTHER_BLOCKS = 'bfp(5,16)', 'group(uint4,32,float16,zp)', 'group(int8,channel,float32)'
SWEEP_SHARDS = '0/1000', '1/1000', '7/1000'  # a point each

folder, prefix = os.path.abspath(sys.argv[1]), sys.argv[2:]
os.makedirs(folder)
prefix[-1] = os.path.abspath(prefix[-1])
counts = {'outputs': 0, 'refused': 0}


def numemu(group, *arguments, name):
    """Runs a command in the folder; its output, or that it is refused and why, is an output of this name."""
    command = [*prefix[:-1], prefix[-1] + group, *arguments]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if run.returncode not in (0, 1, 2):
        sys.exit(f'{" ".join(command)}: status {run.returncode}\n{run.stderr}')
    counts['outputs'] += 1
    counts['refused'] += run.returncode == 2
    with open(os.path.join(folder, name + '.txt'), 'w', encoding='utf-8') as file:
        file.write(run.stdout + (run.stderr if run.returncode else ''))
    return run.stdout


def write_floats(name, rows, columns, draw):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    with open(os.path.join(folder, name), 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header.encode())
        file.write(array.array('f', (draw() for _ in range(rows * columns))).tobytes())


def write_inputs():
    dice = random.Random(35)
    write_floats('x.npy', 64, 512, lambda: dice.gauss(0, 1) * 2.0 ** dice.randint(-20, 12))
    write_floats('a.npy', ROWS, DEPTH, lambda: dice.gauss(0, 1))
    write_floats('b.npy', DEPTH, LANES, lambda: dice.gauss(0, 1) * 2.0 ** dice.randint(-3, 3))
    for block in 16, 32:
        write_floats(f'sa{block}.npy', ROWS, DEPTH // block, lambda: 2.0 ** dice.randint(-6, 6))
        write_floats(f'sb{block}.npy', DEPTH // block, LANES, lambda: 2.0 ** dice.randint(-6, 6))


def codes(source, form):
    """The codes of a file of numbers in a format, made once."""
    made = f'{source}.{form}.npy'
    if not os.path.exists(os.path.join(folder, made)):
        numemu('numbers', 'encode', '--format', form, '--in', source + '.npy', '--out', made, name=made)
    return made


def multiply(unit):
    known = unit.get('parameters')
    if known is None:
        return  # of another library, not reproducible
    a, b = known.get('a', 'float8_e4m3fn'), known.get('b', 'float8_e5m2')
    options = ['--a', codes('a', a), '--b', codes('b', b)]
    options += [] if 'a' in known else ['--format-a', a, '--format-b', b]
    if 'block' in known.get('scaling', {}):
        block, form = known['scaling']['block'], known['scaling']['format']
        options += ['--scale-a', codes(f'sa{block}', form), '--scale-b', codes(f'sb{block}', form)]
    name = unit['name']
    numemu('numbers', 'gemm', '--unit', name, *options, '--out', f'gemm.{name}.npy', name=f'gemm.{name}')


write_inputs()
formats = json.loads(numemu('numbers', 'formats', '--json', name='formats'))
for form in formats:
    if form['kind'] != 'block':
        codes('x', form['name'])
for i, block in enumerate([*(form['name'] for form in formats if form['kind'] == 'block'), *OTHER_BLOCKS]):
    numemu('numbers', 'quantize', '--block', block, '--in', 'x.npy', '--out', f'block{i}.npy', '--codes', f'block{i}.codes.npy',
           '--scales', f'block{i}.scales.npy', name=f'block{i}')
for unit in json.loads(numemu('numbers', 'units', '--json', name='units')):
    multiply(unit)
for form, law in itertools.product(('e4m3fn', 'e2m1fn', 'int4', 'bfloat16'), DISTRIBUTIONS):
    numemu('numbers', 'analyze', '--format', form, '--dist', law, '--n', '20000', '--json', name=f'analyze.{form}.{law.replace(":", "-")}')
numemu('networks', 'train', '--net', 'mlp', '--data', 'glyphs', '--epochs', '1', '--batch', '55000', '--quiet', '--out', 'train', name='train')
for shard in SWEEP_SHARDS:
    numemu('networks', 'sweep', '--shard', shard, '--quiet', '--out', 'sweep', name=f'sweep.{shard.replace("/", "-")}')
os.remove(os.path.join(folder, 'sweep', 'times.jsonl'))
print(f'{folder}: {counts["outputs"]} outputs, of these {counts["refused"]} refusals')
