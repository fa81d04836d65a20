"""Scalar formats: NumPy, PyTorch and ml_dtypes as witnesses, and the program itself."""
import pickle
import threading

import numemu
import numpy as np
import pytest


def same(got, want):
    """Equal bits, every NaN as every other."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype
    nan = np.isnan(got) & np.isnan(want) if got.dtype.kind == "f" else np.zeros(got.shape, bool)
    unsigned = f"u{got.itemsize}"
    return bool(np.all(nan | (got.view(unsigned) == want.view(unsigned))))


def test_float16_is_that_of_numpy(numbers):
    with np.errstate(over="ignore"):
        want = numbers.astype(np.float16)
    got = numemu.format("float16").encode(numbers, overflow="ieee")
    assert got.dtype == np.uint16
    assert same(got.view(np.float16), want)
    codes = np.arange(1 << 16, dtype=np.uint16)
    assert same(numemu.format("f16").decode(codes), codes.view(np.float16).astype(np.float32))


def test_numbers_of_every_type_are_rounded_once(rng):
    x = rng.standard_normal(1000)
    once = numemu.format("e4m3fn").encode(x)
    by_text = numemu.format("e4m3fn").encode([float(v) for v in x])
    assert np.array_equal(once, by_text)
    # Through float32 some would be rounded twice: halfway between 16 and 18, and a little more.
    y = np.array([17 * (1 + 2.0**-40)])
    assert numemu.format("e4m3fn").decode(numemu.format("e4m3fn").encode(y))[0] == 18
    assert numemu.format("e4m3fn").decode(numemu.format("e4m3fn").encode(y.astype(np.float32)))[0] == 16
    assert numemu.encode([1, 2, 3], "int4").tolist() == [1, 2, 3]
    assert numemu.encode(np.array([True, False]), "int4").tolist() == [1, 0]
    with pytest.raises(numemu.Error, match="x: expected whole numbers up to 2\\^53"):
        numemu.encode(np.array([2**60 + 1]), "float64")


def test_strided_swapped_and_scalar_arrays(numbers):
    f = numemu.format("e5m2")
    want = f.encode(numbers)
    matrix = np.stack([numbers, numbers]).T
    assert np.array_equal(f.encode(matrix), np.stack([want, want]).T)
    assert np.array_equal(f.encode(numbers[::-2]), want[::-2])
    assert np.array_equal(f.encode(numbers.astype(">f4")), want)
    assert f.encode(np.float32(1.5)).shape == () and f.encode(1.5) == 0x3E
    assert f.encode(np.zeros((0, 3), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("name,rounding,overflow", [("float8_e4m3fn", "rne", "saturate"), ("e5m2", "sr(8)", "propagate"), ("e3m2+finite", "rup", "saturate"), ("int8", "rtz", "saturate"), ("bfloat16", "sr(5,odd)", "ieee")])
def test_same_bits_as_the_program(program, numbers, name, rounding, overflow):
    x = program.save("x.npy", numbers)
    seed = ["--seed", 7] if rounding.startswith("sr") else []
    program.run("encode", "--format", name, "--in", x, "--out", "c.npy", "--flags", "f.npy", "--rounding", rounding, "--overflow", overflow, *seed)
    codes, flags = numemu.encode(numbers, name, rounding=rounding, overflow=overflow, seed=7, flags=True)
    assert np.array_equal(codes, program.load("c.npy"))
    assert np.array_equal(flags, program.load("f.npy"))
    program.run("decode", "--in", "c.npy", "--out", "y.npy")
    assert same(numemu.decode(codes, name), program.load("y.npy"))


@pytest.mark.parametrize("name", ["nf4", "af4", "posit(8,1)", "posit(16,1)", "log(4,3)", "lloyd(normal,16)", "lloyd(laplace,16)"])
def test_codebooks_have_the_bits_of_the_program(program, rng, name):
    x = rng.standard_normal((64, 96), dtype=np.float32)
    program.save("x.npy", x)
    program.run("encode", "--format", name, "--in", "x.npy", "--out", "c.npy")
    codes = numemu.format(name).encode(x)
    assert np.array_equal(codes, program.load("c.npy"))
    program.run("decode", "--in", "c.npy", "--out", "y.npy")
    assert same(numemu.decode(codes, name), program.load("y.npy"))
    assert len(numemu.format(name).values) in (2 ** numemu.format(name).bits, 2 ** numemu.format(name).bits - 1)


def test_random_words_of_the_caller(program, numbers, rng):
    words = rng.integers(0, 1 << 32, numbers.shape, dtype=np.uint32)
    program.save("x.npy", numbers)
    program.save("r.npy", words)
    program.run("encode", "--format", "e4m3fn", "--in", "x.npy", "--out", "c.npy", "--rounding", "sr(6)", "--random-bits", "r.npy")
    assert np.array_equal(numemu.encode(numbers, "e4m3fn", rounding="sr(6)", random=words), program.load("c.npy"))
    with pytest.raises(numemu.Error, match=r"random: shape: expected \[2\], found \[3\]"):
        numemu.encode(np.zeros(2, np.float32), "e4m3fn", rounding="sr(6)", random=words[:3])


def test_facts_are_those_of_the_program(program):
    for format in numemu.formats():
        assert format.describe() == {k: v for k, v in program.json("formats", format.name).items() if k not in ("values",)}
    assert [f.name for f in numemu.formats()][:2] == ["float8_e5m2", "float8_e4m3fn"]
    e4m3 = numemu.format("e4m3fn")
    assert (e4m3.bits, e4m3.largest, e4m3.smallest, e4m3.smallest_normal) == (8, 448, 2**-9, 2**-6)
    assert e4m3.values.size == 253 and e4m3.values[0] == -448 and np.all(np.diff(e4m3.values) > 0)
    assert numemu.format("e15m2").largest is None
    assert numemu.format(numemu.format("e4m3fn").name) == e4m3 and hash(numemu.format("e4m3fn")) == hash(e4m3)
    assert pickle.loads(pickle.dumps(e4m3)) == e4m3
    assert repr(e4m3) == "numemu.format('float8_e4m3fn')"
    with pytest.raises(numemu.Error, match="values: float32 has 32 bits"):
        numemu.format("float32").values


def test_errors_have_the_text_and_the_kind_of_the_program(program):
    x = program.save("x.npy", np.zeros(2, np.float32))
    with pytest.raises(numemu.Error) as caught:
        numemu.format("e4m3fnn")
    assert str(caught.value) in program.refusal("encode", "--format", "e4m3fnn", "--in", x, "--out", "c.npy")
    assert caught.value.kind == "value"
    with pytest.raises(numemu.Error) as caught:
        numemu.encode([1.0], "e4m3fn", rounding="rnx")
    assert str(caught.value) in program.refusal("encode", "--format", "e4m3fn", "--rounding", "rnx", "--in", x, "--out", "c.npy")
    with pytest.raises(numemu.Error, match="codes: dtype: expected uint8 codes of float8_e4m3fn, found float32"):
        numemu.decode(np.zeros(2, np.float32), "e4m3fn")
    with pytest.raises(numemu.Error, match="codes: element 1"):
        numemu.decode(np.array([1, 255], np.uint8), "e2m1")
    with pytest.raises(numemu.Error, match="x: dtype: expected numbers or codes, found <U1"):
        numemu.encode(np.array(["a"]), "e4m3fn")
    with pytest.raises(numemu.Error, match="format: expected numemu.Format or a name, found int"):
        numemu.encode([1.0], 5)


def test_results_go_into_arrays_of_the_caller(numbers):
    f = numemu.format("e4m3fn")
    want, want_flags = f.encode(numbers, flags=True)
    codes, flags = np.empty_like(want), np.empty_like(want)
    got = f.encode(numbers, out=codes, flags=flags)
    assert got[0] is codes and got[1] is flags
    assert np.array_equal(codes, want) and np.array_equal(flags, want_flags)
    values = np.empty(want.shape, np.float64)
    assert f.decode(want, out=values) is values and same(values, f.decode(want, dtype=np.float64))
    halves = np.empty(numbers.shape, np.float16)
    assert numemu.format("f16").encode(numbers, out=halves) is halves
    for out, text in [
        (np.empty(3, np.uint8), r"out: shape: expected \[40010\], found \[3\]"),
        (np.empty(numbers.shape, np.uint16), "out: dtype: expected uint8, found uint16"),
        (np.empty(2 * numbers.size, np.uint8)[::2], "out: expected a writeable array in C order"),
    ]:
        with pytest.raises(numemu.Error, match=text):
            f.encode(numbers, out=out)
    codes.flags.writeable = False
    with pytest.raises(numemu.Error, match="writeable"):
        f.encode(numbers, out=codes)


def test_flags_are_counted():
    _, flags = numemu.encode([1, 0.1, 1e9, 1e-9, np.nan], "e5m2", overflow="ieee", flags=True)
    assert numemu.counts(flags) == {"elements": 5, "inexact": 3, "underflow": 1, "overflow": 1, "invalid": 0}


def test_quantize_is_decode_of_encode(numbers):
    finite = numbers[np.isfinite(numbers)]
    for name in ("e4m3fn", "int8", "bfloat16"):
        f = numemu.format(name)
        assert same(f.quantize(finite), f.decode(f.encode(finite), dtype=np.float32))
    x = np.random.default_rng(1).standard_normal(100_000, dtype=np.float32)
    f = numemu.format("e2m1")
    assert same(f.quantize(x, scale=0.25), f.quantize(x * 4) / np.float32(4))
    words = dict(rounding="sr(8)", seed=3)
    assert same(f.quantize(x, **words), f.decode(f.encode(x, **words)))
    with pytest.raises(numemu.Error, match="scale: expected a positive number"):
        f.quantize(x, scale=0)


def test_threads_do_not_matter_and_the_interpreter_goes_on(rng):
    x = rng.standard_normal(1 << 23, dtype=np.float32)
    f = numemu.format("e4m3fn")
    want = f.encode(x, rounding="sr(16)")
    numemu.set_threads(1)
    try:
        assert np.array_equal(f.encode(x, rounding="sr(16)"), want)
        results, ticks = {}, 0
        slow = threading.Thread(target=lambda: results.update(a=f.encode(x, rounding="sr(16)")))
        slow.start()
        while slow.is_alive():
            ticks += 1
        slow.join()
        assert np.array_equal(results["a"], want) and ticks > 10
    finally:
        numemu.set_threads(0)


def test_bfloat16_of_torch(numbers):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.from_numpy(numbers.copy())
    want = x.to(torch.bfloat16)
    f = numemu.format("bfloat16")
    got = torch.empty_like(want)
    assert f.encode(x, overflow="ieee", out=got) is got
    nan = torch.isnan(want)
    assert torch.equal(torch.isnan(got), nan)
    assert torch.equal(got.view(torch.int16)[~nan], want.view(torch.int16)[~nan])
    assert same(numemu.decode(want), want.float().numpy())
    assert np.array_equal(numemu.encode(want, "e4m3fn"), numemu.encode(want.float(), "e4m3fn"))
    with_gradient = torch.ones(3, requires_grad=True)
    assert numemu.encode(with_gradient, "e4m3fn").tolist() == [0x38] * 3
    with pytest.raises(numemu.Error, match="codes: dtype: expected float8_e4m3fn, found bfloat16"):
        numemu.decode(want, "e4m3fn")


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_float8_of_torch(numbers, name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not hasattr(torch, name):
        pytest.skip(f"torch {torch.__version__} has no {name} (2.1 and later have)")
    finite = torch.from_numpy(numbers[np.abs(numbers) <= 200].copy())
    want = finite.to(getattr(torch, name))
    assert np.array_equal(numemu.encode(finite, name), want.view(torch.uint8).numpy())
    assert same(numemu.decode(want), want.float().numpy())


#: What a byte of each type of torch and ml_dtypes means, by the published rule of its encoding: exponent bits, mantissa bits,
#: bias, and which codes are no numbers. Written here anew, so that bytes are checked where neither library has the type.
EIGHT_BITS = {
    "float8_e4m3fn": (4, 3, 7, lambda code: code & 0x7F == 0x7F, None),
    "float8_e4m3fnuz": (4, 3, 8, lambda code: code == 0x80, None),
    "float8_e4m3b11fnuz": (4, 3, 11, lambda code: code == 0x80, None),
    "float8_e5m2": (5, 2, 15, lambda code: code & 0x7F > 0x7C, 0x7C),
    "float8_e5m2fnuz": (5, 2, 16, lambda code: code == 0x80, None),
    "float8_e3m4": (3, 4, 3, lambda code: code & 0x7F > 0x70, 0x70),
    "float8_e4m3": (4, 3, 7, lambda code: code & 0x7F > 0x78, 0x78),
    "float6_e2m3fn": (2, 3, 1, None, None),
    "float6_e3m2fn": (3, 2, 3, None, None),
    "float4_e2m1fn": (2, 1, 1, None, None),
}


def meaning(name, code):
    if name == "float8_e8m0fnu":
        return float("nan") if code == 0xFF else 2.0 ** (code - 127)
    if name in ("int2", "int4"):
        bits = int(name[3:])
        return float(code - (1 << bits) if code >> (bits - 1) else code)
    if name in ("uint2", "uint4"):
        return float(code)
    e, m, bias, is_nan, infinity = EIGHT_BITS[name]
    if is_nan is not None and is_nan(code):
        return float("nan")
    sign = -1.0 if code >> (e + m) else 1.0
    field, fraction = code >> m & (1 << e) - 1, code & (1 << m) - 1
    if infinity is not None and code & (1 << e + m) - 1 == infinity:
        return sign * float("inf")
    if field == 0:
        return sign * fraction * 2.0 ** (1 - bias - m)
    return sign * (1 + fraction / (1 << m)) * 2.0 ** (field - bias)


def types_of_a_byte():
    from numemu._views import _FORMATS

    return sorted(name for name in _FORMATS if name != "bfloat16")


@pytest.mark.parametrize("name", types_of_a_byte())
def test_every_byte_of_every_type(name):
    """All codes, as view(torch.uint8) or view(np.uint8) shows them: runs without any library that has the type."""
    f = numemu.format(name)
    codes = np.arange(1 << f.bits, dtype=np.uint8)
    want = np.array([meaning(name, int(code)) for code in codes])
    got = f.decode(codes, dtype=np.float64)
    assert same(got, want)
    if name.startswith("int"):  # whose sign such libraries extend
        assert same(f.decode(want.astype(np.int8), dtype=np.float64), want)
    back = f.encode(got, overflow="ieee" if f.has_infinity else "saturate")
    number = ~np.isnan(got)
    if f.has_infinity or not np.isinf(got).any():
        assert np.array_equal(back[number], codes[number])
    if name != "float8_e8m0fnu" and f.has_nan:
        assert np.isnan(f.decode(back[~number])).all()
    # The same of a tensor's bytes, and of a strided view of them.
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensor = torch.from_numpy(codes.copy())
    assert same(f.decode(tensor), f.decode(codes)) and same(f.decode(tensor.flip(0)[::2]), f.decode(codes[::-1][::2].copy()))
    out = torch.empty_like(tensor)
    assert f.encode(got, out=out, overflow="ieee" if f.has_infinity else "saturate") is out
    assert np.array_equal(out.numpy(), back)


def test_types_of_ml_dtypes(numbers):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    from numemu._views import _FORMATS

    tried = 0
    for name in _FORMATS:
        if not hasattr(ml_dtypes, name):
            continue
        x = numbers[np.isfinite(numbers)]
        f = numemu.format(name)
        x = x[(np.abs(x) <= f.largest) & ((x >= 0) | f.is_signed)]
        if name == "float8_e8m0fnu":
            x = x[x >= f.smallest]
        if name.startswith(("int", "uint")):
            x = np.round(x)
        want = x.astype(getattr(ml_dtypes, name))
        assert same(numemu.decode(want), want.astype(np.float32)), name
        assert same(f.decode(f.encode(x)), want.astype(np.float32)), name
        tried += 1
    assert tried > 5
