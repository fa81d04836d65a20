# Runs the test cases of ONNX's own operators (the onnx package, whose references are numpy) through `numemu infer`: counts what
# agrees, what is refused and why, and fails where a result differs.
import argparse
import collections
import os
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy
    import onnx
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit()

# Every operator rounds once or a few times from float64: 4 ulp of the largest magnitude, and what the references, which compute
# in float32, err by in sums.
RELATIVE = 2e-6
# ONNX's reference divides by a fraction of an element where a scale gives no whole number of them; engines do not. Whole numbers
# beyond float32's, types that wrap or saturate, and randomness are outside what the program computes.
SKIPPED = ("cast_", "castlike", "bitshift", "dropout", "bernoulli", "string", "sequence", "optional", "loop", "if_", "training",
           "resize_downsample_scales_linear_align_corners", "resize_downsample_scales_cubic_align_corners")


def cases():
    warnings.simplefilter("ignore")
    for name, kind in {"float": float, "int": int, "bool": bool, "object": object}.items():
        setattr(numpy, name, kind)  # the package was written for an older numpy
    from onnx.backend.test.case.node import collect_testcases
    return collect_testcases(None)


def number(array):
    """Scalars have no axis for samples, and results of the program have at least one axis."""
    return isinstance(array, numpy.ndarray) and array.dtype.kind in "fiub" and array.ndim > 0 and array.size > 0


def check(program, case, folder, live):
    """'agrees', 'skipped', or the message of a refusal; raises where a result differs. The first `live` inputs are inputs of the
    network, the others constants; without any a network with another input folds them all."""
    inputs, outputs = case.data_sets[0]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    ports = [port for port in graph.input if port.name]
    if not inputs or live > len(inputs) or not all(map(number, list(inputs[:live]) + list(outputs))):
        return "skipped"
    if not all(isinstance(a, numpy.ndarray) and a.dtype.kind in "fiub" for a in inputs):
        return "skipped"
    given = {port.name: array for port, array in zip(ports[:live], inputs)}
    for port, array in zip(ports[live:], inputs[live:]):
        graph.initializer.append(onnx.numpy_helper.from_array(array, port.name))
    if live == 0:
        given = {"unread": numpy.zeros((1, 1))}
        graph.input.append(onnx.helper.make_tensor_value_info("unread", onnx.TensorProto.FLOAT, ["n", 1]))
    onnx.save(model, f"{folder}/m.onnx")
    command = [program, "infer", "--quiet", "--model", f"{folder}/m.onnx"]
    for name, array in given.items():
        numpy.save(f"{folder}/{name}.npy", array.astype(numpy.float32))
        command += ["--in", f"{name}={folder}/{name}.npy"]
    for port in graph.output:
        command += ["--out", f"{port.name}={folder}/{port.name}.out.npy"]
    command += ["--batch", str(next(iter(given.values())).shape[0])]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        return (run.stderr.strip().splitlines() or ["died"])[-1].replace(folder, "")
    for port, expected in zip(graph.output, outputs):
        got, expected = numpy.load(f"{folder}/{port.name}.out.npy"), expected.astype(numpy.float64)
        finite = expected[numpy.isfinite(expected)]
        bound = RELATIVE * max(1e-30, numpy.abs(finite).max() if finite.size else 0)
        if got.shape != expected.shape:
            raise AssertionError(f"{case.name}: {port.name} has shape {got.shape}, expected {expected.shape}")
        if not numpy.allclose(got, expected, rtol=0, atol=bound, equal_nan=True):
            raise AssertionError(f"{case.name}: {port.name} differs by {numpy.nanmax(numpy.abs(got - expected))}")
    return "agrees"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/release/cli/numemu")
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--refusals", action="store_true", help="print every refusal")
    options = parser.parse_args()
    counts, wrong = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases():
            if options.only not in case.name or any(part in case.name for part in SKIPPED):
                continue
            for live in {0, 1, len(case.data_sets[0][0])}:
                try:
                    result = check(os.path.abspath(options.program), case, folder, live)
                except AssertionError as error:
                    wrong.append(str(error))
                    result = "differs"
                counts[result if result in ("agrees", "skipped", "differs") else "refused"] += 1
                if options.refusals and result not in ("agrees", "skipped", "differs"):
                    print(f"{case.name}: {result}")
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    print("\n".join(wrong))
    return 1 if wrong or not counts["agrees"] else 0


if __name__ == "__main__":
    sys.exit(main())
