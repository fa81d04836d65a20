"""Microseconds of calls from Python, for bench/api_bench.cpp to be taken from: ./numemu python bench/python_calls.py"""
import timeit

import numemu
import numpy as np


def seconds(call):
    """Of the fastest of seven runs, which another process disturbs least."""
    timer = timeit.Timer(call)
    number, _ = timer.autorange()
    return min(timer.repeat(7, number)) / number


x = ((np.arange(32) * 2654435761 % 4096) - 2048).astype(np.float32) / 512
codes, y = np.empty(32, np.uint8), np.empty(32, np.float32)
e4m3, unit = numemu.format("e4m3fn"), numemu.unit("h100.wgmma.e4m3.f32")
a, d = np.full((1, 32), 0x3A, np.uint8), np.empty(1, np.float32)
small = {
    "encode of 32, bound, out=": lambda: e4m3.encode(x, out=codes),
    "encode of 32, by name, new array": lambda: numemu.encode(x, "e4m3fn"),
    "decode of 32, bound, out=": lambda: e4m3.decode(codes, out=y),
    "decode of 32, by name, new array": lambda: numemu.decode(codes, "e4m3fn"),
    "dot of 32, bound, out=": lambda: unit.dot(a, a, out=d),
    "dot of 32, by name, new array": lambda: numemu.unit("h100.wgmma.e4m3.f32").dot(a, a),
}
for what, call in small.items():
    print(f"{what:<40} {1e6 * seconds(call):8.2f} us")
big = np.resize(x, 1 << 24)
into = np.empty(big.shape, np.uint8)
for what, call in {"encode of 2^24, out=": lambda: e4m3.encode(big, out=into), "encode of 2^24, new array": lambda: e4m3.encode(big)}.items():
    print(f"{what:<40} {1e3 * seconds(call):8.2f} ms")
