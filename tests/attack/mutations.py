#!/usr/bin/env python3
# Mutated inputs of every kind, under limits of memory and time: each is read, or refused in one line, and nothing else happens.
import gzip
import json
import math
import os
import re
import shlex
import shutil
import struct
import sys
import tempfile
import zipfile

from attack import CaseFolder, Findings, Program, draws, idx_folder, limit_memory, npy, options, read, run_cases

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
CORPUS = f"{REPOSITORY}/tests/fuzz/corpus/onnx_import"

# name: (file that is mutated, others that are read, arguments, how often). Every command exits 0 or 2.
KINDS = {}


def kind(name, file, arguments, others=(), weight=8):
    KINDS[name] = file, others, shlex.split(arguments), weight


kind("npy numbers", "x.npy", "encode --in x.npy --format e4m3fn --out o.npy --flags f.npy --quiet")
kind("npy quantize", "x.npy", "quantize --in x.npy --block mxfp4 --out o.npy --quiet")
kind("npy codes", "c.npy", "decode --in c.npy --format e4m3fn --out o.npy --quiet")
kind("npy packed", "p.npy", "decode --in p.npy --out o.npy --quiet", ("p.npy.json",))
kind("npy random bits", "r.npy", "encode --in x.npy --format e5m2 --rounding sr(8) --random-bits r.npy --out o.npy --quiet", ("x.npy",))
kind("npy scales", "s.npy", "dequantize --block mxfp4 --codes q.npy --scales s.npy --out o.npy --quiet", ("q.npy",))
kind("npy operand", "a.npy", "gemm --unit h100.wgmma.e4m3.f32.sp24 --a a.npy --b b.npy --meta e.npy --out o.npy --quiet", ("b.npy", "e.npy"))
kind("npy metadata", "e.npy", "gemm --unit h100.wgmma.e4m3.f32.sp24 --a a.npy --b b.npy --meta e.npy --out o.npy --quiet", ("a.npy", "b.npy"))
kind("sidecar", "p.npy.json", "decode --in p.npy --out o.npy --quiet", ("p.npy",))
kind("sidecar of numbers", "c.npy.json", "encode --in c.npy --format e5m2 --out o.npy --quiet", ("c.npy",))
kind("codebook", "k.npy", "encode --in x.npy --format codebook(k.npy) --out o.npy --quiet", ("x.npy",))
kind("table of products", "t.npy", "gemm --unit table.json --a ta.npy --b tb.npy --out o.npy --quiet", ("table.json", "ta.npy", "tb.npy"))
kind("unit fused", "fused.json", "gemm --unit fused.json --a c.npy --b cb.npy --out o.npy --quiet", ("c.npy", "cb.npy"))
kind("unit chain", "chain.json", "gemm --unit chain.json --a c.npy --b cb.npy --trace 0,0", ("c.npy", "cb.npy"))
kind("safetensors codes", "c.safetensors", "decode --in c.safetensors --format e4m3fn --out o.npy --quiet")
kind("safetensors weights", "lenet.safetensors", "infer --model lenet=lenet.safetensors --in image.npy --out o.npy --quiet", ("image.npy",))
kind("npz weights", "lenet.npz", "infer --model lenet=lenet.npz --in image.npy --out o.npy --quiet", ("image.npy",))
MODELS = {"attention": (1, 2, 4), "convolutions": (1, 2, 6, 6), "mobile": (1, 3, 6, 6), "norm_gelu": (1, 3, 4), "shortcut": (1, 2, 4, 4),
          "gpt_add": (1, 4), "gpt_where": (1, 4), "folding": (1, 3)}
for model in MODELS:
    kind(f"onnx {model}", f"{model}.onnx", f"infer --model {model}.onnx --in in-{model}.npy --out o.npy --quiet", (f"in-{model}.npy",), 6)
kind("recipe", "recipe.json", "config --print recipe.json")
kind("recipe at work", "recipe.json", "infer --model lenet=lenet.safetensors --in image.npy --out o.npy --recipe recipe.json --quiet",
     ("lenet.safetensors", "image.npy"))
