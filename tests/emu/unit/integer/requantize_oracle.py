"""numemu gemm --requantize beside the published formulas in numpy: requantize_oracle.py NUMEMU"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(0)

numemu = sys.argv[1]
folder = tempfile.mkdtemp(prefix="requantize-")
random = np.random.default_rng(11)


def quantize_multiplier(factor):
    """TensorFlow Lite, QuantizeMultiplier: the factor as M 2^(shift - 31)."""
    fraction, shift = np.frexp(factor)
    m = np.floor(fraction * 2.0**31 + 0.5).astype(np.int64)
    wrapped = m == 2**31
    m, shift = np.where(wrapped, m // 2, m), np.where(wrapped, shift + 1, shift)
    small = shift < -31
    return np.where(small, 0, m), np.where(small, 0, shift).astype(np.int64)


def single_rounding(x, m, shift):
    total = 31 - shift
    return (x * m + (np.int64(1) << (total - 1))) >> total


def double_rounding(x, m, shift):
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    x = (x << left).astype(np.int32).astype(np.int64)
    product = x * m  # m is positive: nothing saturates
    nudge = np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    quotient = product + nudge
    high = np.where(quotient >= 0, quotient // 2**31, -((-quotient) // 2**31))  # as C divides
    mask = (np.int64(1) << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


def float_rounding(x, factor):
    return np.rint(x.astype(np.float32) * factor.astype(np.float32)).astype(np.int64)


def call(*arguments):
    result = subprocess.run([numemu, "gemm", *arguments, "--quiet"], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{arguments}: {result.stderr}")


def path(name):
    return os.path.join(folder, name)


checked = 0
for m, n, k, unit, unsigned in [(37, 29, 64, "intel.emr.tdpbssd", False), (8, 128, 1200, "intel.emr.vpdpbusd", True),
                                (128, 7, 9, "arm.neoverse.sdot", False)]:
    a = random.integers(0, 256, (m, k)).astype(np.uint8) if unsigned else random.integers(-128, 128, (m, k)).astype(np.int8)
    b = random.integers(-128, 128, (k, n)).astype(np.int8)
    bias = random.integers(-(2**20), 2**20, n).astype(np.int32)
    sums = (a.astype(np.int64) @ b.astype(np.int64) + bias).astype(np.int32).astype(np.int64)
    np.save(path("a.npy"), a)
    np.save(path("b.npy"), b)
    np.save(path("bias.npy"), bias)
    for spread, zero, low, high, output in [(4, 0, -128, 127, "int8"), (40, -7, -7, 127, "int8"), (1, 128, 0, 255, "uint8"), (8, 3, -32768, 32767, "int16")]:
        factor = 2.0 ** random.uniform(-18, -4, n) if spread > 1 else np.full(n, 2.0**-9)
        np.save(path("factor.npy"), factor)
        multiplier, shift = quantize_multiplier(factor)
        expected = {"float": float_rounding(sums, factor),
                    "fixed-point-single": single_rounding(sums, multiplier, shift),
                    "fixed-point-double": double_rounding(sums, multiplier, shift)}
        np.save(path("m.npy"), multiplier.astype(np.int32))
        np.save(path("shift.npy"), shift.astype(np.int32))
        for how, rounded in expected.items():
            codes = np.clip(rounded + zero, low, high)
            ways = [["--factor", "factor.npy"]]
            if how != "float":
                ways.append(["--multiplier", "m.npy", "--shift", "shift.npy"])
            for way in ways:
                call("--unit", unit, "--a", "a.npy", "--b", "b.npy", "--bias", "bias.npy", "--requantize", how, *way, "--zero-point", str(zero), "--low",
                     str(low), "--high", str(high), "--format-d", output, "--out", "d.npy")
                found = np.load(path("d.npy")).view(output).astype(np.int64)
                differ = int((found != codes).sum())
                if differ:
                    sys.exit(f"{unit} {how} {way}: {differ} of {codes.size} codes differ")
                checked += codes.size
print(f"{checked} codes of three units, three roundings: 0 differ")
