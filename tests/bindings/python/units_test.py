"""Matrix units: the bits, traces and verdicts of the program, and sums in fractions."""
import json
import math

import numemu
import numpy as np
import pytest

H100 = "nvidia.h100.wgmma.e4m3.f32"
SPARSE = "nvidia.a100.mma.f16.f32.sp24"


@pytest.fixture
def operands(rng):
    e4m3 = numemu.format("e4m3fn")
    return e4m3.encode(rng.standard_normal((5, 48))), e4m3.encode(rng.standard_normal((48, 7)))


def saved(program, **arrays):
    """Options of gemm for arrays, each in a file."""
    return [word for name, x in arrays.items() if x is not None for word in (f"--{name.replace('_', '-')}", program.save(f"{name}.npy", x))]


def test_same_bits_as_the_program(program, operands, rng):
    a, b = operands
    c = rng.standard_normal((5, 7), dtype=np.float32)
    unit = numemu.unit("h100.wgmma.e4m3.f32")
    program.run("gemm", "--unit", H100, *saved(program, a=a, b=b, c=c), "--out", "d.npy")
    d = unit.gemm(a, b, c)
    assert d.dtype == np.float32 and np.array_equal(d, program.load("d.npy"))
    assert np.array_equal(d, unit.gemm(a, b, c, reference=True))
    assert np.array_equal(unit.gemm(a, np.ascontiguousarray(b.T), c, b_layout="nk"), d)
    assert np.array_equal(unit.gemm(a, b.T, c, b_layout="nk"), d)
    program.run("gemm", "--unit", H100, "--a", "a.npy", "--b", "b.npy", "--c", "c.npy", "--alpha", 0.5, "--out", "d.npy")
    assert np.array_equal(unit.gemm(a, b, c, alpha=0.5), program.load("d.npy"))
    batch = np.stack([a, a[::-1]])
    assert np.array_equal(unit.gemm(batch, b)[1], unit.gemm(a[::-1], b))


def test_codes_of_sums(program, rng):
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((5, 40), (40, 7)))
    bias, factor = rng.integers(-999, 999, 7).astype(np.int32), rng.uniform(1e-4, 1e-2, 7)
    unit = numemu.unit("intel.emr.tdpbssd")
    sums = unit.gemm(a, b)
    assert np.array_equal(sums, a.astype(np.int32) @ b.astype(np.int32))
    for how in ("float", "fixed-point-single", "fixed-point-double"):
        epilogue = {"requantize": how, "factor": factor, "bias": bias, "zero_point": -3, "low": -100}
        codes = unit.gemm(a, b, epilogue=epilogue)
        program.run("gemm", "--unit", "intel.emr.tdpbssd", *saved(program, a=a.view(np.uint8), b=b.view(np.uint8), bias=bias, factor=factor),
                    "--requantize", how, "--zero-point=-3", "--low=-100", "--out", "d.npy")
        assert codes.dtype == np.uint8 and np.array_equal(codes, program.load("d.npy"))
        assert unit.verify(codes.view(np.int8), a, b, epilogue=epilogue)
        lost = unit.verify(unit.gemm(a, b, epilogue=epilogue | {"zero_point": 0}), a, b, epilogue=epilogue)
        assert not lost and "the zero point is not added" in str(lost)
    near = np.rint(np.float32(sums + bias) * np.float32(factor)) - 3
    assert np.array_equal(unit.gemm(a, b, epilogue={"requantize": "float", "factor": factor, "bias": bias, "zero_point": -3}).view(np.int8), np.clip(near, -128, 127))
    for wrong, message in ({"requantise": "float"}, "did you mean 'requantize'"), ({"requantize": "float"}, "requantize: expected factor"), (3, "epilogue: expected a dict"), \
            ({"requantize": "float", "factor": 1, "zero_point": 200}, "zero_point: expected a number of int8"):
        with pytest.raises(numemu.Error, match=message):
            unit.gemm(a, b, epilogue=wrong)


