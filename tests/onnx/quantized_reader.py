#!/usr/bin/env python3
"""Evaluates an exported ONNX file in numpy, by its own reader of the wire format and the formulas of ONNX's operators.

usage: quantized_reader.py MODEL.onnx X.npy Y.npy       X and Y as the file has them (images [n, c, h, w])

Sums of products are those of the unit neutral.exact: a product of two float32 is exact in np.longdouble, a sum has 11 bits or
more beyond float64 and is rounded once to float32. numpy adds long doubles itself, so no BLAS library chooses the order.
"""
import math
import struct
import sys

import numpy as np


def fields(data):
    """(number, wire type, value) of a protobuf message; bytes stay bytes."""
    at = 0

    def varint():
        nonlocal at
        word, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            word |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return word

    while at < len(data):
        tag = varint()
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value = varint()
        elif wire == 2:
            size = varint()
            value = data[at:at + size]
            at += size
        else:
            size = 4 if wire == 5 else 8
            value = struct.unpack('<f' if wire == 5 else '<d', data[at:at + size])[0]
            at += size
        yield number, wire, value


def signed(word):
    return word - (1 << 64) if word >> 63 else word


def float8_values(exponent_bits, bias, finite_nan, unsigned_zero):
    """The 256 values of an 8-bit float: e4m3fn keeps its top exponent for numbers, fnuz has NaN at the -0 code."""
    mantissa_bits = 7 - exponent_bits
    values = []
    for code in range(256):
        sign = -1.0 if code & 128 else 1.0
        exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = code & ((1 << mantissa_bits) - 1)
        top = exponent == (1 << exponent_bits) - 1
        if unsigned_zero:
            special = np.nan if code == 128 else None
        elif finite_nan:
            special = np.nan if top and mantissa == (1 << mantissa_bits) - 1 else None
        else:
            special = (sign * np.inf if mantissa == 0 else np.nan) if top else None
        scale = 2.0**(max(exponent, 1) - bias - mantissa_bits)
        value = sign * scale * (mantissa + ((1 << mantissa_bits) if exponent else 0))
        values.append(value if special is None else special)
    return np.array(values, np.float32)


FLOAT8 = {17: float8_values(4, 7, True, False), 18: float8_values(4, 8, False, True),
          19: float8_values(5, 15, False, False), 20: float8_values(5, 16, False, True)}
INTEGERS = {2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64}


class Codes:
    """A tensor with the number of its ONNX type; floats of 8 bits as their values."""

    def __init__(self, kind, values):
        self.kind, self.values = kind, values


def tensor(data):
    dims, kind, name, raw = [], 1, '', b''
    for number, _, value in fields(data):
        if number == 1:
            dims.append(value)
        elif number == 2:
            kind = value
        elif number == 8:
            name = value.decode()
        elif number == 9:
            raw = value
    if kind == 1:
        return name, np.frombuffer(raw, '<f4').reshape(dims)
    if kind in FLOAT8:
        return name, Codes(kind, FLOAT8[kind][np.frombuffer(raw, np.uint8)].reshape(dims))
    if kind in (21, 22):  # two in a byte, the first in its low half
        pairs = np.frombuffer(raw, np.uint8)
        codes = np.stack([pairs & 15, pairs >> 4], 1).reshape(-1)[:int(np.prod(dims))].astype(np.int32)
        if kind == 22:
            codes = codes - 16 * (codes > 7)
        return name, Codes(kind, codes.reshape(dims))
    values = np.frombuffer(raw, np.dtype(INTEGERS[kind]).newbyteorder('<')).reshape(dims)
    return name, values if kind == 7 else Codes(kind, values)


def attribute(data):
    name, value, many = '', None, []
    for number, _, found in fields(data):
        if number == 1:
            name = found.decode()
        elif number == 2:
            value = found
        elif number == 3:
            value = signed(found)
        elif number == 8:
            many.append(signed(found))
    return name, many if value is None else value


def node(data):
    out = {'in': [], 'attributes': {}}
    for number, _, value in fields(data):
        if number == 1:
            out['in'].append(value.decode())
        elif number == 2:
            out['out'] = value.decode()
        elif number == 4:
            out['op'] = value.decode()
        elif number == 5:
            name, content = attribute(value)
            out['attributes'][name] = content
    return out


def along(scale, x, axis):
    """A vector of scales in the shape that varies along the axis."""
    if np.ndim(scale) == 0 or scale.size == 1:
        return np.float32(scale.reshape(-1)[0])
    return scale.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


def quantize(x, scale, zero, axis=1):
    quotient = (x / along(scale, x, axis)).astype(np.float32)
    if zero.kind in FLOAT8:
        values = np.sort(np.unique(FLOAT8[zero.kind][np.isfinite(FLOAT8[zero.kind])]))
        high = np.clip(np.searchsorted(values, quotient), 1, len(values) - 1)
        low, up = values[high - 1], values[high]
        middle = (low.astype(np.float64) + up) / 2
        # Ties go to the even code, and codes of magnitudes count up: the even place from zero.
        place = np.abs(high - 1 - np.searchsorted(values, 0.0))
        pick_low = (quotient < middle) | ((quotient == middle) & (place % 2 == 0))
        return Codes(zero.kind, np.where(pick_low, low, up).astype(np.float32))
    low, high = {21: (0, 15), 22: (-8, 7)}.get(zero.kind) or (np.iinfo(INTEGERS[zero.kind]).min,
                                                             np.iinfo(INTEGERS[zero.kind]).max)
    return Codes(zero.kind, np.clip(np.rint(quotient).astype(np.float64) + zero.values, low, high).astype(np.int32))


