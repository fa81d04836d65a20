"""Wrong calls, attacked: each is a numemu.Error of a kind, in one line, and what Python can give by another form is taken."""
import array
import copy
import inspect
import pathlib
import pickle

import numpy as np
import pytest

import numemu
from numemu.testing import BitsDiffer, assert_bits

E4M3 = numemu.format("e4m3fn")
MXFP4 = numemu.format("mxfp4")
UNIT = numemu.unit("h100.wgmma.e4m3.f32")
X = np.linspace(-3, 3, 12, dtype=np.float32)
CODES = E4M3.encode(X)
A, B = np.full((4, 32), 0x38, np.uint8), np.full((32, 4), 0x38, np.uint8)
D = UNIT.gemm(A, B)


def read_only():
    x = X.copy()
    x.flags.writeable = False
    return x


def circle():
    one = {}
    one["again"] = one
    return one


def deep(levels):
    one = {}
    for _ in range(levels):
        one = {"a": one}
    return one


#: Arrays that hold the numbers X in other ways.
@pytest.mark.parametrize("x", [
    X.astype(">f4"), X.astype(np.float64), X.astype(">f8"), read_only(), np.repeat(X, 3)[::3], X[::-1].copy()[::-1],
    np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32), X.tolist(), tuple(X.tolist()), memoryview(X),
    array.array("f", X.tolist()), X.view(np.recarray),
], ids=["big-endian", "float64", "big-endian float64", "read-only", "strided", "negative stride", "unaligned", "list", "tuple",
        "memoryview", "array", "subclass"])
def test_other_layouts(x):
    assert np.array_equal(E4M3.encode(x), CODES)
    assert np.array_equal(E4M3.quantize(x), E4M3.decode(CODES))


