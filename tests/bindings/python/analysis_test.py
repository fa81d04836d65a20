"""Errors of formats: the figures that `numemu analyze` prints."""
import numemu
import numpy as np
import pytest


def test_same_figures_as_the_program(program, rng):
    words = ["--format", "e4m3fn", "--n", 20000, "--seed", 3]
    want = program.json("analyze", *words, "--dist", "normal", "--best-scale")
    assert numemu.error("e4m3fn", "normal", n=20000, seed=3, best_scale=True) == want
    x = rng.standard_normal(5000).astype(np.float32)
    program.save("x.npy", x)
    want = program.json("analyze", "--format", "int4", "--dist", "x.npy", "--scale-rule", "absmax", "--rounding", "rtz")
    got = numemu.error("int4", x, rule="absmax", rounding="rtz")
    assert want.pop("dist") == "x.npy" and got.pop("dist") == "numbers"
    assert got == want


def test_best_scale(program):
    want = program.json("analyze", "--format", "e2m1", "--dist", "laplace", "--best-scale", "--n", 1000)
    assert numemu.best_scale("e2m1", "laplace") == want["best_scale"]
    x = np.random.default_rng(0).laplace(size=4000)
    best = numemu.best_scale(numemu.format("e2m1"), x)["real"]
    mse = lambda scale: numemu.error("e2m1", x, scale=np.float32(scale))["figures"]["mse"]["measured"]
    assert mse(best["scale"]) < min(mse(1.1 * best["scale"]), mse(0.9 * best["scale"]))


def test_a_table_of_formats():
    rows = numemu.errors(["e4m3fn", "e5m2", numemu.format("int8")], "normal", scale=0.02, n=10000)
    assert [row["format"] for row in rows] == ["float8_e4m3fn", "float8_e5m2", "int8"]
    assert all(row["sqnr_db_verdict"] == "holds" for row in rows)
    assert rows[0]["sqnr_db"] > rows[1]["sqnr_db"]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert pandas.DataFrame(rows).set_index("format").loc["int8", "bits"] == 8


def test_refusals(program):
    with pytest.raises(numemu.Error) as caught:
        numemu.error("e4m3fn", "normale")
    assert str(caught.value) in program.refusal("analyze", "--format", "e4m3fn", "--dist", "normale")
    for words, text in [
        (dict(format="float32", dist="normal"), "has 32 bits"),
        (dict(format="e4m3fn", dist=np.array([np.inf])), "numbers: element 0 is inf"),
        (dict(format="e4m3fn", dist=np.zeros(0)), "expected at least one element"),
        (dict(format="e4m3fn", dist=np.zeros(8)), "expected numbers that are not all zero"),
        (dict(format="e4m3fn", dist="normal", n=-5), "^n: expected at least 1"),
        (dict(format="e4m3fn", dist="normal", scale=-1), "expected a positive number"),
    ]:
        with pytest.raises(numemu.Error, match=text):
            numemu.error(**words)