kind("sweep", "sweep.json", "config --print sweep.json")
kind("rows", "out/rows.jsonl", "report out --csv o.csv", ("out/sweep.json", "out/times.jsonl"))
kind("rows' sweep", "out/sweep.json", "report out --csv o.csv", ("out/rows.jsonl", "out/times.jsonl"), 4)
for file in ("train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"):
    kind(f"idx {file[:4]}", f"data/{file}", "eval --net lenet=lenet.safetensors --data mnist:data --images 2 --quiet",
         tuple(f"data/{split}" for split in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                             "t10k-labels-idx1-ubyte") if split != file) + ("lenet.safetensors",), 1)
for file, other in (("data_batch_1.bin.gz", "test_batch.bin.gz"), ("test_batch.bin.gz", "data_batch_1.bin.gz")):
    kind(f"cifar {file[:4]}", f"cifar/{file}", "eval --net lenet=lenet.safetensors --data cifar10:cifar --images 2 --quiet",
         (f"cifar/{other}", "lenet.safetensors"), 1)

RECIPE = {"numemu_recipe": 1, "seed": 3,
          "roles": {"weight": {"format": "int4", "scale": "absmax", "granularity": "channel"},
                    "activation": {"format": "float8_e4m3fn", "rounding": "sr(8)", "overflow": "saturate", "scale": "absmax"}},
          "gemms": {"fprop": {"unit": "exact"}}, "update": {"optimizer": "sgd", "rounding": "rne"},
          "calibrate": {"rule": "absmax", "samples": 4},
          "layers": [{"match": "conv*", "roles": {"weight": {"format": "mxfp4", "granularity": "block", "axis": "channel"}}}]}
SWEEP = {"numemu_sweep": 1, "net": "lenet", "data": "glyphs", "eval_images": 64, "seeds": [0, 1], "base": RECIPE,
         "grid": {"roles.weight.format": ["int8", "int4"], "gemms.*.unit": ["exact", "f32.sequential"]},
         "points": [{"roles.weight": None}], "tie": [["roles.weight.format", "gemms.*.unit"]]}


