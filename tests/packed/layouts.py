"""Quantizes a matrix and stores it as other programs do, written from the formats' public descriptions (named at each function).

Every function takes a float32 array [outputs, inputs] and gives the stored tensors, by name, and the numbers that they stand for: computed from
codes and scales in float64, apart from how they are packed, and rounded once to float32.
"""
import json
import struct

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


class Raw:
    """Bytes with a dtype that numpy lacks."""

    def __init__(self, dtype, data):
        self.dtype, self.data = dtype, np.ascontiguousarray(data)


def nearest(values, x):
    return np.abs(x[..., None] - values).argmin(-1)


def e4m3_values():
    """OCP 8-bit floating point 1.0: 4 exponent bits, bias 7; NaN where all other bits are ones."""
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    size = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    size[(code & 127) == 127] = np.nan
    return np.where(code >= 128, -size, size)


E4M3 = e4m3_values()


def e4m3_codes(x):
    known = np.where(np.isnan(E4M3), np.inf, E4M3)
    return nearest(known, np.asarray(x, np.float64)).astype(np.uint8)


def bit_stream(codes, bits):
    """Codes along axis 0 as one little-endian stream of bits in uint32, for each column."""
    rows, columns = codes.shape
    words = np.zeros((rows * bits // 32, columns), np.uint64)
    for i in range(rows):
        word, shift = i * bits // 32, i * bits % 32
        value = codes[i].astype(np.uint64) << np.uint64(shift)
        words[word] |= value & np.uint64(0xFFFFFFFF)
        if shift + bits > 32:
            words[word + 1] |= value >> np.uint64(32)
    return words.astype(np.uint32)


def int_groups(w, bits, group_of, groups):
    """Codes, zero points and float16 scales of groups of inputs: [outputs, inputs], [groups, outputs] twice."""
    largest = 2**bits - 1
    scales = np.zeros((groups, w.shape[0]), np.float16)
    zeros = np.zeros((groups, w.shape[0]), np.int64)
    codes = np.zeros(w.shape, np.int64)
    for g in range(groups):
        own = np.flatnonzero(group_of == g)
        low, high = np.minimum(w[:, own].min(1), 0), np.maximum(w[:, own].max(1), 0)
        scale = np.maximum((high - low) / largest, 1e-4).astype(np.float16)
        zero = np.clip(np.rint(-low / scale), 1, largest).astype(np.int64)
        codes[:, own] = np.clip(np.rint(w[:, own] / scale[:, None].astype(np.float32)) + zero[:, None], 0, largest)
        scales[g], zeros[g] = scale, zero
    values = (codes - zeros[group_of].T) * scales[group_of].T.astype(np.float64)
    return codes, zeros, scales, values.astype(np.float32)


def gptq(name, w, bits=4, group=128, order=True, version=1):
    """AutoGPTQ (qlinear_cuda.py, pack()): inputs packed in the rows of qweight, outputs in those of qzeros; version 1 stores zero points less one."""
    inputs = w.shape[1]
    groups = -(-inputs // group)
    group_of = np.arange(inputs) // group
    if order:  # act-order: any input may be of any group
        group_of = np.random.default_rng(5).permutation(group_of)
    codes, zeros, scales, values = int_groups(w, bits, group_of, groups)
    stored = zeros - (1 if version == 1 else 0)
    tensors = {
        name + ".qweight": bit_stream(codes.T, bits).view(np.int32),
        name + ".qzeros": bit_stream(stored.T, bits).T.copy().view(np.int32),
        name + ".scales": scales,
    }
    if order:
        tensors[name + ".g_idx"] = group_of.astype(np.int32)
    return tensors, values


def awq(name, w, group=128):
    """AutoAWQ (gemm.py, from_linear()): outputs packed in rows, eight to a word in the order 0 2 4 6 1 3 5 7."""
    groups = w.shape[1] // group
    codes, zeros, scales, values = int_groups(w, 4, np.arange(w.shape[1]) // group, groups)

    def pack(rows):
        eights = rows.reshape(rows.shape[0], -1, 8)
        word = np.zeros(eights.shape[:2], np.uint32)
        for place, column in enumerate(AWQ_ORDER):
            word |= eights[..., column].astype(np.uint32) << np.uint32(4 * place)
        return word.view(np.int32)

    return {name + ".qweight": pack(codes.T), name + ".qzeros": pack(zeros), name + ".scales": scales}, values


def pack_quantized(name, w, bits=4, group=32, zero_points=True):
    """compressed-tensors (pack_quantized.py): signed codes plus half of the range, inputs packed in the rows of weight_packed."""
    groups = w.shape[1] // group
    codes, zeros, scales, values = int_groups(w, bits, np.arange(w.shape[1]) // group, groups)
    per = 32 // bits

    def padded(rows):
        return np.pad(rows, ((0, -rows.shape[0] % per), (0, 0)))

    tensors = {
        name + ".weight_packed": bit_stream(padded(codes.T), bits).T.copy().view(np.int32),
        name + ".weight_scale": scales.T.copy(),
        name + ".weight_shape": np.array(w.shape, np.int64),
    }
    if zero_points:
        tensors[name + ".weight_zero_point"] = bit_stream(padded(zeros.T), bits).view(np.int32)
    else:
        group_of = np.arange(w.shape[1]) // group
        values = ((codes - 2 ** (bits - 1)) * scales[group_of].T.astype(np.float64)).astype(np.float32)
    return tensors, values


def nibbles(codes):
    """Two codes in a byte, the first in the low bits."""
    return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)


def nvfp4(name, w, packed=False):
    """NVIDIA ModelOpt (nvfp4_tensor.py): E4M3 scales of 16 elements and a float32 factor; compressed-tensors (nvfp4_quantized.py) stores its inverse."""
    blocks = w.astype(np.float64).reshape(w.shape[0], -1, 16)
    factor = np.float32(np.abs(w).max() / (6 * 448))
    scale_codes = e4m3_codes(np.abs(blocks).max(-1) / 6 / factor)
    scales = E4M3[scale_codes]
    inverse = np.float32(1 / factor)
    whole = scales / inverse if packed else scales * np.float64(factor)
    codes = nearest(E2M1, blocks / np.where(whole == 0, 1, whole)[..., None])
    exact = E2M1[codes] * scales[..., None]
    values = exact / np.float64(inverse) if packed else exact * np.float64(factor)
    tensors = {
        name + (".weight_packed" if packed else ".weight"): nibbles(codes.reshape(w.shape)),
        name + ".weight_scale": Raw("F8_E4M3", scale_codes),
        name + (".weight_global_scale" if packed else ".weight_scale_2"): np.array([inverse if packed else factor], np.float32),
        name + (".input_global_scale" if packed else ".input_scale"): np.array([0.25], np.float32),
    }
    return tensors, values.reshape(w.shape).astype(np.float32)


def mx_blocks(w):
    """OCP MX 1.0: a power of two for 32 elements, its exponent plus 127 in a byte."""
    blocks = w.astype(np.float64).reshape(w.shape[0], -1, 32)
    largest = np.abs(blocks).max(-1)
    exponent = np.clip(np.floor(np.log2(np.where(largest == 0, 1, largest))) - 2, -127, 127)
    return blocks, (exponent + 127).astype(np.uint8), 2.0**exponent


def mxfp4(name, w, gpt_oss=False):
    """Codes in bytes, as above; gpt-oss (weights.py) has an axis of 16 bytes for the block."""
    blocks, stored, scales = mx_blocks(w)
    codes = nearest(E2M1, blocks / scales[..., None])
    values = (E2M1[codes] * scales[..., None]).reshape(w.shape).astype(np.float32)
    if gpt_oss:
        return {name + ".weight_blocks": nibbles(codes), name + ".weight_scales": stored}, values
    return {name + ".weight": nibbles(codes.reshape(w.shape)), name + ".weight_scale": stored}, values


def mxfp8(name, w):
    blocks, stored, scales = mx_blocks(w)
    codes = e4m3_codes(blocks / scales[..., None] * 32)
    values = (E4M3[codes] * (scales / 32)[..., None]).reshape(w.shape).astype(np.float32)
    return {name + ".weight": Raw("F8_E4M3", codes.reshape(w.shape)), name + ".weight_scale": Raw("F8_E8M0", stored - 5)}, values


def fp8(name, w, tile=128):
    """DeepSeek-V3 (fp8_cast_bf16.py): E4M3 times a float32 for tiles of 128 x 128."""
    up, across = -(-w.shape[0] // tile), -(-w.shape[1] // tile)
    scales, values = np.zeros((up, across), np.float32), np.zeros(w.shape, np.float32)
    codes = np.zeros(w.shape, np.uint8)
    for i in range(up):
        for j in range(across):
            at = np.s_[i * tile : (i + 1) * tile, j * tile : (j + 1) * tile]
            scales[i, j] = np.abs(w[at]).max() / 448
            codes[at] = e4m3_codes(w[at] / scales[i, j])
            values[at] = E4M3[codes[at]] * np.float64(scales[i, j])
    return {name + ".weight": Raw("F8_E4M3", codes), name + ".weight_scale_inv": scales}, values


def write_safetensors(path, tensors, metadata=None):
    """github.com/huggingface/safetensors, README: a length, a JSON header, the data without holes."""
    names = {"float16": "F16", "float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "uint8": "U8", "int8": "I8"}
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, value in tensors.items():
        dtype, array = (value.dtype, value.data) if isinstance(value, Raw) else (names[str(value.dtype)], np.ascontiguousarray(value))
        own = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# GGUF: docs/gguf.md of github.com/ggml-org/ggml; blocks: ggml-common.h and ggml-quants.c of github.com/ggml-org/llama.cpp.


def halves(q):
    """32 codes of 4 bits in 16 bytes: element i in the low bits of byte i, element i + 16 in its high bits."""
    return (q[..., :16] | q[..., 16:] << 4).astype(np.uint8)


def joined(*parts):
    return np.concatenate([np.ascontiguousarray(p).view(np.uint8).reshape(p.shape[0], -1) for p in parts], 1)


def high_bits(q):
    """The fifth bits of 32 codes as a uint32."""
    return ((q >> 4 & 1).astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1).astype(np.uint32)[:, None]


def ggml_legacy(w, bits, minimum):
    """Q4_0, Q4_1, Q5_0, Q5_1: d (q - 2^(bits-1)), or d q + m."""
    x = w.astype(np.float64).reshape(-1, 32)
    if minimum:
        m = x.min(1).astype(np.float16)
        d = ((x.max(1) - m) / (2**bits - 1)).astype(np.float16)
    else:
        extreme = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)[:, 0]
        d = (extreme / -(2.0 ** (bits - 1))).astype(np.float16)
        m = np.zeros_like(d)
    d64, less = d.astype(np.float64)[:, None], 0 if minimum else 2 ** (bits - 1)
    q = np.clip(np.rint((x - m.astype(np.float64)[:, None]) / np.where(d64 == 0, 1, d64)) + less, 0, 2**bits - 1).astype(np.int64)
    values = (q - less) * d64 + m.astype(np.float64)[:, None]
    parts = [d[:, None]] + ([m[:, None]] if minimum else []) + ([high_bits(q)] if bits == 5 else []) + [halves(q & 15)]
    return joined(*parts), values.reshape(w.shape).astype(np.float32)


def q8_0(w):
    x = w.astype(np.float64).reshape(-1, 32)
    d = (np.abs(x).max(1) / 127).astype(np.float16)
    d64 = d.astype(np.float64)[:, None]
    q = np.clip(np.rint(x / np.where(d64 == 0, 1, d64)), -127, 127).astype(np.int8)
    return joined(d[:, None], q), (q * d64).reshape(w.shape).astype(np.float32)


def k_scales(scale, minimum):
    """Eight pairs of 6 bits in 12 bytes."""
    out = np.zeros((scale.shape[0], 12), np.uint8)
    out[:, 0:4] = scale[:, :4] | (scale[:, 4:] >> 4) << 6
    out[:, 4:8] = minimum[:, :4] | (minimum[:, 4:] >> 4) << 6
    out[:, 8:12] = (scale[:, 4:] & 15) | (minimum[:, 4:] & 15) << 4
    return out


def q_k(w, bits):
    """Q4_K and Q5_K: d s q - dmin t, s and t of 6 bits for 32 elements, d and dmin in float16 for 256."""
    x = w.astype(np.float64).reshape(-1, 8, 32)
    least = np.maximum(0, -x.min(2))
    step = (x.max(2) + least) / (2**bits - 1)
    d, dmin = (step.max(1) / 63).astype(np.float16), (least.max(1) / 63).astype(np.float16)
    d64, dmin64 = (np.where(v == 0, 1e-4, v.astype(np.float64))[:, None] for v in (d, dmin))
    s, t = (np.clip(np.rint(v), 0, 63).astype(np.int64) for v in (step / d64, least / dmin64))
    ds, dt = (d.astype(np.float64)[:, None] * s)[..., None], (dmin.astype(np.float64)[:, None] * t)[..., None]
    q = np.clip(np.rint((x + dt) / np.where(ds == 0, 1, ds)), 0, 2**bits - 1).astype(np.int64)
    low = q & 15
    codes = (low[:, 0::2] | low[:, 1::2] << 4).astype(np.uint8).reshape(-1, 128)  # 32 bytes for two sub-blocks
    high = ((q >> 4) << np.arange(8)[None, :, None]).sum(1).astype(np.uint8)
    parts = [d[:, None], dmin[:, None], k_scales(s.astype(np.uint8), t.astype(np.uint8))] + ([high] if bits == 5 else []) + [codes]
    return joined(*parts), (ds * q - dt).reshape(w.shape).astype(np.float32)


def two_bits(q):
    """Codes of 2 bits: of each 128 elements four parts of 32 share bytes."""
    parts = q.reshape(-1, 2, 4, 32)
    return (parts << np.array([0, 2, 4, 6])[None, None, :, None]).sum(2).astype(np.uint8).reshape(-1, 64)


def q2_k(w):
    """d s q - dmin t, s and t of 4 bits for 16 elements in a byte."""
    x = w.astype(np.float64).reshape(-1, 16, 16)
    least = np.maximum(0, -x.min(2))
    step = (x.max(2) + least) / 3
    d, dmin = (step.max(1) / 15).astype(np.float16), (least.max(1) / 15).astype(np.float16)
    d64, dmin64 = (np.where(v == 0, 1e-4, v.astype(np.float64))[:, None] for v in (d, dmin))
    s, t = (np.clip(np.rint(v), 0, 15).astype(np.int64) for v in (step / d64, least / dmin64))
    ds, dt = (d.astype(np.float64)[:, None] * s)[..., None], (dmin.astype(np.float64)[:, None] * t)[..., None]
    q = np.clip(np.rint((x + dt) / np.where(ds == 0, 1, ds)), 0, 3).astype(np.int64)
    return joined((s | t << 4).astype(np.uint8), two_bits(q), d[:, None], dmin[:, None]), (ds * q - dt).reshape(w.shape).astype(np.float32)


def q3_k(w):
    """d (s - 32) (q - 4), s of 6 bits for 16 elements; the third bits apart."""
    x = w.astype(np.float64).reshape(-1, 16, 16)
    extreme = np.take_along_axis(x, np.abs(x).argmax(2)[..., None], 2)[..., 0] / -4
    d = (np.abs(extreme).max(1) / 31).astype(np.float16)
    d64 = np.where(d == 0, 1e-6, d.astype(np.float64))[:, None]
    s = np.clip(np.rint(extreme / d64), -32, 31).astype(np.int64)
    ds = (d.astype(np.float64)[:, None] * s)[..., None]
    q = np.clip(np.rint(x / np.where(ds == 0, 1, ds)) + 4, 0, 7).astype(np.int64)
    bits = (q >> 2).reshape(-1, 8, 32)
    third = (bits << np.arange(8)[None, :, None]).sum(1).astype(np.uint8)
    stored = s + 32
    low, high = stored & 15, stored >> 4
    scales = np.zeros((s.shape[0], 12), np.int64)
    scales[:, :8] = low[:, :8] | low[:, 8:] << 4
    for j in range(16):
        scales[:, 8 + j % 4] |= high[:, j] << 2 * (j // 4)
    return joined(third, two_bits(q & 3), scales.astype(np.uint8), d[:, None]), (ds * (q - 4)).reshape(w.shape).astype(np.float32)


def q6_k(w):
    """d s (q - 32), s int8 for 16 elements; of each 128 elements four parts of 32 share bytes."""
    x = w.astype(np.float64).reshape(-1, 16, 16)
    step = np.abs(x).max(2) / 31
    d = (step.max(1) / 127).astype(np.float16)
    d64 = np.where(d == 0, 1e-6, d.astype(np.float64))[:, None]
    s = np.clip(np.rint(step / d64), -128, 127).astype(np.int8)
    ds = (d.astype(np.float64)[:, None] * s)[..., None]
    q = np.clip(np.rint(x / np.where(ds == 0, 1, ds)) + 32, 0, 63).astype(np.int64)
    values = ds * (q - 32)
    parts = q.reshape(-1, 2, 4, 32)
    low = parts & 15
    ql = np.stack([low[:, :, 0] | low[:, :, 2] << 4, low[:, :, 1] | low[:, :, 3] << 4], 2).astype(np.uint8).reshape(-1, 128)
    qh = ((parts >> 4) << np.array([0, 2, 4, 6])[None, None, :, None]).sum(2).astype(np.uint8).reshape(-1, 64)
    return joined(ql, qh, s, d[:, None]), values.reshape(w.shape).astype(np.float32)


def ggml_mxfp4(w):
    blocks, stored, scales = mx_blocks(w)
    codes = nearest(E2M1, blocks / scales[..., None]).reshape(-1, 32)
    values = (E2M1[codes] * scales.reshape(-1, 1)).reshape(w.shape).astype(np.float32)
    return joined(stored.reshape(-1, 1), halves(codes)), values


def plain16(w):
    return w.astype(np.float16), w.astype(np.float16).astype(np.float32)


def brain16(w):
    bits = np.ascontiguousarray(w, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return rounded.astype(np.uint16), (rounded.astype(np.uint32) << 16).view(np.float32)


# The type's number in ggml.h, and what quantizes.
GGML = {
    "f32": (0, lambda w: (w, w)),
    "f16": (1, plain16),
    "q4_0": (2, lambda w: ggml_legacy(w, 4, False)),
    "q4_1": (3, lambda w: ggml_legacy(w, 4, True)),
    "q5_0": (6, lambda w: ggml_legacy(w, 5, False)),
    "q5_1": (7, lambda w: ggml_legacy(w, 5, True)),
    "q8_0": (8, q8_0),
    "q2_k": (10, q2_k),
    "q3_k": (11, q3_k),
    "q4_k": (12, lambda w: q_k(w, 4)),
    "q5_k": (13, lambda w: q_k(w, 5)),
    "q6_k": (14, q6_k),
    "bf16": (30, brain16),
    "ggml-mxfp4": (39, ggml_mxfp4),
}


def write_gguf(path, tensors, metadata, alignment=32):
    """`tensors`: name to (type, shape, bytes)."""

    def text(s):
        return struct.pack("<Q", len(s.encode())) + s.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata) + 1)
    for key, value in metadata.items():
        if isinstance(value, list):  # of strings
            out += text(key) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(text(v) for v in value)
        else:
            out += text(key) + struct.pack("<I", 8) + text(value)
    out += text("general.alignment") + struct.pack("<II", 4, alignment)
    data = b""
    for name, (kind, shape, stored) in tensors.items():
        data += b"\0" * (-len(data) % alignment)
        out += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        out += struct.pack("<IQ", kind, len(data))
        data += np.ascontiguousarray(stored).tobytes()
    with open(path, "wb") as file:
        file.write(out + b"\0" * (-len(out) % alignment) + data)