def test_shapes_of_any_kind():
    assert E4M3.encode(np.asfortranarray(X.reshape(3, 4))).tolist() == CODES.reshape(3, 4).tolist()
    assert E4M3.encode(np.broadcast_to(np.float32(1.5), (2, 3))).tolist() == [[60] * 3] * 2
    assert E4M3.encode(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert E4M3.encode(1.5).shape == () and E4M3.encode(np.float32(1.5)) == 60
    assert E4M3.encode([]).shape == (0,)
    assert E4M3.encode(np.zeros((1,) * 32, np.float32)).ndim == 32
    assert E4M3.encode(np.zeros(0, np.float32), out=np.empty(0, np.uint8)).size == 0
    assert E4M3.encode(np.float32(1), out=np.empty((), np.uint8)) == 56
    assert UNIT.gemm(A[:0], B).shape == (0, 4) and not UNIT.gemm(A[:, :0], B[:0]).any()
    assert np.array_equal(UNIT.gemm(A[::-1], B[:, ::-1]), D) and np.array_equal(UNIT.gemm(A, A.T), D)
    assert UNIT.gemm(A.tolist(), B.tolist()).tolist() == D.tolist()
    assert E4M3.decode(CODES.tolist()).tolist() == E4M3.decode(CODES).tolist()
    assert E4M3.encode([1.1, 2.2], rounding="sr(8)", random=[0, 255]).tolist() == [56, 65]
    assert E4M3.decode(CODES, dtype=np.float16).dtype == np.float16
    assert E4M3.decode(CODES, out=np.empty(12, np.float16)).tolist() == E4M3.decode(CODES).tolist()
    assert MXFP4.quantize(np.zeros((0, 32), np.float32)).scales.shape == (0, 1)


WRONG = {
    "ragged list": (lambda: E4M3.encode([[1], [1, 2]]), "value", "x: expected numbers or codes in rows of one length, found list"),
    "objects": (lambda: E4M3.encode(np.array([1.5, None], object)), "value", "x: dtype: expected numbers or codes, found object"),
    "complex": (lambda: E4M3.encode(np.array([1j])), "value", "x: dtype: expected numbers or codes, found complex128"),
    "longdouble": (lambda: E4M3.encode(np.array([1], np.longdouble)), "value", "x: dtype: expected numbers"),
    "None": (lambda: E4M3.encode(None), "value", "x: dtype: expected numbers or codes, found object"),
    "a generator": (lambda: E4M3.encode(i for i in range(3)), "value", "x: dtype"),
    "large integers": (lambda: E4M3.encode([2**60]), "value", "x: expected whole numbers up to 2\\^53"),
    "too large": (lambda: E4M3.encode(np.broadcast_to(np.float32(1), (1 << 46,))), "memory", "[Uu]nable to allocate"),
    "out is a list": (lambda: numemu.encode(X, "float64", out=[0.0] * 12), "value", "out: expected an array, found list"),
    "out strided": (lambda: E4M3.encode(X, out=np.empty(24, np.uint8)[::2]), "value", "out: expected a writeable array in C order"),
    "out reversed": (lambda: E4M3.encode(X, out=np.empty(12, np.uint8)[::-1]), "value", "out: expected a writeable array"),
    "out swapped": (lambda: numemu.encode(X, "bfloat16", out=np.empty(12, ">u2")), "value", "out: expected a writeable array"),
    "out of objects": (lambda: E4M3.encode(X, out=np.empty(12, object)), "value", "out: dtype"),
    "rounding None": (lambda: E4M3.encode(X, rounding=None), "usage", "encode: rounding: expected a text, found NoneType"),
    "rounding 5": (lambda: E4M3.encode(X, rounding=5), "usage", "encode: rounding: expected a text, found int"),
    "seed below 0": (lambda: E4M3.encode(X, seed=-1), "usage", "encode: seed: expected a whole number from 0 to 2\\^64 - 1, found -1"),
    "seed beyond": (lambda: E4M3.encode(X, seed=2**64), "usage", "seed: expected a whole number from 0 to 2\\^64 - 1"),
    "seed 1.5": (lambda: E4M3.encode(X, seed=1.5), "usage", "encode: seed: expected a whole number, found float"),
    "another name": (lambda: E4M3.encode(X, roundng="rne"), "usage", "encode: unknown argument 'roundng'; did you mean 'rounding'?"),
    "no argument": (lambda: E4M3.encode(), "usage", "encode: expected an argument x"),
    "too many": (lambda: E4M3.encode(X, "rne"), "usage", "encode: expected at most 1 argument without a name, found 2"),
    "twice": (lambda: E4M3.encode(X, x=X), "usage", "encode: x is given twice"),
    "scale of text": (lambda: E4M3.quantize(X, scale="1"), "usage", "quantize: scale: expected a number, found str"),
    "scale NaN": (lambda: E4M3.quantize(X, scale=float("nan")), "usage", "scale: expected a positive number"),
    "dtype": (lambda: E4M3.decode(CODES, dtype="junk"), "usage", "dtype: expected a type of NumPy, found junk"),
    "dtype int": (lambda: E4M3.decode(CODES, dtype=int), "value", "dtype: expected float16, float32 or float64, found int64"),
    "code beyond": (lambda: E4M3.decode([300]), "value", "codes: expected whole numbers from 0 to 255"),
    "format None": (lambda: numemu.format(None), "usage", "format: name: expected a text, found NoneType"),
    "format's bytes": (lambda: numemu.format("\udcff"), "value", "unknown format"),
    "block for scalar": (lambda: numemu.encode(X, MXFP4), "value", "format: expected a scalar format, found the block format mxfp4"),
    "unit's format": (lambda: numemu.unit("neutral.exact").gemm(A, B, format_a=5, format_b="e4m3fn"), "usage", "format_a: expected"),
    "alpha": (lambda: UNIT.gemm(A, B, alpha="2"), "usage", "gemm: alpha: expected a number, found str"),
    "at 1.5": (lambda: UNIT.trace(A, B, at=1.5), "usage", "trace: at: expected a whole number, found float"),
    "at outside": (lambda: UNIT.trace(A, B, at=(9, 9)), "value", "at 9,9: expected m,n with m < 4 and n < 4"),
    "ulp": (lambda: UNIT.verify(D, A, B, ulp=-1), "usage", "verify: ulp: expected"),
    "unit None": (lambda: numemu.unit(None), "usage", "unit: unit: expected a text, found NoneType"),
    "circular dict": (lambda: numemu.unit(circle()), "value", "unit: nested deeper than 64 levels"),
    "deep dict": (lambda: numemu.unit(deep(100_000)), "value", "unit: nested deeper than 64 levels"),
    "key that is no text": (lambda: numemu.unit({1: 2}), "value", "unit: 1: expected"),
    "integer of 70 bits": (lambda: numemu.unit({"k": 2**70}), "value", "unit: k: expected a whole number of 64 bits"),
    "surrogates": (lambda: numemu.unit({"name": "\udcff"}), "value", "unit: name: expected a text of Unicode"),
    "bytes in a dict": (lambda: numemu.unit({"k": b"x"}), "value", "unit: k: expected a dict, list, text, number"),
    "option of vectors": (lambda: numemu.vectors(UNIT, kk=3), "usage", "make_vectors: unknown argument 'kk'"),
    "n of vectors": (lambda: numemu.vectors(UNIT, n=2**63), "usage", "n: expected a whole number"),
    "field of vectors": (lambda: (lambda v: v.word(v[0], "z"))(numemu.vectors(UNIT, n=1)), "value", "word: unknown field 'z'"),
    "figure": (lambda: numemu.errors(["e2m1"], "normal", figures=["x"], n=100), "value", "errors: unknown figure 'x'; known: "),
    "scale None": (lambda: numemu.error("e2m1", "normal", scale=None), "usage", "error: scale: expected a number, found NoneType"),
    "mask's rule": (lambda: numemu.mask(X, None), "usage", "mask: rule: expected a text, found NoneType"),
    "threads": (lambda: numemu.set_threads(-1), "usage", "set_threads: most: expected a whole number from 0 to 1024, found -1"),
    "file": (lambda: numemu.verify(5), "usage", "verify: path: expected a text, found int"),
    "network None": (lambda: numemu.load(None), "usage", "load: model: expected a name or a file, found NoneType"),
    "rows of None": (lambda: numemu.rows(None), "usage", "rows: folder: expected a text, found NoneType"),
    "sweep of 5": (lambda: numemu.sweep(5), "usage", "sweep: config: expected a text, found int"),
    "sweep's option": (lambda: numemu.sweep({}, outt="x"), "usage", "sweep: unknown option 'outt'; did you mean 'out'?"),
}


@pytest.mark.parametrize("call, kind, text", WRONG.values(), ids=WRONG)
def test_wrong_calls(call, kind, text):
    with pytest.raises(numemu.Error, match=text) as caught:
        call()
    assert caught.value.kind == kind
    assert "\n" not in str(caught.value)


def test_tensors_that_are_no_arrays():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for x, text in [
        (torch.ones(2, 2).to_sparse(), "layout: expected torch.strided, found torch.sparse_coo"),
        (torch.ones(2, device="meta"), "device: expected cpu, found meta"),
        (torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8), "dtype: expected numbers or codes, found quint8"),
        (torch.ones(2, dtype=torch.complex64), "dtype: expected numbers or codes, found complex64"),
    ]:
        with pytest.raises(numemu.Error, match="x: " + text):
            E4M3.encode(x)
    negated = torch.full((3,), 1j, dtype=torch.complex64).conj().imag
    assert negated.is_neg() and E4M3.encode(negated).tolist() == E4M3.encode([-1.0] * 3).tolist()
    with pytest.raises(numemu.Error, match="out: expected a tensor that is no view of negated elements"):
        numemu.encode(np.ones(3), "float32", out=negated)


