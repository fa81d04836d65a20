# What the attacks share: the program, small arrays, running it under limits, and telling findings.
import argparse
import hashlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

DTYPES = {"|u1": "B", "|i1": "b", "<u2": "H", "<i4": "i", "<u4": "I", "<f4": "f", "<f8": "d", "<u8": "Q"}


def options(what, count):
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--program", default=os.environ.get("NUMEMU_PROGRAM", "build/release/cli/numemu"))
    parser.add_argument("--count", type=int, default=count, help="how many (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case: repeats a finding with --count 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (default %(default)s)")
    parser.add_argument("--keep", help="a folder in which the files of every case stay")
    return parser


def draws(seed, case):
    """The random numbers of one case: the same for a seed, whatever ran before."""
    return random.Random(f"{seed}/{case}")


def npy(path, dtype, shape, values):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (dtype, "".join(f"{n}, " for n in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = values if isinstance(values, bytes) else struct.pack(f"<{len(values)}{DTYPES[dtype]}", *values)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def idx_folder(path, rng, train, test):
    """A data set that mnist:DIR reads."""
    os.makedirs(path, exist_ok=True)
    for split, n in (("train", train), ("t10k", test)):
        with open(f"{path}/{split}-images-idx3-ubyte", "wb") as file:
            file.write(struct.pack(">IIII", 0x803, n, 28, 28) + rng.randbytes(n * 784))
        with open(f"{path}/{split}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">II", 0x801, n) + bytes(rng.randrange(10) for _ in range(n)))


class Program:
    """The program under test; each folder is its cache too, so that nothing outside changes."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        if not os.access(self.path, os.X_OK):
            sys.exit(f"{path}: expected the program (--program)")

    def start(self, folder, arguments):
        environment = dict(os.environ, NUMEMU_CACHE=f"{folder}/.cache", OMP_NUM_THREADS="1")
        return subprocess.Popen([self.path, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, folder, arguments, seconds=600):
        """Exit code (negative: a signal; None: still running after `seconds`), stdout and stderr."""
        process = self.start(folder, arguments)
        try:
            out, err = process.communicate(timeout=seconds)
            return process.returncode, out, err.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, b"", ""

    def must(self, folder, arguments):
        code, out, err = self.run(folder, arguments)
        if code != 0:
            sys.exit(f"{' '.join(arguments)}: exit {code}: {err.strip()}")
        return out


def limit_memory(mebibytes):
    """Of every process that this one starts from now on: address space, and no core files."""
    resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class CaseFolder:
    """A folder for one case, removed at its end unless it is kept."""

    def __init__(self, keep, case):
        self.path = os.path.abspath(os.path.join(keep, str(case))) if keep else tempfile.mkdtemp(prefix="numemu-attack-")
        self.kept = keep
        if keep:
            shutil.rmtree(self.path, ignore_errors=True)
            os.makedirs(self.path)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        if not self.kept:
            shutil.rmtree(self.path, ignore_errors=True)


def start_worker(begin, arguments):
    """A worker that is told to end does so at once: an exception could leave it waiting for a lock of the pool."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if begin:
        begin(*arguments)


def run_cases(case, numbers, jobs, begin=None, arguments=()):
    """case(number) for each, in `jobs` processes; the results in order."""
    if jobs == 1:
        if begin:
            begin(*arguments)
        yield from map(case, numbers)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leaves nothing running
    with multiprocessing.Pool(jobs, start_worker, (begin, arguments)) as pool:
        yield from pool.imap(case, numbers, chunksize=1)
        pool.close()
        pool.join()


class Findings:
    """Prints each finding with the command that repeats it, and the counts at the end."""

    def __init__(self, script, options):
        self.script, self.options, self.count = script, options, 0

    def tell(self, case, what):
        self.count += 1
        print(f"FINDING case {case}: {what}\n  repeat: {self.script} --program {self.options.program} "
              f"--seed {self.options.seed} --first {case} --count 1 --jobs 1 --keep attack-{case}", flush=True)

    def end(self, counts):
        print(f"{counts}; {self.count} findings")
        sys.exit(1 if self.count else 0)