def test_dots(program, rng):
    a, b = (numemu.encode(rng.standard_normal((9, 32)), "e5m2") for _ in range(2))
    unit = numemu.unit("neutral.chunk16.float32")
    program.save("a.npy", a), program.save("b.npy", b)
    program.run("dot", "--unit", "neutral.chunk16.float32", "--a", "a.npy", "--b", "b.npy", "--format-a", "e5m2", "--format-b", "e5m2", "--out", "d.npy")
    d = unit.dot(a, b, format_a="e5m2", format_b=numemu.format("e5m2"))
    assert d.shape == (9,) and np.array_equal(d, program.load("d.npy"))
    assert unit.dot(a[0], b, format_a="e5m2", format_b="e5m2").shape == (9,)
    with pytest.raises(numemu.Error, match="a: expected a format: unit neutral.chunk16.float32.rne takes any"):
        unit.dot(a, b)


def test_exact_sums_are_those_of_fractions(rng):
    x, y = (rng.integers(-64, 64, (6, 40)).astype(np.float32) / 8 for _ in range(2))
    a, b = numemu.encode(x, "bfloat16"), numemu.encode(y, "bfloat16")
    got = numemu.unit("neutral.exact").dot(a, b, format_a="bf16", format_b="bf16")
    want = [np.float32(math.fsum(float(p) * float(q) for p, q in zip(u, v))) for u, v in zip(x, y)]
    assert got.tolist() == want


def test_out_and_flags(operands):
    a, b = operands
    unit = numemu.unit(H100)
    out = np.empty((5, 7), np.float32)
    assert unit.gemm(a, b, out=out) is out and np.array_equal(out, unit.gemm(a, b))
    d, flags = unit.gemm(a, b, flags=True)
    assert np.array_equal(d, out) and flags.dtype == np.uint8 and flags.shape == (5, 7)
    with pytest.raises(numemu.Error, match=r"d: shape: expected \[5, 7\] \(the shape of D\), found \[7, 5\]"):
        unit.gemm(a, b, out=np.empty((7, 5), np.float32))
    with pytest.raises(numemu.Error, match="d: dtype: expected float32 results, found float64"):
        unit.gemm(a, b, out=np.empty((5, 7)))


def test_described_units(program, operands):
    a, b = operands
    description = {"numemu_unit": 1, "name": "my.fp8", "a": "float8_e4m3fn", "b": "float8_e4m3fn", "c": "float32", "d": "float32", "core": "fused", "k": 32, "group": 8, "accumulator": {"format": "e8m20", "rounding": "rtz", "overflow_to_infinity": True}, "alignment": {"fraction_bits": 20}, "nan_code": "0x7fffffff"}
    unit = numemu.unit(description)
    (program.folder / "mine.json").write_text(json.dumps(description))
    program.run("gemm", "--unit", "mine.json", *saved(program, a=a, b=b), "--out", "d.npy")
    assert np.array_equal(unit.gemm(a, b), program.load("d.npy"))
    assert np.array_equal(numemu.unit(program.folder / "mine.json").gemm(a, b), program.load("d.npy"))
    again = numemu.unit(unit.describe()["parameters"])
    assert np.array_equal(again.gemm(a, b), program.load("d.npy"))
    with pytest.raises(numemu.Error, match="unit: .*cor"):
        numemu.unit({**description, "cor": "fused"})
    with pytest.raises(numemu.Error, match=r"unit: expected a dict, list, text|unit: k: expected a dict"):
        numemu.unit({**description, "k": object()})


