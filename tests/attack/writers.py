#!/usr/bin/env python3
# Two runs write the same names at the same time, while a reader looks: it reads one of them or is refused, never a mixture.
import json
import os
import shutil
import sys
import tempfile

from attack import CaseFolder, Findings, Program, draws, npy, options, read, run_cases, sha256

N = 1 << 16  # elements: written in a few milliseconds, so that the two meet
ENCODE = [["--format", "e4m3fn"], ["--format", "int8"], ["--format", "e5m2", "--rounding", "rtz"],
          ["--format", "float4_e2m1fn", "--packed"], ["--format", "float16"], ["--format", "float8_e5m2fnuz"]]
QUANTIZE = ["mxfp4", "mxfp8_e4m3", "mxint8", "mx(float8_e5m2,16)", "bfp(8,32)"]


def encode_command(which):
    return ["encode", "--in", "x.npy", *ENCODE[which], "--out", "out/c.npy", "--flags", "out/f.npy", "--quiet"]


def quantize_command(which):
    return ["quantize", "--block", QUANTIZE[which], "--in", "x.npy", "--out", "out/y.npy", "--codes", "out/c.npy",
            "--scales", "out/s.npy", "--quiet"]


KINDS = {"encode": (encode_command, len(ENCODE)), "quantize": (quantize_command, len(QUANTIZE))}


def read_commands(kind, which):
    """The reader of what `which` has written; those of encode need no word beside the sidecar."""
    if kind == "encode":
        return ["decode", "--in", "out/c.npy", "--out", "READ", "--quiet"]
    return ["dequantize", "--block", QUANTIZE[which], "--codes", "out/c.npy", "--scales", "out/s.npy", "--out", "READ", "--quiet"]


def prepare(folder, program):
    """What each writer leaves alone, and what is read from that."""
    rng = draws(0, "inputs")
    npy(f"{folder}/x.npy", "<f4", (N,), [rng.gauss(0, 100) for _ in range(1024)] * (N // 1024))
    alone = {}
    for kind, (command, count) in KINDS.items():
        for which in range(count):
            os.makedirs(f"{folder}/out")
            program.must(folder, command(which))
            program.must(folder, [word.replace("READ", "d.npy") for word in read_commands(kind, which)])
            files = {name: read(f"{folder}/out/{name}") for name in os.listdir(f"{folder}/out")}
            alone[kind, which] = files, read(f"{folder}/d.npy")
            shutil.rmtree(f"{folder}/out")
    return alone


def look(program, folder, kind, pair, alone, name):
    """Reads as each of the two would; what is accepted must be theirs."""
    refused = 0
    for which in pair:
        arguments = [word.replace("READ", name) for word in read_commands(kind, which)]
        code, _, err = program.run(folder, arguments)
        if code == 2 and len([line for line in err.splitlines() if line.startswith("numemu: ")]) == 1:
            refused += 1
            continue
        if code != 0:
            return refused, f"{' '.join(arguments)}: exit {code}: {err.strip()}"
        theirs = pair if kind == "encode" else [which]
        if read(f"{folder}/{name}") not in [alone[kind, one][1] for one in theirs]:
            return refused, f"{' '.join(arguments)} read numbers that neither run has written"
        if kind == "encode":
            break
    return refused, None


def final_pairs(folder, kind, pair, alone):
    """After both have ended: files of one run, or of both where the sidecar says it of neither."""
    files = {name: read(f"{folder}/out/{name}") for name in os.listdir(f"{folder}/out")}
    expected = set(alone[kind, pair[0]][0]) | set(alone[kind, pair[1]][0])
    extra = {name for name in files if name not in expected and not name.endswith(".lock")}
    if extra:
        return f"left behind: {', '.join(sorted(extra))}"
    sidecar = json.loads(files.get("c.npy.json") or b"{}")
    told = sidecar.get("written_with", {})
    roles = {"f.npy": "flags", "y.npy": "values", "s.npy": "scales"}
    mixed = None
    for one in pair:
        if files.get("c.npy") != alone[kind, one][0]["c.npy"]:
            continue
        wrong = [name for name, role in roles.items()
                 if name in files and files[name] != alone[kind, one][0][name]
                 and (role not in told or told[role] == sha256(files[name]))]
        if not wrong:
            return None
        mixed = f"c.npy is of one run and {', '.join(wrong)} of the other"
    return mixed or ("c.npy is of neither run" if "c.npy" in files else None)


def one_case(number):
    program, base, alone, seed, keep = STATE
    rng = draws(seed, number)
    kind = list(KINDS)[number % len(KINDS)]
    command, count = KINDS[kind]
    pair = rng.sample(range(count), 2)
    found, looks, refused = [], 0, 0
    with CaseFolder(keep, number) as folder:
        os.symlink(f"{base}/x.npy", f"{folder}/x.npy")
        os.makedirs(f"{folder}/out")
        if rng.random() < 0.5:  # half of them replace what is there
            program.must(folder, command(rng.choice(pair)))
        runs = [program.start(folder, command(which)) for which in pair]
        while any(run.poll() is None for run in runs):
            if not os.listdir(f"{folder}/out"):
                continue
            more, why = look(program, folder, kind, pair, alone, "during.npy")
            looks, refused = looks + 1, refused + more
            if why:
                found.append(f"during the writing: {why}")
                break
        for which, run in zip(pair, runs):
            _, err = run.communicate()
            if run.returncode != 0:
                found.append(f"{' '.join(command(which))}: exit {run.returncode}: {err.decode(errors='replace').strip()}")
        _, why = look(program, folder, kind, pair, alone, "after.npy")
        why = why or final_pairs(folder, kind, pair, alone)
        if why:
            found.append(f"after the writing: {why}")
    return number, f"{kind} {pair[0]} and {pair[1]}", looks, refused, found


def begin(state):
    global STATE
    STATE = state


def main():
    chosen = options("Concurrent writers of the same names, and a reader.", 40).parse_args()
    program = Program(chosen.program)
    findings = Findings(sys.argv[0], chosen)
    base = tempfile.mkdtemp(prefix="numemu-writers-")
    looks = refused = 0
    try:
        state = (program, base, prepare(base, program), chosen.seed, chosen.keep)
        cases = range(chosen.first, chosen.first + chosen.count)
        for number, pair, own, no, found in run_cases(one_case, cases, chosen.jobs, begin, (state,)):
            looks, refused = looks + own, refused + no
            for what in found:
                findings.tell(number, f"{pair}: {what}")
    finally:
        shutil.rmtree(base, ignore_errors=True)
    findings.end(f"{chosen.count} pairs of writers, {looks} looks meanwhile, {refused} of them refused")


if __name__ == "__main__":
    main()
