"""assert_bits: right results pass, wrong ones are named by their rule."""
import numemu
import numpy as np
import pytest
from numemu.testing import BitsDiffer, assert_bits

H100 = "nvidia.h100.wgmma.e4m3.f32"


@pytest.fixture
def operands(rng):
    return (numemu.encode(rng.standard_normal(shape), "e4m3fn") for shape in ((16, 64), (64, 16)))


def test_right_results_pass(operands):
    a, b = operands
    d = numemu.unit(H100).gemm(a, b)
    assert_bits(d, H100, a, b)
    assert_bits(d, numemu.unit(H100), a, np.ascontiguousarray(b.T), b_layout="nk")
    assert_bits(numemu.unit(H100).dot(a, a), H100, a, a, dots=True)


def test_a_planted_bug_is_named_and_traced(operands):
    a, b = operands
    wrong = numemu.unit("h100.mma.e4m3.f32").gemm(a, b)  # another order of the sum
    right = numemu.unit(H100).gemm(a, b)
    assert not np.array_equal(wrong, right)
    swapped = numemu.unit(H100).gemm(a, b)[:, ::-1].copy()
    with pytest.raises(BitsDiffer) as caught:
        assert_bits(swapped, H100, a, b)
    text = str(caught.value)
    assert "mismatches" in text and f"of {H100}: float8_e4m3fn x float8_e4m3fn, K = 64" in text and "register" in text
    assert caught.value.trace["unit"] == H100
    with pytest.raises(AssertionError, match="rule"):
        assert_bits(wrong, H100, a, b)
    negated = right.copy()
    negated[3, 4] = -negated[3, 4]
    with pytest.raises(BitsDiffer, match=r"first +D\[3,4\]: expected .* sign") as caught:
        assert_bits(negated, H100, a, b)
    assert caught.value.verified["mismatches"] == 1 and not caught.value.verified
    assert (caught.value.trace["m"], caught.value.trace["n"]) == (3, 4)


def test_tolerances(operands):
    a, b = operands
    right = numemu.unit(H100).gemm(a, b)
    near = np.nextafter(right, np.float32(np.inf))
    assert_bits(near, H100, a, b, ulp=1)
    with pytest.raises(BitsDiffer, match="one ulp|1 ulp"):
        assert_bits(near, H100, a, b)
    nan = np.array([[0x7F]], np.uint8)
    got = np.array([[0x7FC00001]], np.uint32).view(np.float32)
    assert_bits(got, H100, nan, nan)
    with pytest.raises(BitsDiffer):
        assert_bits(got, H100, nan, nan, nan="payload")
    with pytest.raises(numemu.Error, match="nan: expected one of any, canonical, payload, found some"):
        assert_bits(got, H100, nan, nan, nan="some")
    with pytest.raises(numemu.Error, match="shape"):
        assert_bits(right[:3], H100, a, b)
