#!/usr/bin/env python3
# Kills runs with SIGKILL at random moments, resumes them, and compares every byte with a run that nobody disturbed.
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import time

from attack import CaseFolder, Findings, Program, draws, idx_folder, npy, options, read, run_cases, sha256

# What tells time or machine, locks, and what is kept to be quick: no results.
NO_RESULT = re.compile(r"(times\.jsonl|\..*|.*\.lock)$")
ENCODED = 1 << 23  # elements: long enough to be hit while files take their places

JOBS = {
    "sweep": ["sweep", "sweep.json", "--out", "out", "--quiet"],
    "train": ["train", "--net", "mlp", "--data", "mnist:data", "--epochs", "2", "--batch", "64", "--save-every", "3",
              "--out", "out", "--quiet"],
    "experiment": ["experiment", "stochastic-pruning", "--size", "smoke", "--set", "nets=mlp", "--set", "data=mnist:data",
                   "--set", "samples=4096", "--set", "train_samples=256", "--set", "batch=32", "--set", "eval_samples=64",
                   "--set", "history=2", "--set", "observations=1", "--out", "out", "--quiet"],
    "eval": ["eval", "--net", "trained.safetensors", "--data", "mnist:data", "--images", "64", "--json", "--quiet"],
    "encode": ["encode", "--in", "x.npy", "--format", "e4m3fn", "--out", "out/c.npy", "--flags", "out/f.npy", "--quiet"],
}
OLD = ["encode", "--in", "x.npy", "--format", "e5m2", "--rounding", "rtz", "--out", "out/c.npy", "--flags", "out/f.npy", "--quiet"]
PLACES = {"eval": ".cache/baselines"}  # elsewhere: out
EXITS = {"experiment": (0, 1)}  # 1: a verdict that fails