def prepare(folder, program):
    """A valid file of every kind, so that mutations reach deep."""
    rng = draws(0, "inputs")
    write = lambda name, value: open(f"{folder}/{name}", "w").write(json.dumps(value))
    npy(f"{folder}/x.npy", "<f4", (8, 32), [rng.gauss(0, 10) for _ in range(256)])
    npy(f"{folder}/r.npy", "<u4", (8, 32), [rng.randrange(256) for _ in range(256)])
    npy(f"{folder}/k.npy", "<f8", (9,), [-4.0, -2, -1, -0.5, 0, 0.5, 1, 2, 4])
    npy(f"{folder}/a.npy", "|u1", (2, 4), [0x38, 0x40, 0x44, 0x48] * 2)
    npy(f"{folder}/b.npy", "|u1", (8, 2), [0x38, 0x40] * 8)
    npy(f"{folder}/e.npy", "|u1", (2, 4), [0, 2, 1, 3] * 2)
    npy(f"{folder}/cb.npy", "|u1", (32, 2), [0x38] * 64)
    npy(f"{folder}/t.npy", "<i4", (4, 4), list(range(16)))
    npy(f"{folder}/ta.npy", "|u1", (1, 4), [0, 1, 2, 3])
    npy(f"{folder}/tb.npy", "|u1", (4, 1), [3, 2, 1, 0])
    write("table.json", {"numemu_unit": 1, "core": "table", "a": "uint2", "b": "uint2", "products": "t.npy"})
    write("fused.json", {"numemu_unit": 1, "name": "my.fp8", "a": "float8_e4m3fn", "b": "float8_e4m3fn", "c": "float32",
                         "d": "float32", "core": "fused", "k": 32, "group": 8, "nan_code": "0x7fffffff",
                         "accumulator": {"format": "e8m20", "rounding": "rtz", "overflow_to_infinity": True},
                         "alignment": {"fraction_bits": 20, "floor": None}, "subnormals": {"flush_inputs": False}})
    write("chain.json", {"numemu_unit": 1, "a": "float8_e4m3fn", "b": "float8_e4m3fn", "core": "chain", "k": 8,
                         "accumulator": {"bits": 24, "fraction": 12, "rounding": "rne", "integer_overflow": "saturate_each"},
                         "chain": {"chains": 1, "fused": True}})
    for arguments in ("encode --in x.npy --format e4m3fn --out c.npy --quiet", "encode --in x.npy --format int4 --packed --out p.npy --quiet",
                      "encode --in x.npy --format e4m3fn --out c.safetensors --quiet",
                      "quantize --in x.npy --block mxfp4 --codes q.npy --scales s.npy --out o.npy --quiet"):
        program.must(folder, shlex.split(arguments))
    shutil.copy(f"{REPOSITORY}/data/lenet-glyphs.safetensors", f"{folder}/lenet.safetensors")
    npy(f"{folder}/image.npy", "<f4", (1, 28, 28, 1), [rng.random() for _ in range(784)])
    npz_of(f"{folder}/lenet.safetensors", f"{folder}/lenet.npz")
    for model, shape in MODELS.items():
        shutil.copy(f"{CORPUS}/good_{model}.onnx", f"{folder}/{model}.onnx")
        npy(f"{folder}/in-{model}.npy", "<f4", shape, [float(i % 3) for i in range(math.prod(shape))])
    write("recipe.json", RECIPE)
    write("sweep.json", SWEEP)
    idx_folder(f"{folder}/data", rng, 5600, 8)
    os.makedirs(f"{folder}/cifar")
    for batch in ("data_batch_1", "test_batch"):
        with gzip.open(f"{folder}/cifar/{batch}.bin.gz", "wb") as out:
            out.write(b"".join(bytes([i % 10]) + rng.randbytes(64) + bytes(3008) for i in range(10000)))
    small = {**SWEEP, "net": "lenet=lenet.safetensors", "data": "mnist:data", "eval_images": 4, "seeds": [0]}
    small["base"] = {"numemu_recipe": 1, "calibrate": {"rule": "absmax", "samples": 4}}
    small.pop("tie"), small.pop("points")
    small["grid"] = {"roles.weight.format": ["int8", "int4"]}
    write("small.json", small)
    program.must(folder, ["sweep", "small.json", "--out", "out", "--quiet"])
    write("judged.json", {**small, "metrics": ["log_loss"], "grid": {"roles.weight.format": ["int8"]}})
    program.must(folder, ["sweep", "judged.json", "--out", "judged", "--quiet"])
    losses, = os.listdir(f"{folder}/judged/losses")  # named by the row's key
    kind("losses of a row", f"judged/losses/{losses}", "report judged --csv o.csv", ("judged/rows.jsonl", "judged/sweep.json", "judged/times.jsonl"))
    for name, (file, others, arguments, _) in KINDS.items():
        for needed in (file, *others):
            if not os.path.exists(f"{folder}/{needed}"):
                sys.exit(f"{name}: {needed} was not prepared")
        code, _, err = program.run(folder, arguments)
        if code != 0:
            print(f"note: {name}: the input as it is ends with {code}: {err.strip()}")


def npz_of(safetensors, path):
    data = read(safetensors)
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + length]), data[8 + length:]
    with zipfile.ZipFile(path, "w") as archive:
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            numbers = struct.unpack(f"<{(end - begin) // 2}{'e' if entry['dtype'] == 'F16' else 'H'}", body[begin:end])
            if entry["dtype"] == "BF16":
                numbers = struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}I", *(n << 16 for n in numbers)))
            npy(f"{path}.part", "<f4", entry["shape"], list(numbers))
            archive.write(f"{path}.part", f"{name}.npy")
    os.remove(f"{path}.part")


NUMBERS = ["-1", "0", "1", "2147483647", "2147483648", "4294967296", "9007199254740993", "9223372036854775807", "18446744073709551616",
           "1e308", "1e999", "-1e999", "1e-400", "0.1", "-0", "99999999999999999999999999999999999999", "1e18", "65537", "3.0"]
