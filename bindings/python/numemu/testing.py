"""Assertions for the tests of a kernel or a device."""
from . import _core


class BitsDiffer(AssertionError):
    """Results that a unit does not give. `verified` says which differ and by which rule, `trace` how the first came about."""

    def __init__(self, verified, trace):
        self.verified = verified
        self.trace = trace
        super().__init__(f"{verified}\n{trace}")


def assert_bits(got, unit, a, b, c=None, *, nan="any", ulp=0, zero_sign="strict", **operands):
    """Raises BitsDiffer unless `got` is what the unit computes, bit for bit.

    got: D, in the type and shape that unit.gemm(a, b, c) gives. nan: which NaN are equal: any, canonical, payload. ulp: finite
    results so many apart are equal. operands: scales, metadata, layouts and dots=True, as Unit.verify() takes them.
    The message names the rule that explains what differs (a rounding, a lost bit, an order of operands) and traces the first
    output that does.
    """
    one = _core.unit(unit)
    verified = one.verify(got, a, b, c, nan=nan, ulp=ulp, zero_sign=zero_sign, **operands)
    if verified:
        return
    first = verified["first"]
    at = [first[axis] for axis in ("b", "m", "n") if axis in first]
    raise BitsDiffer(verified, one.trace(a, b, c, at=at, **operands))
