# Larger networks: seconds to load, peak memory, and samples per second under four numerics beside PyTorch float32.
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy
import torch

from cases import CASES
from table import build, export, inputs_of

NETWORKS = ("resnet18", "resnet50", "mobilenet_v2", "vit_tiny_16", "swin_t", "gpt2_small", "bert_base")
ROLE = {"weight": {"format": "int8", "granularity": "channel"}, "activation": {"format": "int8"}}
RECIPES = {
    "float32": None,
    "int8": {"numemu_recipe": 1, "roles": ROLE},
    "mxfp4": {"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"}, "activation": {"format": "mxfp4"}}},
    "h100": {"numemu_recipe": 1,
             "roles": {"weight": {"format": "float8_e4m3fn", "granularity": "channel"},
                       "activation": {"format": "float8_e4m3fn"}},
             "gemms": {"fprop": {"unit": "nvidia.h100.wgmma.e4m3.f32"}}},
}


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(options, base, name, arrays, recipe):
    """The report of `numemu infer` and its processor seconds."""
    command = [options.program, "infer", "--quiet", "--json", "--outputs-only", "--model", f"{options.work}/{name}.onnx",
               "--out", base + ".y.npy", "--batch", str(options.batch), "--threads", str(options.threads)]
    for key in arrays:
        command += ["--in", f"{key}={base}.{key}.npy"]
    if recipe is not None:
        with open(base + ".recipe.json", "w") as file:
            json.dump(recipe, file)
        command += ["--recipe", base + ".recipe.json"]
    before = processor_seconds()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return json.loads(done.stdout), processor_seconds() - before


def torch_seconds(name, inputs, options):
    module = build(name)
    torch.set_num_threads(options.threads)
    with torch.no_grad():
        module(*inputs.values())
        start = time.perf_counter()
        module(*inputs.values())
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/release/cli/numemu")
    parser.add_argument("--work", default="/tmp/numemu-exports", help="folder of the exports (default %(default)s)")
    parser.add_argument("--only", default=",".join(NETWORKS), help="names, with commas between")
    parser.add_argument("--numerics", default=",".join(RECIPES), help="of " + ", ".join(RECIPES))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3, help="runs of each, in turns; medians are printed")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    chosen = options.numerics.split(",")
    print(f"batch {options.batch}, {options.threads} threads; samples per second are of the wall time of the passes")
    print(f"{'network':13} {'file MB':>8} {'load s':>7} {'s/100MB':>8} {'limit MB':>8}" + "".join(f" {name + ' MB':>11}" for name in chosen)
          + f" {'PyTorch':>8}" + "".join(f" {name + '/s':>9}" for name in chosen) + "  processor s")
    for name in options.only.split(","):
        export(name, options.work)
        torch.manual_seed(1)
        inputs = inputs_of(CASES[name], options.batch)
        base = f"{options.work}/{name}.rates"
        for key, value in inputs.items():
            numpy.save(f"{base}.{key}.npy", value.numpy())
        reports, spent, native = {key: [] for key in chosen}, {key: [] for key in chosen}, []
        for _ in range(options.turns):
            native.append(torch_seconds(name, inputs, options))
            for key in chosen:
                report, seconds = run(options, base, name, inputs, RECIPES[key])
                if report is None:
                    print(f"{name}: {key}: {seconds}", flush=True)
                    continue
                reports[key].append(report)
                spent[key].append(seconds)
        first = next((r for r in reports.values() if r), None)
        if first is None:
            continue
        size = os.path.getsize(f"{options.work}/{name}.onnx") / 1e6
        load = min(r["seconds"]["load"] for rs in reports.values() for r in rs)
        memory = first[0]["memory"]
        # What the arrays of --in and --out take comes on top.
        limit = (memory["weight_bytes"] + 3 * memory["largest_activation_bytes"]) / 1e6
        print(f"{name:13} {size:8.1f} {load:7.2f} {load / size * 100:8.2f} {limit:8.0f}"
              + "".join(f" {max(r['memory']['peak_bytes'] for r in reports[key]) / 1e6:11.0f}" if reports[key] else f" {'-':>11}" for key in chosen)
              + f" {options.batch / statistics.median(native):8.2f}"
              + "".join(f" {options.batch / statistics.median(r['seconds']['run'] for r in reports[key]):9.2f}"
                        if reports[key] else f" {'-':>9}" for key in chosen)
              + "  " + " ".join(f"{statistics.median(spent[key]):.1f}" if spent[key] else "-" for key in chosen), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