def results(folder):
    """Every result below the folder, by name."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(path, name)
            if not NO_RESULT.match(name):
                found[os.path.relpath(file, folder)] = read(file)
    return found


def names(folder):
    return {name for _, _, files in os.walk(folder) for name in files if not name.endswith(".lock")}


def prepare(folder, program):
    """The inputs of every job, and what each leaves when nobody disturbs it."""
    rng = draws(0, "inputs")
    idx_folder(f"{folder}/data", rng, 5600, 64)
    numbers = struct.pack("<4096f", *(rng.gauss(0, 100) for _ in range(4096)))
    npy(f"{folder}/x.npy", "<f4", (ENCODED,), numbers * (ENCODED // 4096))
    wanted, seconds = {}, {}
    for name, command in JOBS.items():
        if name == "sweep":
            with open(f"{folder}/sweep.json", "w") as file:
                json.dump({"numemu_sweep": 1, "net": "trained.safetensors", "data": "mnist:data", "eval_images": 64, "seeds": [0],
                           "base": {"numemu_recipe": 1, "calibrate": {"rule": "absmax", "samples": 64}},
                           "grid": {"roles.weight.format": ["int8", "int4", "float4_e2m1fn", "float8_e4m3fn"]}}, file)
            program.must(folder, ["train", "--net", "mlp", "--data", "mnist:data", "--epochs", "1", "--out", "trained", "--quiet"])
            shutil.copy(f"{folder}/trained/mlp-mnist.safetensors", f"{folder}/trained.safetensors")
            shutil.rmtree(f"{folder}/trained")
        os.makedirs(f"{folder}/out", exist_ok=True)
        place = f"{folder}/{PLACES.get(name, 'out')}"
        begin = time.monotonic()
        code, out, err = program.run(folder, command)
        if code not in EXITS.get(name, (0,)):
            sys.exit(f"{name}: exit {code}: {err.strip()}")
        seconds[name] = time.monotonic() - begin
        wanted[name] = (results(place), names(place), out if name == "eval" else None)
        shutil.move(f"{folder}/out", f"{folder}/done-{name}")
    os.makedirs(f"{folder}/out")
    program.must(folder, OLD)
    shutil.move(f"{folder}/out", f"{folder}/old")
    return wanted, seconds


def kill_in_cache(program, folder, rng):
    """Kills an evaluation once it has begun to write its cache; whether it was still running."""
    place = f"{folder}/{PLACES['eval']}"
    for name in names(place):
        if name.endswith(".txt"):
            os.remove(f"{place}/{name}")
    before = names(place)
    process = program.start(folder, JOBS["eval"])
    while process.poll() is None and names(place) == before:
        pass
    time.sleep(rng.uniform(0, 0.002))
    process.kill()
    process.communicate()
    return process.returncode == -9


def wrong_pair(program, folder, wanted, old):
    """Codes, sidecar and flags that stand there now: old, new, or refused by their reader."""
    code, _, err = program.run(folder, ["decode", "--in", "out/c.npy", "--out", "d.npy", "--quiet"])
    if code == 2:
        return None
    if code != 0:
        return f"decode after the kill: exit {code}: {err.strip()}"
    states = {}
    for which, files in (("old", old), ("new", wanted)):
        with CaseFolder(None, 0) as other:
            os.makedirs(f"{other}/out")
            for name in ("c.npy", "c.npy.json"):
                with open(f"{other}/out/{name}", "wb") as file:
                    file.write(files[name])
            program.must(other, ["decode", "--in", "out/c.npy", "--out", "d.npy", "--quiet"])
            states[which] = read(f"{other}/d.npy")
    decoded = read(f"{folder}/d.npy")
    which = [state for state, want in states.items() if want == decoded]
    if not which:
        return "decode read numbers that neither run has written"
    flags = read(f"{folder}/out/f.npy")
    expected = (old if which[0] == "old" else wanted)["f.npy"]
    sidecar = json.loads(read(f"{folder}/out/c.npy.json") or b"{}")
    told = sidecar.get("written_with", {}).get("flags")
    if flags is not None and flags != expected and (told is None or told == sha256(flags)):
        return f"{which[0]} codes stand beside flags of the other run"
    return None


def one_case(number):
    program, base, wanted, seconds, seed, keep = STATE
    job = list(JOBS)[number % len(JOBS)]
    rng = draws(seed, number)
    found, kills = [], 0
    with CaseFolder(keep, number) as folder:
        for name in ("data", "x.npy", "sweep.json", "trained.safetensors"):
            os.symlink(f"{base}/{name}", f"{folder}/{name}")
        shutil.copytree(f"{base}/old", f"{folder}/out") if job == "encode" else os.makedirs(f"{folder}/out")
        place = f"{folder}/{PLACES.get(job, 'out')}"
        for _ in range(rng.randint(1, 3)):
            if job == "eval":
                kills += kill_in_cache(program, folder, rng)
                for name in names(place):
                    if name.endswith(".txt") and read(f"{place}/{name}") != wanted[job][0].get(name):
                        found.append(f"{name} is there and is not whole")
                continue
            process = program.start(folder, JOBS[job])
            # Arrays are written at the end.
            time.sleep(seconds[job] * (rng.uniform(0.3, 1.1) if job == "encode" else rng.uniform(0, 1)))
            process.kill()
            process.communicate()
            kills += process.returncode == -9
            if job == "encode":
                why = wrong_pair(program, folder, wanted[job][0], results(f"{base}/old"))
                if why:
                    found.append(why)
        code, out, err = program.run(folder, JOBS[job])
        if job == "eval" and out != wanted[job][2]:
            found.append("the row differs from that of the undisturbed run")
        if code not in EXITS.get(job, (0,)):
            found.append(f"the resumed run ends with {code}: {err.strip()}")
        else:
            have = results(place)
            for name in sorted(set(wanted[job][0]) | set(have)):
                if have.get(name) != wanted[job][0].get(name):
                    found.append(f"{name} differs from that of the undisturbed run")
            extra = names(place) - wanted[job][1]
            if extra:
                found.append(f"left behind: {', '.join(sorted(extra))}")
    return number, job, kills, found


def begin(state):
    global STATE
    STATE = state


def main():
    chosen = options("Kills runs, resumes them and compares.", 40).parse_args()
    program = Program(chosen.program)
    findings = Findings(sys.argv[0], chosen)
    base = tempfile.mkdtemp(prefix="numemu-kills-")
    kills = dict.fromkeys(JOBS, 0)
    try:
        wanted, seconds = prepare(base, program)
        print("undisturbed: " + ", ".join(f"{job} {s:.1f} s" for job, s in seconds.items()), flush=True)
        state = (program, base, wanted, seconds, chosen.seed, chosen.keep)
        case = chosen.first
        last = chosen.first + chosen.count if chosen.count == 1 else None  # one case, however many kills
        while sum(kills.values()) < chosen.count and case != last:
            more = 1 if last else max(chosen.jobs, (chosen.count - sum(kills.values())) // 2)
            for number, job, own, found in run_cases(one_case, range(case, case + more), chosen.jobs, begin, (state,)):
                kills[job] += own
                for what in found:
                    findings.tell(number, f"{job}: {what}")
            case += more
    finally:
        shutil.rmtree(base, ignore_errors=True)
    findings.end(f"{sum(kills.values())} kills ({', '.join(f'{n} of {job}' for job, n in kills.items())})")


if __name__ == "__main__":
    main()
