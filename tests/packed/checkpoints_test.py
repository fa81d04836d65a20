"""Checkpoints as other programs write them (layouts.py), dequantized and evaluated: checkpoints_test.py NUMEMU DATA_FOLDER SIZES"""
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(0)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layouts  # noqa: E402

numemu, data, sizes = sys.argv[1:4]
folder = tempfile.mkdtemp(prefix="packed-")
failures = 0


def run(*arguments):
    return subprocess.run([numemu, *arguments], cwd=folder, capture_output=True, text=True)


def check(file, name, layout, values, told=""):
    global failures
    result = run("dequantize", "--in", file, "--tensor", name, "--out", "y.npy", "--json", *(["--packed", told] if told else []))
    if result.returncode != 0:
        print(f"{file} {name}: {result.stderr}")
        failures += 1
        return
    y, said = np.load(os.path.join(folder, "y.npy")), json.loads(result.stdout)
    same = y.shape == values.shape and (y.view(np.uint32) == values.view(np.uint32)).all()
    # Zeros of either sign are one number: a script that subtracts first has no -0.
    same = same or (y.shape == values.shape and (y == values).all())
    if not same or said["packed"] != layout:
        failures += 1
        print(f"{file} {name}: {said}: expected {layout} {values.shape}, found {y.shape}, {np.sum(y != values) if y.shape == values.shape else '-'} differ")


