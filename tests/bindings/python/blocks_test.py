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
    ("group(nf4,64,float16)", {}),
    ("group(af4,32,float32)", {}),
    ("mx(posit(8,1),32)", {}),
    ("group(log(4,3),32,float16)", {}),
    ("group(lloyd(normal,16),64,float16)", {}),
    ("group(int4,4x16,float16)", {}),
    ("nvfp4(32)", {}),
])
def test_same_bits_as_the_program(program, rng, name, options):
    x = rng.standard_normal((6, 70), dtype=np.float32)
    program.save("x.npy", x)
    words = [part for key, value in options.items() for part in (f"--{key}", value)]
    shifted = ["--zero-points", "z.npy"] if "zp" in name or "min" in name else []
    scaled = ["--tensor-scale", "t.npy"] if name.startswith("nvfp4") else []
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


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "group(nf4,64,float16)", "group(int4,channel,float32)"])
def test_scales_of_the_caller(program, rng, name):
    """Scales as another program has chosen them give the bits of --scales-in."""
    f, x, wider = numemu.format(name), rng.standard_normal((6, 128), dtype=np.float32), rng.standard_normal((6, 128), dtype=np.float32) * 3
    chosen = f.quantize(wider)
    tensor = {"tensor_scale": chosen.tensor_scale} if name == "nvfp4" else {}
    for file, array in [("x.npy", x), ("s.npy", chosen.scales), ("t.npy", np.float32([chosen.tensor_scale]))]:
        program.save(file, array)
    program.run("quantize", "--block", name, "--in", "x.npy", "--out", "y.npy", "--codes", "c.npy", "--scales-in", "s.npy",
                *(["--tensor-scale-in", "t.npy"] if tensor else []))  # fmt: skip
    q = f.quantize(x, scales=chosen.scales, **tensor)
    assert np.array_equal(q.codes, program.load("c.npy"))
    assert np.array_equal(q.values.view(np.uint32), program.load("y.npy").view(np.uint32))
    assert np.array_equal(q.scales, chosen.scales) and q.tensor_scale == chosen.tensor_scale
    assert not np.array_equal(q.values, f.quantize(x).values)


def test_scales_that_do_not_fit_are_refused():
    x = np.ones((2, 64), np.float32)
    f = numemu.format("mxfp4")
    for options, text in [
        (dict(scales=np.zeros((2, 3), np.uint8)), r"scales: shape: expected \[2, 2\]"),
        (dict(scales=np.zeros((2, 2), np.float32)), "scales: dtype"),
        (dict(scales=np.zeros((2, 2), np.uint8), rule="floor"), "scales: not allowed with a rule"),
        (dict(tensor_scale=2.0), "tensor_scale: mxfp4 has no tensor scale"),
    ]:
        with pytest.raises(numemu.Error, match=text):
            f.quantize(x, **options)
    with pytest.raises(numemu.Error, match="tensor_scale: expected one finite number above 0"):
        numemu.format("nvfp4").quantize(x, tensor_scale=-1.0)


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
