"""Networks against ONNX Runtime: a table of what loads, agrees in float32 and in int8, is exported, and reads back.

The networks of cases.py (PyTorch, without torchvision's) and ONNX files of folders with arrays NAME.INPUT.npy beside
them. ONNX Runtime runs in Node.js: tests/oracle/onnxruntime."""
import argparse
import glob
import json
import os
import subprocess
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.path.join(HERE, "..", "..", "oracle", "onnxruntime", "run.js")
# Of the largest output. Float32: sums in another order. int8: the same, and rarely a quotient that rounds onto a tie moves a
# code, a step of 1 / 127 of a layer's range.
FLOAT32, CODES = 1e-4, 0.05


def run(command, **more):
    """Its last line of standard error, or None where it succeeded; and its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    lines = done.stderr.strip().split("\n")
    return None if done.returncode == 0 else lines[-1] or f"exit {done.returncode}", done.stdout


def read(path):
    return numpy.load(path).astype(float)


def error_of(got, wanted):
    """The largest difference over the largest finite magnitude; shapes, names, infinities and NaN must be equal."""
    worst = 0.0
    if list(got) != list(wanted):
        return float("inf")
    for name in wanted:
        a, b = got[name], wanted[name]
        if a.shape != b.shape:
            return float("inf")
        with numpy.errstate(invalid="ignore"):
            gap = numpy.where((a == b) | (numpy.isnan(a) & numpy.isnan(b)), 0, numpy.abs(a - b))
        if gap.size:
            finite = numpy.abs(b[numpy.isfinite(b)])
            worst = max(worst, float(gap.max() / max(finite.max() if finite.size else 0, 1e-30)))
    return worst


class Witness:
    def __init__(self, options):
        self.options = options
        modules = options.onnxruntime or os.environ.get("NUMEMU_ONNXRUNTIME", "")
        self.environment = dict(os.environ, NODE_PATH=modules)

    def onnxruntime(self, model, arrays):
        folder = self.options.work + "/onnxruntime"
        os.makedirs(folder, exist_ok=True)
        error, text = run(["node", RUNNER, model, folder] + arrays, env=self.environment)
        return (error, {}) if error else (None, {o["name"]: read(o["file"]) for o in json.loads(text)["outputs"]})

    def random_arrays(self, model):
        """Of the model's inputs: numbers around zero, or small whole ones; open axes are 2."""
        error, text = run(["node", RUNNER, model], env=self.environment)
        if error:
            raise SystemExit(f"{model}: {error}")
        draw = numpy.random.default_rng(7)
        arrays = []
        for i, (name, given) in enumerate(json.loads(text).items()):
            shape = [2 if n is None else n for n in given["shape"]]
            kind = given["type"]
            x = draw.standard_normal(shape) if kind.startswith("float") else draw.integers(0, 2, shape)
            file = f"{self.options.work}/{os.path.basename(model)[:-5]}.random{i}.npy"
            numpy.save(file, x.astype("float32" if kind == "float16" else kind))
            arrays.append(f"{name}={file}")
        return arrays

    def infer(self, model, arrays, names, *more):
        command = [self.options.program, "infer", "--quiet", "--outputs-only", "--model", model, *more]
        files = {name: f"{self.options.work}/out{i}.npy" for i, name in enumerate(names)}
        for array in arrays:
            command += ["--in", array]
        for name, file in files.items():
            command += ["--out", f"{name}={file}"]
        error, _ = run(command)
        return (error, {}) if error else (None, {name: read(file) for name, file in files.items()})

    def row(self, name, model, arrays):
        """Name and five results: None where all is well, else what is wrong."""
        error, wanted = self.onnxruntime(model, arrays)
        if error:
            return [f"ONNX Runtime: {error}"] * 5, {}
        results, figures = [None] * 5, {}
        error, own = self.infer(model, arrays, wanted)
        results[0] = error
        results[1] = "does not load"
        if not error:
            figures["float32"] = error_of(own, wanted)
            results[1] = None if figures["float32"] <= FLOAT32 else f"{figures['float32']:.1e}"
        out = self.options.work + f"/{name}.{self.options.recipe}.onnx"
        if os.path.exists(out):
            os.remove(out)
        command = [self.options.program, "export", "--quiet", "--net", model, "--recipe", self.options.recipe, "--out", out]
        for array in arrays:
            command += ["--in", array]
        results[3], _ = run(command)
        if results[3]:
            results[2] = results[4] = "not exported"
            return results, figures
        error, there = self.onnxruntime(out, arrays)
        if error:
            results[2] = results[4] = f"ONNX Runtime: {error}"
            return results, figures
        error, back = self.infer(out, arrays, there)
        figures["codes"] = float("inf") if error else error_of(back, there)
        results[2] = error or (None if figures["codes"] <= CODES else f"{figures['codes']:.1e}")
        error, under = self.infer(model, arrays, wanted, "--recipe", self.options.recipe)
        figures["recipe"] = float("inf") if error else error_of(there, under)
        results[4] = error or (None if figures["recipe"] <= CODES else f"{figures['recipe']:.1e}")
        return results, figures