def read_weights(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        start = file.read()
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            out[name] = np.frombuffer(start[begin:end], np.float16).reshape(entry["shape"]).astype(np.float32)
    return out


random = np.random.default_rng(1)
cases = 0
# Every layout on matrices of several sizes; the last has groups, tiles and words that end inside.
for outputs, inputs in ((32, 256), (64, 128), (96, 512), (160, 768))[: int(sizes)]:
    w = (random.standard_normal((outputs, inputs)) * 0.1).astype(np.float32)
    w[3] = 0
    for make, layout, told in (
        (lambda n: layouts.gptq(n, w), "gptq", ""),
        (lambda n: layouts.gptq(n, w, bits=3, group=32), "gptq", ""),
        (lambda n: layouts.gptq(n, w, bits=8, group=64, order=False), "gptq", ""),
        (lambda n: layouts.gptq(n, w, bits=2, group=16, version=2), "gptq-v2", "gptq-v2"),
        (lambda n: layouts.awq(n, w, group=64), "awq", ""),
        (lambda n: layouts.pack_quantized(n, w), "pack-quantized", ""),
        (lambda n: layouts.pack_quantized(n, w, bits=8, zero_points=False), "pack-quantized", ""),
        (lambda n: layouts.nvfp4(n, w), "nvfp4", ""),
        (lambda n: layouts.nvfp4(n, w, packed=True), "nvfp4-packed", ""),
        (lambda n: layouts.mxfp4(n, w), "mxfp4", ""),
        (lambda n: layouts.mxfp4(n, w, gpt_oss=True), "mxfp4-blocks", ""),
        (lambda n: layouts.mxfp8(n, w), "scaled", ""),
        (lambda n: layouts.fp8(n, w), "scaled", ""),
    ):
        tensors, values = make("model.layers.0.mlp.down_proj")
        layouts.write_safetensors(os.path.join(folder, "one.safetensors"), tensors)
        check("one.safetensors", "model.layers.0.mlp.down_proj.weight", layout, values, told)
        check("one.safetensors", "model.layers.0.mlp.down_proj", layout, values, told)
        cases += 1
    stored, wanted = {}, {}
    for layout, (kind, quantize) in layouts.GGML.items():
        if layout.endswith("_k") and inputs % 256 != 0:
            continue  # no whole blocks: programs choose another type
        blocks, values = quantize(w)
        stored[f"blk.0.{layout}.weight"] = (kind, w.shape, blocks)
        wanted[f"blk.0.{layout}.weight"] = (layout, values)
    layouts.write_gguf(os.path.join(folder, "one.gguf"), stored, {"general.architecture": "llama", "tokenizer.ggml.tokens": ["a", "b", "ccc"]})
    for name, (layout, values) in wanted.items():
        check("one.gguf", name, layout, values)
        cases += 1
print(f"{cases} stored matrices, {failures} differ")

# Networks: the shipped one, quantized layer by layer; layers whose sizes a layout cannot hold stay in float16, as its programs leave them.
weights = read_weights(os.path.join(data, "mlp-glyphs.safetensors"))
plain = {n: v.astype(np.float16) for n, v in weights.items()}
expected = {}


def network(file, quantize):
    """Stored tensors and the numbers of all."""
    tensors, numbers = {}, dict(weights)
    for name, value in weights.items():
        made = quantize(name.removesuffix(".weight"), value) if name.endswith(".weight") else None
        if made is None:
            tensors[name] = plain[name]
        else:
            tensors.update(made[0])
            numbers[name] = made[1]
    layouts.write_safetensors(os.path.join(folder, file), tensors)
    expected[file] = numbers


network("gptq.safetensors", lambda n, w: layouts.gptq(n, w) if n != "fc3" else None)
network("nvfp4.safetensors", lambda n, w: layouts.nvfp4(n, w))
gguf, numbers = {}, dict(weights)
for name, value in weights.items():
    layout = {"fc2.weight": "q4_k", "fc3.weight": "q4_0"}.get(name, "f16")
    kind, quantize = layouts.GGML[layout]
    blocks, numbers[name] = quantize(value)
    gguf[name] = (kind, value.shape, blocks)
layouts.write_gguf(os.path.join(folder, "q4.gguf"), gguf, {"general.architecture": "mlp"})
expected["q4.gguf"] = numbers
for file, numbers in expected.items():
    # The same network from the script's own numbers must give the same row, bit for bit.
    layouts.write_safetensors(os.path.join(folder, "own.safetensors"), numbers)
    rows = []
    for net in (file, "own.safetensors"):
        result = run("eval", "--net", "mlp=" + net, "--data", "glyphs", "--json")
        if result.returncode != 0:
            print(f"{net}: {result.stderr}")
            failures += 1
            break
        metrics = json.loads(result.stdout)["metrics"]
        rows.append({key: metrics[key] for key in ("top1", "loss") if key in metrics})
    if len(rows) == 2:
        print(f"mlp={file}: {rows[0]}")
        if rows[0] != rows[1]:
            failures += 1
            print(f"mlp={file}: expected {rows[1]}")
# The same file as weights of an ONNX network with those names, beside the network that has the numbers itself.
with open(os.path.join(folder, "none.json"), "w") as file:
    file.write('{"numemu_recipe": 1}')
result = run("export", "--net", "mlp", "--data", "glyphs", "--recipe", "none.json", "--out", "mlp.onnx")
if result.returncode != 0:
    print(f"export: {result.stderr}")
    failures += 1
for file, numbers in expected.items():
    layouts.write_safetensors(os.path.join(folder, "own.safetensors"), numbers)
    for recipe in ([], ["--recipe", "int8-dynamic"]):
        rows = []
        for net in ("mlp.onnx=" + file, "mlp.onnx=own.safetensors", "mlp=own.safetensors"):
            result = run("eval", "--net", net, "--data", "glyphs", "--images", "500", "--json", *recipe)
            if result.returncode != 0:
                print(f"{net}: {result.stderr}")
                failures += 1
                break
            metrics = json.loads(result.stdout)["metrics"]
            rows.append({key: metrics[key] for key in ("top1", "loss") if key in metrics})
        if len(rows) == 3:
            print(f"mlp.onnx={file} {' '.join(recipe)}: {rows[0]}")
            if rows[0] != rows[1] or rows[0] != rows[2]:
                failures += 1
                print(f"mlp.onnx={file}: expected {rows[1:]}")
# Other commands take them, too: arrays, export as the network's own file, tuning, training.
np.save(os.path.join(folder, "x.npy"), random.standard_normal((4, 28, 28, 1)).astype(np.float32))
results = []
for net in ("gptq.safetensors", "own.safetensors"):
    layouts.write_safetensors(os.path.join(folder, "own.safetensors"), expected["gptq.safetensors"])
    net = "mlp.onnx=" + net
    for command in (
        ["infer", "--model", net, "--in", "x.npy", "--out", "y.npy"],
        ["export", "--net", net, "--data", "glyphs", "--recipe", "w4a16-g128", "--out", "e.onnx"],
        ["tune", "--net", net, "--data", "glyphs", "--recipe", "w4a8", "--steps", "calibrate", "--samples", "32", "--images", "100", "--out", "t"],
        ["train", "--net", net, "--data", "glyphs", "--epochs", "1", "--batch", "8192", "--out", "tr"],
    ):
        result = run(*command, "--quiet", *(["--fresh"] if command[0] in ("tune", "train") else []))
        if result.returncode != 0:
            failures += 1
            print(f"{' '.join(command)}: {result.stderr}")
    with open(os.path.join(folder, "e.onnx"), "rb") as file:
        results.append((np.load(os.path.join(folder, "y.npy")), file.read()))
if (results[0][0] != results[1][0]).any() or results[0][1] != results[1][1] or b"MatMulNBits" not in results[0][1]:
    failures += 1
    print("infer and export of mlp.onnx=gptq.safetensors: expected what its numbers give")
# Names that the network has not.
layouts.write_safetensors(os.path.join(folder, "other.safetensors"), layouts.gptq("elsewhere", weights["fc1.weight"])[0])
result = run("eval", "--net", "mlp.onnx=other.safetensors", "--data", "glyphs", "--images", "100")
if result.returncode == 0 or result.stderr.count("\n") != 1 or "other.safetensors" not in result.stderr or "fc1" not in result.stderr:
    failures += 1
    print(f"mlp.onnx=other.safetensors: expected a line with a name, found {result.stderr}")
print("failures:", failures)
subprocess.run(["rm", "-r", folder])
sys.exit(1 if failures else 0)
