"""numemu: low-precision number formats, matrix units and networks on them, bit for bit.

    import numemu
    codes = numemu.format("e4m3fn").encode(x)      # a NumPy array of codes, float8_e4m3fn
    y = numemu.unit("h100.wgmma.e4m3.f32").gemm(a, b)

Arrays are NumPy's, or CPU tensors of torch, used where they are if they lie in C order. What is wrong raises numemu.Error.
"""
from ._core import Error, Format, __version__, counts, decode, encode, named_formats, scalar_format


def format(name):
    """The number format of that name, alias or descriptor: "e4m3fn", "e3m2+finite", "codebook(FILE.npy)"."""
    return name if isinstance(name, Format) else scalar_format(name)


def formats():
    """Every named scalar format, in the order of docs/formats.md."""
    return named_formats()