def dequantize(codes, scale, zero=None, axis=1):
    shifted = codes.values - (zero.values if zero is not None else 0)
    return shifted.astype(np.float32) * along(scale, shifted, axis)


def windows(x, kernel, strides, pads, fill):
    """[n, c, oh, ow, kh, kw] of [n, c, h, w]."""
    x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    return view[:, :, ::strides[0], ::strides[1]]


def add_bias(products, b):
    """Rounds the products to float32 before it adds the bias, as a unit gives them."""
    products = products.astype(np.float32)
    return products if b is None else products + b


def conv(x, w, b=None, kernel_shape=None, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1):
    assert list(dilations) == [1, 1]
    n, c = x.shape[:2]
    view = windows(x, w.shape[2:], strides, pads, 0)
    view = view.reshape((n, group, c // group) + view.shape[2:])
    weight = w.reshape((group, w.shape[0] // group) + w.shape[1:])
    y = np.einsum('ngchwij,gocij->ngohw', view.astype(np.longdouble), weight.astype(np.longdouble), optimize=True)
    y = y.reshape(n, w.shape[0], *y.shape[3:])
    return add_bias(y, None if b is None else b.reshape(1, -1, 1, 1))


def matmul(a, b):
    return a.astype(np.longdouble) @ b.astype(np.longdouble)


def batch_norm(x, weight, bias, mean, variance, epsilon=1e-5, momentum=0.9):
    shape = [-1 if i == 1 else 1 for i in range(x.ndim)]
    factor = weight / np.sqrt(variance + epsilon)
    return x * factor.reshape(shape) + (bias - mean * factor).reshape(shape)


def pad(x, pads, value=0.0):
    half = len(pads) // 2
    return np.pad(x, list(zip(pads[:half], pads[half:])), constant_values=float(value))


def cut(x, starts, ends, axes, steps):
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        index[axis] = slice(int(start), None if end >= 1 << 62 else int(end), int(step))
    return x[tuple(index)]


def reshape(x, shape, allowzero=0):
    return x.reshape([x.shape[i] if size == 0 and not allowzero else int(size) for i, size in enumerate(shape)])


def layer_norm(x, weight, bias, axis=-1, epsilon=1e-5):
    wide = x.astype(np.float64)
    off = wide - wide.mean(axis, keepdims=True)
    return off / np.sqrt((off * off).mean(axis, keepdims=True) + epsilon) * weight + bias


def softmax(x, axis=-1):
    powers = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x.astype(np.float64) / math.sqrt(2)))


OPERATORS = {
    'QuantizeLinear': quantize,
    'DequantizeLinear': dequantize,
    'Conv': conv,
    'BatchNormalization': batch_norm,
    'Pad': pad,
    'Slice': cut,
    'Relu': lambda x: np.maximum(x, 0),
    'Clip': lambda x, low, high: np.clip(x, low, high),
    'Add': lambda a, b: a + b,
    'Mul': lambda a, b: a * b,
    'Cast': lambda x, to: x.astype({1: np.float32, 7: np.int64}[to]),
    'Gather': lambda table, rows, axis=0: np.take(table, rows.astype(np.int64), axis),
    'LayerNormalization': layer_norm,
    'Softmax': softmax,
    'Gelu': gelu,
    'MaxPool': lambda x, kernel_shape, strides, pads, ceil_mode=0: windows(x, kernel_shape, strides, pads, -np.inf).max((4, 5)),
    'GlobalAveragePool': lambda x: x.mean((2, 3), keepdims=True),
    'Flatten': lambda x, axis=1: x.reshape(x.shape[0], -1),
    'Reshape': reshape,
    'Transpose': lambda x, perm: x.transpose(perm),
    'Gemm': lambda x, w, b=None, transB=0: add_bias(matmul(x, w.T if transB else w), b),
    'MatMul': matmul,
}


def run(path, x):
    with open(path, 'rb') as file:
        graph = next(value for number, _, value in fields(file.read()) if number == 7)
    values, nodes, inputs, outputs = {}, [], [], []
    for number, _, value in fields(graph):
        if number == 1:
            nodes.append(node(value))
        elif number == 5:
            name, content = tensor(value)
            values[name] = content
        elif number in (11, 12):
            (inputs if number == 11 else outputs).append(next(v for n, _, v in fields(value) if n == 1).decode())
    values[inputs[0]] = x
    for step in nodes:
        operands = [values[name] for name in step['in']]
        values[step['out']] = OPERATORS[step['op']](*operands, **step['attributes'])
        if isinstance(values[step['out']], np.ndarray) and values[step['out']].dtype != np.int64:
            values[step['out']] = values[step['out']].astype(np.float32)
    return values[outputs[0]]


if __name__ == '__main__':
    np.save(sys.argv[3], run(sys.argv[1], np.load(sys.argv[2])))
