"""Microseconds of calls from Python beside those of api/ in C++: ./numemu python bench/python_calls.py build/bench/bench/api_bench

The program of C++ is built by ./numemu bench api; without it only the first column is printed. Each figure is the fastest of many rounds, which another process
disturbs least; the rounds of both take turns.
"""
import json
import subprocess
import sys
import timeit

import numemu
import numpy as np

ROUNDS = 5

x = ((np.arange(32) * 2654435761 % 4096) - 2048).astype(np.float32) / 512
codes, y = np.empty(32, np.uint8), np.empty(32, np.float32)
e4m3, unit = numemu.format("e4m3fn"), numemu.unit("h100.wgmma.e4m3.f32")
a, d = np.full((1, 32), 0x3A, np.uint8), np.empty(1, np.float32)
big = np.resize(x, 1 << 24)
into = np.empty(big.shape, np.uint8)
#: What is called, and the case of api_bench.cpp that makes the same call.
CALLS = {
    "encode of 32, bound, out=": (lambda: e4m3.encode(x, out=codes), "encode/32"),
    "encode of 32, by name, new array": (lambda: numemu.encode(x, "e4m3fn"), "encode/32"),
    "decode of 32, bound, out=": (lambda: e4m3.decode(codes, out=y), "decode/32"),
    "decode of 32, by name, new array": (lambda: numemu.decode(codes, "e4m3fn"), "decode/32"),
    "dot of 32, bound, out=": (lambda: unit.dot(a, a, out=d), "dots/1"),
    "dot of 32, by name, new array": (lambda: numemu.unit("h100.wgmma.e4m3.f32").dot(a, a), "dots/1"),
    "encode of 2^24, out=": (lambda: e4m3.encode(big, out=into), "encode/16777216"),
    "encode of 2^24, new array": (lambda: e4m3.encode(big), "encode/16777216"),
}


def seconds(call):
    timer = timeit.Timer(call)
    number, _ = timer.autorange()
    number = max(1, number // 10)
    return min(timer.repeat(20, number)) / number


def native(program):
    """Seconds of each case in C++."""
    options = ["--benchmark_format=json", "--benchmark_min_time=0.02", "--benchmark_repetitions=10"]
    runs = json.loads(subprocess.run([program, *options], capture_output=True, check=True).stdout)["benchmarks"]
    return {run["run_name"]: min(r["real_time"] for r in runs if r["run_name"] == run["run_name"] and r["run_type"] == "iteration") * 1e-9
            for run in runs}


python, cpp = {}, {}
for _ in range(ROUNDS):
    for what, (call, _) in CALLS.items():
        python[what] = min(seconds(call), python.get(what, 1e9))
    if len(sys.argv) > 1:
        for case, time in native(sys.argv[1]).items():
            cpp[case] = min(time, cpp.get(case, 1e9))
print(f"{'':<36} {'Python':>10} {'C++':>10} {'beyond':>10}   us")
for what, (_, case) in CALLS.items():
    line = f"{what:<36} {1e6 * python[what]:10.2f}"
    if cpp:
        line += f" {1e6 * cpp[case]:10.2f} {1e6 * (python[what] - cpp[case]):10.2f}"
    print(line)