VALUES = ["null", "true", "[]", "{}", '""', '"\\u0000"', '"\\ud800"', '"x"', '"' + "y" * 5000 + '"', "[" * 300, '{"a":' * 300, '"\\u001b[31m"',
          "[null]", '"*a*a*a*a*a*a*a*a*a*b"', '"../../x"', '"=1+1"']
INTEGERS = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 0x8000000000000000, 2**64 - 1]


def place(rng, data):
    """Heads decide more than bodies."""
    return rng.randrange(min(len(data), 400) if rng.random() < 0.7 else len(data)) if data else 0


def mutate_bytes(rng, data):
    at, size = place(rng, data), rng.choice([1, 1, 2, 4, 8, 16, 64])
    how = rng.randrange(9)
    if how <= 1 and data:  # a flipped bit
        data[at] ^= 1 << rng.randrange(8)
    elif how == 2:
        del data[at:]
    elif how == 3:
        data[at:at] = rng.randbytes(size)
    elif how == 4:
        data[at:at] = bytes(size)  # NULs
    elif how == 5:
        del data[at:at + size]
    elif how == 6:
        data[at:at] = data[place(rng, data):][:size]  # what stands elsewhere, once more
    elif how == 7:
        width = rng.choice([1, 2, 4, 8])
        number = rng.choice(INTEGERS) & (1 << 8 * width) - 1
        data[at:at + width] = number.to_bytes(width, rng.choice(["little", "big"]))
    else:
        data += rng.choice([b"\0", b"\0{}", b"\n", b"x", bytes(data[:100]), rng.randbytes(size)])
    return data


def matches(pattern, data):
    return [match.span() for match in re.finditer(pattern, bytes(data))]


ITEM = rb'"[^"]*"\s*:\s*("[^"]*"|-?[\d.eE+-]+|true|false|null)'


def mutate_text(rng, data):
    how = rng.randrange(7)
    if how == 0:  # a number becomes another
        spans, new = matches(rb"-?\d[\d.eE+-]*", data), rng.choice(NUMBERS)
    elif how == 1:  # a value becomes another kind of value
        spans, new = matches(rb'(?<=[:\[,])\s*("[^"]*"|-?[\d.eE+-]+|true|false|null)', data), rng.choice(VALUES)
    elif how == 2:  # a key stands twice
        spans = matches(ITEM, data)
        if spans:
            begin, end = rng.choice(spans)
            data[end:end] = b", " + data[begin:end]
        return data
    elif how == 3:  # a key goes
        spans, new = matches(rb",\s*" + ITEM, data), ""
    elif how == 4:  # a key has another name
        spans, new = matches(rb'"[^"]*"(?=\s*:)', data), rng.choice(['"numemu"', '"a"', '"\\u0000"', '"roles"', '""', '"format"'])
    elif how == 5:  # what ends a text early
        return data + rng.choice([b"\0", b"\0garbage", b"{}", b" //", b"\xff\xfe", b"\x1b[31m"])
    else:
        spans, new = matches(rb'"[^"]*"', data), '"' + rng.choice(["\x1b]0;x\x07", "\\n", "é", "\udcff", "a" * 400, "%s%n", "0x3c"]) + '"'
    if spans:
        begin, end = rng.choice(spans)
        data[begin:end] = new.encode("utf-8", "surrogateescape")
    return data


def mutate(rng, file, data):
    text = file.endswith((".json", ".jsonl"))
    has_text = text or file.endswith((".npy", ".safetensors"))
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        use_text = has_text and rng.random() < (0.75 if text else 0.25)
        data = (mutate_text if use_text else mutate_bytes)(rng, bytearray(data))
    return bytes(data)


