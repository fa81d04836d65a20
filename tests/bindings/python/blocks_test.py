"""Block formats: the arrays that the program writes."""
import math

import numemu
import numpy as np
import pytest


@pytest.mark.parametrize("name,options", [
    ("mxfp4", {}),
    ("nvfp4", {}),
    ("mxfp8_e4m3", {"axis": 0}),
    ("group(int4,32,float16,zp)", {}),
    ("group(uint4,16,float16,min)", {}),
    ("group(int8,channel,float32)", {"axis": 0}),
    ("mx(int8,32)", {"rounding": "sr(8)", "seed": 5}),
])
def test_same_bits_as_the_program(program, rng, name, options):
    x = rng.standard_normal((6, 70), dtype=np.float32)
    program.save("x.npy", x)
    words = [part for key, value in options.items() for part in (f"--{key}", value)]
    shifted = ["--zero-points", "z.npy"] if "zp" in name or "min" in name else []
    scaled = ["--tensor-scale", "t.npy"] if name == "nvfp4" else []
    summary = program.json("quantize", "--block", name, "--in", "x.npy", "--out", "y.npy", "--codes", "c.npy", "--scales", "s.npy", *words, *shifted, *scaled)
    q = numemu.format(name).quantize(x, **options)
    assert np.array_equal(q.codes, program.load("c.npy"))
    assert np.array_equal(q.scales, program.load("s.npy"))
    assert np.array_equal(q.values, program.load("y.npy"))
    assert (q.zero_points is None) == (not shifted)
    if shifted:
        assert np.array_equal(q.zero_points, program.load("z.npy"))
    if scaled:
        assert q.tensor_scale == program.load("t.npy")
    assert q.sqnr == pytest.approx(summary["sqnr_db"], abs=1e-9)
    assert q.bits_per_element == pytest.approx(summary["bits_per_element"])
    assert np.array_equal(q.dequantize(), q.values)
    again = numemu.format(name).dequantize(q.codes, q.scales, q.zero_points, q.tensor_scale, axis=options.get("axis", -1))
    assert np.array_equal(again, q.values)


def test_facts_and_refusals(program):
    f = numemu.format("mxfp4")
    assert f in numemu.block_formats() and isinstance(f, numemu.BlockFormat)
    assert f.describe() == program.json("formats", "mxfp4")
    assert (f.element.name, f.scale.name, f.size, f.bits_per_element) == ("float4_e2m1fn", "float8_e8m0fnu", 32, 4.25)
    assert "absmax" not in f.rules and "floor" in f.rules
    with pytest.raises(numemu.Error, match="unknown"):
        f.quantize(np.zeros(32, np.float32), rule="flor")
    with pytest.raises(numemu.Error, match=r"scales: shape: expected \[2, 1\], found \[3, 1\]"):
        f.dequantize(np.zeros((2, 32), np.uint8), np.zeros((3, 1), np.uint8))
    with pytest.raises(numemu.Error, match="zero_points: mxfp4 has none"):
        f.dequantize(np.zeros((2, 32), np.uint8), np.zeros((2, 1), np.uint8), np.zeros((2, 1), np.uint8))


def test_results_and_other_numbers(rng):
    f = numemu.format("mxfp4")
    x = rng.standard_normal(64)
    out = np.empty(64, np.float32)
    q = f.quantize(x, out=out)
    assert q.values is out and np.array_equal(out, f.quantize(x.astype(np.float32)).values)
    assert q.counts["blocks"] == 2 and q.counts["elements"] == 64
    assert math.isnan(f.quantize(np.zeros(32, np.float32)).sqnr)
    assert f.quantize(np.ones(32, np.float32)).sqnr == math.inf
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert np.array_equal(f.quantize(torch.from_numpy(x)).values, out)