def networks(options, witness):
    """Name, file and arrays."""
    sys.path.insert(0, HERE)
    from cases import CASES
    import table
    for name, case in CASES.items():
        if case.family not in ("image", "segmentation") and name not in options.skip.split(","):
            table.export(name, options.work)
            yield name, f"{options.work}/{name}.onnx", [f"{key}={options.work}/{name}.{key}.npy" for key in case.inputs]
    for folder in options.folder:
        for path in sorted(glob.glob(folder + "/*.onnx")):
            base = path[:-5]
            found = {f[len(base) + 1:-4]: f for f in glob.glob(glob.escape(base) + ".*.npy")}
            arrays = [f"{key}={file}" for key, file in sorted(found.items()) if "ref" not in key.split(".")]
            yield os.path.basename(base), path, arrays or witness.random_arrays(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="*", help="folders of .onnx files with arrays NAME.INPUT.npy")
    parser.add_argument("--program", default="build/release/cli/numemu")
    parser.add_argument("--onnxruntime", help="folder of Node.js packages (default: $NUMEMU_ONNXRUNTIME)")
    parser.add_argument("--work", default="/tmp/numemu-witness", help="folder of the networks (default %(default)s)")
    parser.add_argument("--recipe", default="int8-static")
    parser.add_argument("--only", help="names, with commas between")
    parser.add_argument("--skip", default="gpt2_small,bert_base,bert_base_masked", help="(default %(default)s)")
    parser.add_argument("--out", help="file for the table as Markdown")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    witness = Witness(options)
    heads = ["loads", "float32", "int8", "exports", "reads back"]
    rows = []
    for name, model, arrays in networks(options, witness):
        if options.only and name not in options.only.split(","):
            continue
        results, figures = witness.row(name, model, arrays)
        rows.append((name, results, figures))
        shown = ", ".join(f"{key} {value:.1e}" for key, value in figures.items())
        wrong = "; ".join(f"{head}: {r}" for head, r in zip(heads, results) if r)
        print(f"{name:24} {shown}{'  ' + wrong if wrong else ''}", flush=True)
    counts = [sum(r[i] is None for _, r, _ in rows) for i in range(5)]
    print(f"{len(rows)} networks: " + ", ".join(f"{head} {n}" for head, n in zip(heads, counts)))
    if options.out:
        with open(options.out, "w") as file:
            file.write("| network | loads | float32 | int8 | exports | reads back |\n|---|---|---|---|---|---|\n")
            for name, results, figures in rows:
                cells = ["yes" if r is None else "no" for r in results]
                for i, key in ((1, "float32"), (2, "codes"), (4, "recipe")):
                    if key in figures:
                        cells[i] = f"{figures[key]:.1e}"
                file.write(f"| {name} | {' | '.join(cells)} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