def test_facts(program):
    unit = numemu.unit("h100.wgmma.e4m3.f32")
    assert unit.name == H100 and unit.operands == ("float8_e4m3fn", "float8_e4m3fn") and unit.d_format == "float32"
    assert unit.describe() == program.json("units", H100) or unit.describe() in program.json("units", H100)
    assert H100 in numemu.units("h100.wgmma") and len(numemu.units()) > 100
    with pytest.raises(numemu.Error) as caught:
        numemu.unit("h100.wgmma.e4m3.f33")
    a = program.save("a.npy", np.zeros((2, 2), np.uint8))
    assert str(caught.value) in program.refusal("gemm", "--unit", "h100.wgmma.e4m3.f33", "--a", a, "--b", a, "--out", "d.npy")


def test_block_scales_and_metadata(program, rng):
    mxfp8 = numemu.format("mxfp8_e4m3")
    x, y = mxfp8.quantize(rng.standard_normal((4, 64))), mxfp8.quantize(rng.standard_normal((64, 3)), axis=0)
    unit = numemu.unit("neutral.exact.mx32")
    program.run("gemm", "--unit", unit.name, *saved(program, a=x.codes, b=y.codes, scale_a=x.scales, scale_b=y.scales),
                *([] if unit.operands[0] else ["--format-a", "e4m3fn", "--format-b", "e4m3fn"]), "--out", "d.npy")
    formats = {} if unit.operands[0] else dict(format_a="e4m3fn", format_b="e4m3fn")
    assert np.array_equal(unit.gemm(x.codes, y.codes, scale_a=x.scales, scale_b=y.scales, **formats), program.load("d.npy"))
    with pytest.raises(numemu.Error, match="scale-a: expected scales"):
        unit.gemm(x.codes, y.codes, **formats)

    sparse = numemu.unit(SPARSE)
    a = numemu.encode(rng.standard_normal((4, 16)), "f16")
    meta = np.tile(np.array([0, 2], np.uint8), (4, 8))
    b = numemu.encode(rng.standard_normal((32, 5)), "f16")
    program.run("gemm", "--unit", sparse.name, *saved(program, a=a, b=b, meta=meta), "--out", "d.npy")
    assert np.array_equal(sparse.gemm(a, b, meta=meta), program.load("d.npy"))


def test_trace_is_that_of_the_program(program, operands):
    a, b = operands
    trace = numemu.unit(H100).trace(a, b, at=(1, 2))
    assert isinstance(trace, dict)
    words = ["gemm", "--unit", H100, *saved(program, a=a, b=b), "--trace", "1,2"]
    assert str(trace) == program.run(*words).stdout
    assert dict(trace) == program.json(*words)
    assert trace["steps"][0]["terms"][0]["what"] == "product"
    assert numemu.unit(H100).trace(a, b)["m"] == 0
    dots = numemu.unit(H100).trace(a, a, at=3, dots=True)
    assert dots["n"] == 3
    with pytest.raises(numemu.Error, match="at 9,0: expected m,n with m < 5 and n < 7"):
        numemu.unit(H100).trace(a, b, at=(9, 0))


def test_tensors_with_types_of_their_own(rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    unit = numemu.unit(next(name for name in numemu.units("h100.wgmma") if ".bf16.f32" in name))
    a, b = torch.randn(4, 32).bfloat16(), torch.randn(32, 6).bfloat16()
    d = unit.gemm(a, b)
    assert np.array_equal(d, unit.gemm(a.view(torch.int16).numpy().view(np.uint16), b.view(torch.int16).numpy().view(np.uint16)))
    assert np.allclose(d, (a.float() @ b.float()).numpy(), atol=1e-3)
    with pytest.raises(numemu.Error, match="a: bfloat16 contradicts unit nvidia.h100.wgmma.e4m3.f32"):
        numemu.unit(H100).gemm(a, b)
    if hasattr(torch, "float8_e4m3fn"):
        x = torch.randn(4, 32).to(torch.float8_e4m3fn)
        assert numemu.unit(H100).gemm(x, x.T.contiguous()).shape == (4, 4)
    else:
        print(f"skipped: torch {torch.__version__} has no float8 operands")