def complaint(code, err, seconds):
    """What is wrong with how a run has ended; nothing where it may end so."""
    if code is None:
        return f"still running after {seconds} s"
    if code < 0:
        return f"killed by signal {-code}"
    if code not in (0, 2):
        return f"exit {code}"
    lines = err.splitlines()
    errors = [line for line in lines if line.startswith("numemu: ") and not line.startswith(("numemu: note", "numemu: warning"))]
    # All problems of a unit's description are told, a line each.
    described = len(errors) > 1 and all(line.startswith(errors[0].split(".json: ")[0] + ".json: ") for line in errors)
    if code == 2 and ((len(errors) != 1 and not described) or err[-1:] != "\n"):
        return f"exit 2 with {len(errors)} lines that begin with numemu:"
    if code == 2 and len(lines) > len([line for line in lines if line.startswith("numemu: ")]):
        return "exit 2 with more than its line on stderr"
    if "internal error" in err or err == "numemu: out of memory\n":
        return "an error that names nothing"
    if any(len(line) >= 300 for line in lines):
        return f"a line of {max(map(len, lines))} characters"
    if any(not c.isprintable() for line in lines for c in line):
        return "control characters on stderr"
    return None


def is_json(data):
    """By python's parser, which unlike RFC 8259 takes NaN; a key that stands twice is none."""
    def once(pairs):
        if len(dict(pairs)) != len(pairs):
            raise ValueError("twice")
        return dict(pairs)
    try:
        json.loads(data.decode("utf-8"), object_pairs_hook=once)
        return True
    except (ValueError, RecursionError):
        return False


def one_case(number):
    program, base, names, seed, seconds, keep = STATE
    rng = draws(seed, number)
    name = rng.choice(names)
    file, others, arguments, _ = KINDS[name]
    with CaseFolder(keep, number) as folder:
        for other in others:
            os.makedirs(os.path.dirname(f"{folder}/{other}"), exist_ok=True)
            os.symlink(f"{base}/{other}", f"{folder}/{other}")
        os.makedirs(os.path.dirname(f"{folder}/{file}"), exist_ok=True)
        with open(f"{folder}/{file}", "wb") as out:
            mutated = mutate(rng, file, read(f"{base}/{file}"))
            out.write(mutated)
        code, _, err = program.run(folder, arguments, seconds)
        why = complaint(code, err, seconds)
        # A report whose sweep cannot be read says so and goes on.
        if code == 0 and file.endswith(".json") and name != "rows' sweep" and not is_json(mutated):
            why = "reads what is no JSON"
        wanted = {os.path.basename(path) for path in (file, *others)}
        if why is None and code == 2 and not keep:
            extra = {name for path, _, names in os.walk(folder) for name in names if ".cache" not in path} - wanted
            extra = {name for name in extra if ".lock" not in name}
            if extra:
                why = f"refused, and left behind {', '.join(sorted(extra))}"
    return number, name, code, why and f"{name}: {shlex.join(['numemu', *arguments])}: {why}: {err.strip()[:400]!r}"


def begin(state, mebibytes):
    global STATE
    STATE = state
    limit_memory(mebibytes)


def main():
    parser = options("Mutated inputs of every kind.", 300)
    parser.add_argument("--kind", help="only kinds whose name begins so")
    parser.add_argument("--memory", type=int, default=2048, help="MiB of address space a run may have (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="that a run may take (default %(default)s)")
    chosen = parser.parse_args()
    program = Program(chosen.program)
    findings = Findings(sys.argv[0] + (f" --kind {shlex.quote(chosen.kind)}" if chosen.kind else ""), chosen)
    base = tempfile.mkdtemp(prefix="numemu-mutations-")
    ends = {}
    try:
        prepare(base, program)
        names = [name for name, (*_, weight) in KINDS.items() for _ in range(weight) if name.startswith(chosen.kind or "")]
        state = (program, base, names, chosen.seed, chosen.seconds, chosen.keep)
        cases = range(chosen.first, chosen.first + chosen.count)
        for number, name, code, why in run_cases(one_case, cases, chosen.jobs, begin, (state, chosen.memory)):
            ends[code] = ends.get(code, 0) + 1
            if why:
                findings.tell(number, why)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    findings.end(f"{chosen.count} mutated inputs of {len(set(names))} kinds: "
                 + ", ".join(f"{n} with exit {code}" for code, n in sorted(ends.items(), key=str)))


if __name__ == "__main__":
    main()
