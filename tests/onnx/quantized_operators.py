"""Quantized operators of ONNX Runtime against ONNX Runtime itself: quantized_operators.py NUMEMU [MODELS_OF_EACH]

ONNX Runtime is the npm package onnxruntime-node 1.20 (`npm install --ignore-scripts onnxruntime-node@1.20` in a folder, which
NUMEMU_ONNXRUNTIME names). Integers must have the same bits; floats of MatMulNBits may differ by sums in another order.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(0)

runtime = os.environ.get("NUMEMU_ONNXRUNTIME", "")
if not shutil.which("node") or not os.path.isdir(os.path.join(runtime, "node_modules", "onnxruntime-node")):
    print("skipped: NUMEMU_ONNXRUNTIME names no folder with node_modules/onnxruntime-node, or there is no node")
    sys.exit(0)

numemu = sys.argv[1]
count = int(sys.argv[2]) if len(sys.argv) > 2 else 4
folder = tempfile.mkdtemp(prefix="quantized-")
random = np.random.default_rng(11)

# The wire format of protocol buffers, and fields of onnx.proto.
FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, BOOL, UINT4, INT4 = 1, 2, 3, 4, 5, 6, 7, 9, 21, 22
TYPES = {np.dtype(np.float32): FLOAT, np.dtype(np.uint8): UINT8, np.dtype(np.int8): INT8, np.dtype(np.uint16): UINT16,
         np.dtype(np.int16): INT16, np.dtype(np.int32): INT32, np.dtype(np.int64): INT64, np.dtype(bool): BOOL}


def varint(n):
    n &= 2**64 - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, float):
        return text(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, list):
        return text(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)
    return text(1, name) + number(3, value) + number(20, 2)


class Four:
    """Codes of 4 bits, two in a byte."""

    def __init__(self, codes, signed):
        self.codes, self.kind = codes, INT4 if signed else UINT4
        flat = codes.reshape(-1).astype(np.int64) & 15
        flat = np.append(flat, 0) if flat.size % 2 else flat
        self.bytes, self.shape = (flat[0::2] | flat[1::2] << 4).astype(np.uint8).tobytes(), codes.shape


def tensor(name, value):
    kind, data = (value.kind, value.bytes) if isinstance(value, Four) else (TYPES[value.dtype], value.tobytes())
    return b"".join(number(1, n) for n in value.shape) + number(2, kind) + text(8, name) + text(9, data)


def info(name, kind, shape):
    dims = b"".join(text(1, number(1, n)) for n in shape)
    return text(1, name) + text(2, text(1, number(1, kind) + text(2, dims)))


def model(nodes, constants, inputs, outputs, opset=21):
    """nodes: (operator, domain, inputs, outputs, attributes)"""
    graph = b""
    for i, (op, domain, reads, gives, attributes) in enumerate(nodes):
        body = b"".join(text(1, r) for r in reads) + b"".join(text(2, g) for g in gives) + text(3, f"n{i}") + text(4, op)
        body += b"".join(text(5, attribute(k, v)) for k, v in attributes.items()) + text(7, domain)
        graph += text(1, body)
    graph += text(2, "g") + b"".join(text(5, tensor(n, v)) for n, v in constants.items())
    graph += b"".join(text(11, info(*port)) for port in inputs) + b"".join(text(12, info(*port)) for port in outputs)
    return number(1, 10) + text(7, graph) + text(8, text(1, "") + number(2, opset)) + text(8, text(1, "com.microsoft") + number(2, 1))


MS = "com.microsoft"
jobs = []
# Weights of uint8 activations: on x86 without AVX-VNNI, ONNX Runtime adds pairs of their products in 16 bits, which saturate
# beyond (unit intel.emr.vpmaddubsw).
NARROW = 64


def job(name, nodes, constants, x, y_shape, exact=True, opset=21):
    """A model of float32 arrays; the last node gives y."""
    jobs.append({"name": name, "x": {k: v for k, v in x.items()}, "exact": exact})
    own = jobs[-1]
    own["file"] = os.path.join(folder, f"m{len(jobs)}.onnx")
    inputs = [(k, FLOAT, v.shape) for k, v in x.items()]
    with open(own["file"], "wb") as file:
        file.write(model(nodes, constants, inputs, [("y", FLOAT, y_shape)], opset))
    for k, v in x.items():
        np.save(os.path.join(folder, f"m{len(jobs)}.{k}.npy"), v)
        v.tofile(os.path.join(folder, f"m{len(jobs)}.{k}.raw"))


def scale(low=0.004, high=0.06):
    return np.array(random.uniform(low, high), np.float32)


def zero(kind):
    return np.array(random.integers(*((90, 160) if kind == np.uint8 else (-30, 30))), kind)


def quantizer(name, kind, constants, source):
    """x to integers; gives the node and the names of scale and zero point."""
    constants[name + "_s"], constants[name + "_z"] = scale(), zero(kind)
    return ("QuantizeLinear", "", [source, name + "_s", name + "_z"], [name], {}), [name, name + "_s", name + "_z"]


def result(constants, kind, low=0.01, high=0.1):
    constants["y_s"], constants["y_z"] = scale(low, high), zero(kind)
    return ["y_s", "y_z"]


def back():
    return ("DequantizeLinear", "", ["yq", "y_s", "y_z"], ["y"], {})


def floats(*shape, spread=2.0):
    return (random.standard_normal(shape) * spread).astype(np.float32)


for round_ in range(count):
    kind = (np.uint8, np.int8)[round_ % 2]
    # Two operands, of one shape and broadcast.
    for op in ("QLinearAdd", "QLinearMul"):
        for other in ((4, 37, 19), (19,), (4, 37, 1)):
            c = {}
            a, names_a = quantizer("a", kind, c, "x")
            b, names_b = quantizer("b", kind, c, "w")
            job(f"{op} {kind.__name__} {other}", [a, b, (op, MS, names_a + names_b + result(c, kind), ["yq"], {}), back()], c,
                {"x": floats(4, 37, 19), "w": floats(*other)}, (4, 37, 19))
    for op, attributes in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.125}), ("QLinearSoftmax", {"axis": 2, "opset": 13})):
        c = {}
        a, names = quantizer("a", kind, c, "x")
        ends = result(c, kind, 0.004, 0.02)
        if op == "QLinearSoftmax":
            c["y_s"], c["y_z"] = np.array(1 / 256, np.float32), np.array(0 if kind == np.uint8 else -128, kind)
        job(f"{op} {kind.__name__}", [a, (op, MS, names + ends, ["yq"], attributes), back()], c, {"x": floats(4, 9, 33)}, (4, 9, 33))
    for op, attributes, shape in (("QLinearGlobalAveragePool", {"channels_last": 0}, (3, 5, 1, 1)),
                                  ("QLinearAveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}, (3, 5, 4, 3)),
                                  ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (3, 5, 8, 7))):
        c = {}
        a, names = quantizer("a", kind, c, "x")
        job(f"{op} {kind.__name__}", [a, (op, MS, names + result(c, kind), ["yq"], attributes), back()], c, {"x": floats(3, 5, 8, 7)}, shape)
    c = {}
    a, names_a = quantizer("a", kind, c, "x")
    b, names_b = quantizer("b", kind, c, "w")
    job(f"QLinearConcat {kind.__name__}", [a, b, ("QLinearConcat", MS, result(c, kind) + names_a + names_b, ["yq"], {"axis": 1}), back()], c,
        {"x": floats(4, 3, 8), "w": floats(4, 5, 8)}, (4, 8, 8))
    # QuantizeLinear and DequantizeLinear of com.microsoft, 16 and 4 bits too.
    for z in (np.array(9, np.uint16) if round_ % 2 else np.array(-9, np.int16), Four(np.array(3), False), Four(np.array(-2), True), zero(kind)):
        c = {"s": scale(0.05, 0.4), "z": z}
        job(f"com.microsoft QuantizeLinear {getattr(z, 'dtype', getattr(z, 'kind', None))}",
            [("QuantizeLinear", MS, ["x", "s", "z"], ["q"], {}), ("DequantizeLinear", MS, ["q", "s", "z"], ["y"], {})], c,
            {"x": floats(5, 40, spread=3.0)}, (5, 40))
    # The same of ONNX's own domain, along an axis, and in blocks with scales of both signs.
    codes, block = random.integers(-8, 8, (24, 32)), (8, 16, 32)[round_ % 3]
    for signed in (True, False):
        for zeros in (True, False):
            c = {"q": Four(codes if signed else codes & 15, signed), "s": floats(24, 32 // block, spread=0.1)}
            if zeros:
                c["z"] = Four(random.integers(-8, 8, (24, 32 // block)) if signed else random.integers(0, 16, (24, 32 // block)), signed)
            job(f"DequantizeLinear in blocks of {block} {'int4' if signed else 'uint4'}{' with zero points' if zeros else ''}",
                [("DequantizeLinear", "", ["q", "s"] + (["z"] if zeros else []), ["w"], {"axis": 1, "block_size": block}), ("Mul", "", ["x", "w"], ["y"], {})],
                c, {"x": floats(24, 32)}, (24, 32))
    c = {"q": random.integers(-128, 128, (24, 32)).astype(np.int8), "s": floats(24, spread=0.1), "z": random.integers(-9, 9, 24).astype(np.int8)}
    job("DequantizeLinear along an axis, scales of both signs", [("DequantizeLinear", "", ["q", "s", "z"], ["w"], {"axis": 0}), ("Mul", "", ["x", "w"], ["y"], {})],
        c, {"x": floats(24, 32)}, (24, 32))
    # Products with codes of 4 bits.
    for zeros in (None, "codes", "floats"):
        for size, depth in ((16, 64), (32, 96), (128, 160), (32, 80)):
            blocks, outputs = -(-depth // size), 24
            c = {"B": random.integers(0, 256, (outputs, blocks, size // 2)).astype(np.uint8), "s": np.abs(floats(outputs * blocks, spread=0.05)) + np.float32(0.01)}
            reads = ["x", "B", "s"]
            if zeros == "codes":
                c["z"] = random.integers(0, 256, outputs * -(-blocks // 2)).astype(np.uint8)
            elif zeros == "floats":
                c["z"] = random.uniform(6, 9, outputs * blocks).astype(np.float32)
            attributes = {"K": depth, "N": outputs, "bits": 4, "block_size": size, "accuracy_level": 0}
            job(f"MatMulNBits {depth} in blocks of {size}, zero points: {zeros}",
                [("MatMulNBits", MS, reads + (["z"] if zeros else []), ["y"], attributes)], c, {"x": floats(6, depth)}, (6, outputs), exact=False)
    # Act order: inputs of a group lie anywhere. ONNX Runtime 1.20 takes 8 for every zero point of such nodes, whatever the file has.
    c = {"B": random.integers(0, 256, (24, 3, 16)).astype(np.uint8), "s": np.abs(floats(24 * 3, spread=0.05)) + np.float32(0.01),
         "g": random.permutation(96).astype(np.int32) // 32}
    job("MatMulNBits with g_idx", [("MatMulNBits", MS, ["x", "B", "s", "", "g"], ["y"], {"K": 96, "N": 24, "bits": 4, "block_size": 32})], c,
        {"x": floats(6, 96)}, (6, 24), exact=False)
    c = {"c": (random.integers(0, 2, (4, 1, 8)) > 0)}
    a, names_a = quantizer("a", kind, c, "x")
    b, names_b = quantizer("b", kind, c, "w")
    job(f"QLinearWhere {kind.__name__}", [a, b, ("QLinearWhere", MS, ["c"] + names_a + names_b + result(c, kind), ["yq"], {}), back()], c,
        {"x": floats(4, 5, 8), "w": floats(4, 5, 8)}, (4, 5, 8))
    c = {"B": random.integers(-NARROW, NARROW + 1, (32, 16)).astype(np.int8), "b_s": scale(), "b_z": np.array(3, np.int8), "bias": floats(16)}
    job("DynamicQuantizeMatMul", [("DynamicQuantizeMatMul", MS, ["x", "B", "b_s", "b_z", "bias"], ["y"], {})], c, {"x": floats(1, 32)}, (1, 16), exact=False)
    a, names_a = quantizer("a", np.uint8, c, "x")
    job("MatMulIntegerToFloat", [a, ("MatMulIntegerToFloat", MS, ["a", "B", "a_s", "b_s", "a_z", "b_z", "bias"], ["y"], {})], c, {"x": floats(8, 32)}, (8, 16), exact=False)
    c = {}
    a, names_a = quantizer("a", kind, c, "x")
    c["w"], c["w_s"], c["w_z"] = random.integers(-99, 100, (32, 16)).astype(np.int8 if kind == np.int8 else np.uint8), scale(), zero(np.int8 if kind == np.int8 else np.uint8)
    job(f"QLinearMatMul {kind.__name__}", [a, ("QLinearMatMul", "", names_a + ["w", "w_s", "w_z"] + result(c, kind, 0.05, 0.5), ["yq"], {}), back()], c,
        {"x": floats(8, 32)}, (8, 16))
    job(f"QGemm {kind.__name__}", [a, ("QGemm", MS, names_a + ["w", "w_s", "w_z", "", "y_s", "y_z"], ["yq"], {}), back()], c, {"x": floats(8, 32)}, (8, 16))
    c = {"w": random.integers(-NARROW, NARROW + 1, (32, 16)).astype(np.int8), "w_s": scale(), "w_z": np.array(0, np.int8)}
    a, names_a = quantizer("a", np.uint8, c, "x")
    job("QLinearMatMul uint8 x int8", [a, ("QLinearMatMul", "", names_a + ["w", "w_s", "w_z"] + result(c, np.uint8, 0.05, 0.5), ["yq"], {}), back()], c,
        {"x": floats(8, 32)}, (8, 16))
    for groups in (1, 2, 6):
        c = {"w": random.integers(-NARROW, NARROW + 1, (6, 6 // groups, 3, 3)).astype(np.int8), "w_s": random.uniform(0.002, 0.06, 6).astype(np.float32),
             "w_z": np.zeros(6, np.int8), "bias": random.integers(-2000, 2000, 6).astype(np.int32)}
        a, names_a = quantizer("a", kind, c, "x")
        job(f"QLinearConv {kind.__name__} x int8, {groups} groups", [a, ("QLinearConv", "", names_a + ["w", "w_s", "w_z"] + result(c, kind, 0.02, 0.2) + ["bias"], ["yq"],
            {"group": groups, "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}), back()], c, {"x": floats(2, 6, 7, 7)}, (2, 6, 7, 7))
    # The epilogue alone: gemm --requantize float on the same codes.
    c = {"w": random.integers(-NARROW, NARROW + 1, (96, 16)).astype(np.int8), "w_s": random.uniform(0.002, 0.06, 16).astype(np.float32), "w_z": np.zeros(16, np.int8),
         "bias": random.integers(-20000, 20000, 16).astype(np.int32)}
    a, names_a = quantizer("a", np.uint8, c, "x")
    job("gemm --requantize float", [a, ("QGemm", MS, names_a + ["w", "w_s", "w_z", "bias"] + result(c, np.uint8, 0.05, 0.5), ["yq"], {}), back()], c,
        {"x": floats(64, 96)}, (64, 16))
    jobs[-1]["codes"] = c

script = """
const ort = require('onnxruntime-node'), fs = require('fs');
(async () => {
  for (const job of JSON.parse(fs.readFileSync(process.argv[2]))) {
    try {
      const session = await ort.InferenceSession.create(job.file, {graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, logSeverityLevel: 3});
      const feeds = {};
      for (const [name, shape] of Object.entries(job.shapes)) {
        const bytes = fs.readFileSync(job.file.replace('.onnx', '.' + name + '.raw'));
        feeds[name] = new ort.Tensor('float32', new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4), shape);
      }
      const y = (await session.run(feeds)).y;
      fs.writeFileSync(job.file.replace('.onnx', '.ort'), Buffer.from(y.data.buffer, y.data.byteOffset, y.data.byteLength));
    } catch (error) {
      fs.writeFileSync(job.file.replace('.onnx', '.error'), String(error));
    }
  }
})();
"""
with open(os.path.join(folder, "run.js"), "w") as file:
    file.write(script)
with open(os.path.join(folder, "jobs.json"), "w") as file:
    json.dump([{"file": j["file"], "shapes": {k: list(v.shape) for k, v in j["x"].items()}} for j in jobs], file)
subprocess.run(["node", os.path.join(folder, "run.js"), os.path.join(folder, "jobs.json")], check=True,
               env={**os.environ, "NODE_PATH": os.path.join(runtime, "node_modules")})



def requantized(job, stem):
    """The command and what its codes mean; the zero point of A is a part of the bias."""
    c, x = job["codes"], job["x"]["x"]
    a = np.clip(np.rint(x / c["a_s"]) + c["a_z"], 0, 255).astype(np.uint8)
    bias = (c["bias"].astype(np.int64) - int(c["a_z"]) * c["w"].astype(np.int64).sum(0)).astype(np.int32)
    for name, value in (("a", a), ("w", c["w"]), ("bias", bias), ("factor", c["a_s"] * c["w_s"] / c["y_s"])):
        np.save(f"{stem}.{name}.npy", value)
    command = [numemu, "gemm", "--quiet", "--unit", "intel.emr.vpdpbusd", "--a", stem + ".a.npy", "--b", stem + ".w.npy", "--bias", stem + ".bias.npy", "--requantize",
               "float", "--factor", stem + ".factor.npy", "--zero-point", str(c["y_z"]), "--format-d", c["y_z"].dtype.name, "--out", stem + ".y.npy"]
    return command, lambda codes: (codes.view(c["y_z"].dtype).astype(np.float32) - np.float32(c["y_z"])) * c["y_s"]


failures, compared, refused = 0, {}, {}
for j in jobs:
    stem = j["file"].removesuffix(".onnx")
    operator = j["name"]
    if os.path.exists(stem + ".error"):
        with open(stem + ".error") as file:
            refused.setdefault(file.read()[:160], []).append(operator)
        continue
    command = [numemu, "infer", "--quiet", "--model", j["file"], "--out", stem + ".y.npy"]
    for name in j["x"]:
        command += ["--in", f"{name}={stem}.{name}.npy"]
    meaning = None
    if "codes" in j:
        command, meaning = requantized(j, stem)
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        failures += 1
        print(f"{operator}: {run.stderr.strip()[:300]}")
        continue
    y = np.load(stem + ".y.npy")
    if meaning:
        y = meaning(y)
    expected = np.fromfile(stem + ".ort", np.float32).reshape(y.shape)
    tolerance = 0 if j["exact"] else 2e-6 * np.abs(expected).max() * 8  # float32 sums of up to 160 terms
    wrong = int((np.abs(y - expected) > tolerance).sum())
    figures = compared.setdefault(operator if meaning else operator.split(" ")[0], [0, 0, 0])
    for i, more in enumerate((1, y.size, wrong)):
        figures[i] += more
    if wrong:
        failures += 1
        print(f"{operator}: {wrong} of {y.size} differ, at most by {np.abs(y - expected).max()}")
for operator, (models, elements, wrong) in compared.items():
    print(f"{operator}: {models} models, {elements} elements, {wrong} differ")
for error, names in refused.items():
    print(f"ONNX Runtime refuses {len(names)}: {names[0]}: {error}")
print("failures:", failures)
if not os.environ.get("KEEP"):
    shutil.rmtree(folder)
sys.exit(1 if failures else 0)