def test_objects_are_copied_compared_and_shown():
    described = UNIT.describe()["parameters"] | {"name": "mine.own.unit"}
    mine = numemu.unit(described)
    vectors = numemu.vectors(UNIT, n=5, k=32)
    for one in (E4M3, MXFP4, UNIT, mine):
        assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one) and hash(one) == hash(copy.copy(one))
        assert one != "another" and repr(one)
    assert mine != UNIT and np.array_equal(pickle.loads(pickle.dumps(mine)).gemm(A, B), mine.gemm(A, B))
    assert numemu.format(E4M3) is E4M3 and numemu.format(MXFP4) is MXFP4 and numemu.unit(UNIT) == UNIT
    again = pickle.loads(pickle.dumps(vectors))
    assert list(again) == list(vectors) and pickle.loads(pickle.dumps(vectors[0])) == vectors[0]
    assert len(repr(vectors)) < 300 and "mxfp4" in repr(MXFP4.quantize(X))
    for one in (UNIT.trace(A, B), UNIT.verify(D, A, B)):
        assert str(pickle.loads(pickle.dumps(one))) == str(one)
    network = numemu.load("mlp")
    assert pickle.loads(pickle.dumps(network)).model == "mlp"
    error = pickle.loads(pickle.dumps(caught(lambda: UNIT.gemm(A))))
    assert isinstance(error, numemu.Error) and error.kind == "usage" and numemu.Error("mine").kind == "value"


def caught(call):
    with pytest.raises(numemu.Error) as error:
        call()
    return error.value


def test_help_shows_arguments():
    assert str(inspect.signature(E4M3.encode)).startswith("(x, *, rounding='rne', overflow='saturate'")
    assert str(inspect.signature(numemu.unit)) == "(unit)"
    assert list(inspect.signature(numemu.Unit.gemm).parameters)[:4] == ["self", "a", "b", "c"]
    assert {"encode", "decode", "quantize", "values"} <= set(dir(E4M3))


def test_files_may_have_any_name(tmp_path):
    path = pathlib.Path(tmp_path) / b"caf\xe9.npy".decode(errors="surrogateescape")
    np.save(path, X)
    assert numemu.error("e2m1", path)["figures"] == numemu.error("e2m1", X)["figures"]
    path.unlink()
    assert "caf\\xe9.npy: cannot open" in str(caught(lambda: numemu.error("e2m1", path)))


def test_a_mismatch_is_an_assertion():
    with pytest.raises(BitsDiffer) as differ:
        assert_bits(D + 1, UNIT, A, B)
    assert "rule" in str(differ.value) or "mismatch" in str(differ.value)
    with pytest.raises(numemu.Error, match="d: shape"):
        assert_bits(D[:2], UNIT, A, B)
