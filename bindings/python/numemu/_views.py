"""Arrays of other libraries as NumPy arrays of the same elements."""
import numpy as np

#: Types of torch and ml_dtypes whose elements are codes of a format, by the name both give them.
_FORMATS = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "float8_e5m2": "float8_e5m2",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
    "float8_e8m0fnu": "float8_e8m0fnu",
    "float8_e3m4": "float8_e3m4",
    "float8_e4m3": "float8_e4m3",
    "float6_e2m3fn": "float6_e2m3fn",
    "float6_e3m2fn": "float6_e3m2fn",
    "float4_e2m1fn": "float4_e2m1fn",
    "int4": "int4",
    "uint4": "uint4",
    "int2": "int2",
    "uint2": "uint2",
}


def view(x, name):
    """The array of `x`, without a copy where there is a choice, and the name of the format that its type names."""
    if hasattr(x, "detach") and hasattr(x, "numpy"):
        return _tensor(x, name)
    array = x if isinstance(x, np.ndarray) else _array(x, name)
    if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
        return (array.view(np.uint8) if array.dtype.kind == "b" else array), None
    format = _FORMATS.get(array.dtype.name)
    if format is None:
        raise_value(f"{name}: dtype: expected numbers or codes, found {array.dtype}")
    if array.dtype.itemsize == 2:
        return array.view(np.uint16), format
    return array.view(np.int8 if format.startswith("int") else np.uint8), format


def target(x, name):
    """view() of what results are written to."""
    tensor = hasattr(x, "detach") and hasattr(x, "numpy")
    if not tensor and not isinstance(x, np.ndarray):
        raise_value(f"{name}: expected an array, found {type(x).__name__}")
    if tensor and x.is_neg():
        raise_value(f"{name}: expected a tensor that is no view of negated elements")
    return view(x, name)


def _array(x, name):
    try:
        return np.asarray(x)
    except (TypeError, ValueError):
        raise_value(f"{name}: expected numbers or codes in rows of one length, found {type(x).__name__}")


def _tensor(x, name):
    """Of a tensor of torch, in the memory of the CPU."""
    import torch

    x = x.detach()
    if x.device.type != "cpu":
        raise_value(f"{name}: device: expected cpu, found {x.device}")
    if x.layout is not torch.strided:
        raise_value(f"{name}: layout: expected torch.strided, found {x.layout}")
    type_name = str(x.dtype).removeprefix("torch.")
    format = _FORMATS.get(type_name)
    if format is None:
        if x.is_quantized or x.is_complex():
            raise_value(f"{name}: dtype: expected numbers or codes, found {type_name}")
        return view(x.resolve_neg().numpy(), name)
    if x.element_size() == 2:
        return x.view(torch.int16).numpy().view(np.uint16), format
    return x.view(torch.uint8).numpy(), format


def plain(array):
    """A copy in C order, aligned, of this machine's byte order."""
    return np.require(array, array.dtype.newbyteorder("="), ["C", "A"])


def exact_float64(array, name):
    """Whole numbers as float64, exactly."""
    numbers = array.astype(np.float64)
    if array.dtype.itemsize == 8 and array.size and np.abs(numbers).max() > 2.0**53:
        raise_value(f"{name}: expected whole numbers up to 2^53")
    return numbers


def whole(array, dtype, name):
    """Whole numbers of a list as elements of that type."""
    limits = np.iinfo(dtype)
    if array.dtype.kind not in "iu":
        raise_value(f"{name}: dtype: expected {np.dtype(dtype)}, found {array.dtype}")
    if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
        raise_value(f"{name}: expected whole numbers from {limits.min} to {limits.max}")
    return array.astype(dtype)


def raise_value(text):
    raise _error(text, "value")


def usage(text):
    """An Error of a call that cannot be meant."""
    return _error(text, "usage")


def _error(text, kind):
    from . import Error

    error = Error(text)
    error.kind = kind
    return error
