# Exports the networks of cases.py, runs PyTorch and `numemu infer`, and prints what loads and how far results differ.
import argparse
import os
import resource
import subprocess
import sys
import warnings

import numpy
import torch

from cases import CASES


def randomize(module):
    """Ones and zeros of a fresh network hide errors: statistics, gains and biases as after training."""
    for parameter in module.parameters():
        if not parameter.data.any():
            parameter.data.normal_(0, 0.02)
    for m in module.modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
            if m.affine:
                m.weight.data.uniform_(0.5, 1.5)
                m.bias.data.normal_(0, 0.1)
        elif isinstance(m, (torch.nn.LayerNorm, torch.nn.GroupNorm)) and m.weight is not None:
            m.weight.data.uniform_(0.5, 1.5)
            m.bias.data.normal_(0, 0.1)


def build(name):
    torch.manual_seed(int.from_bytes(name.encode(), "little") % 2**31)
    module = CASES[name].build().eval()
    randomize(module)
    return module


def inputs_of(case, batch):
    return {name: make(batch) if callable(make) else torch.randn(batch, *make) for name, make in case.inputs.items()}


def export(name, folder, batch=2, opset=None):
    """Writes NAME.onnx, its inputs and PyTorch's outputs to the folder, once; gives their names and PyTorch's outputs."""
    case = CASES[name]
    base = f"{folder}/{name}"
    if not os.path.exists(base + ".done"):
        module = build(name)
        inputs = inputs_of(case, batch)
        with torch.no_grad():
            outputs = module(*inputs.values())
        outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
        names = [f"y{i}" for i in range(len(outputs))]
        axes = {}
        if not case.fixed:
            axes = {key: {case.batch_axis: "batch"} for key in list(inputs) + names}
            for key, more in case.axes.items():
                axes[key].update(more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, tuple(inputs.values()), base + ".onnx", opset_version=opset or case.opset,
                              input_names=list(inputs), output_names=names, dynamic_axes=axes)
        for key, value in inputs.items():
            array = value.numpy()  # numemu reads no bool
            numpy.save(f"{base}.{key}.npy", array.astype("uint8") if array.dtype == bool else array)
        for key, value in zip(names, outputs):
            numpy.save(f"{base}.{key}.expected.npy", value.numpy())
        with open(base + ".done", "w") as file:
            file.write(" ".join(names))
    with open(base + ".done") as file:
        names = file.read().split()
    return names, [numpy.load(f"{base}.{key}.expected.npy") for key in names]


def run(command, limit):
    """The last line of standard error (None if the command succeeded) and its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=limit)
        error = None if done.returncode == 0 else (done.stderr.strip().split("\n")[-1] or f"exit {done.returncode}")
    except subprocess.TimeoutExpired:
        error = f"no result after {limit} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return error, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def relative_error(got, wanted):
    """The largest difference over the largest finite magnitude; infinities must be equal."""
    if got.shape != wanted.shape:
        return float("inf")
    got, wanted = got.astype(float), wanted.astype(float)
    with numpy.errstate(invalid="ignore"):
        difference = numpy.where(got == wanted, 0, numpy.abs(got - wanted))
    return float(difference.max() / max(numpy.abs(wanted[numpy.isfinite(wanted)]).max(), 1e-30))


def main():
    import onnx  # rates.py exports without it

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/release/cli/numemu")
    parser.add_argument("--work", default="/tmp/numemu-exports", help="folder of the exports, which are kept (default %(default)s)")
    parser.add_argument("--only", help="names, with commas between, or a family")
    parser.add_argument("--largest", type=float, default=1e-4, help="relative error that counts as agreement (default %(default)s)")
    parser.add_argument("--limit", type=int, default=300, help="seconds for a network (default %(default)s)")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    names = [n for n, c in CASES.items() if not options.only or n in options.only.split(",") or c.family == options.only]
    print(f"{'network':24} {'family':13} opset nodes  file MB  loads  relative error  seconds")
    agree = 0
    for name in names:
        case, base = CASES[name], f"{options.work}/{name}"
        try:
            outputs, expected = export(name, options.work)
        except Exception as error:  # the exporter refuses
            print(f"{name:24} {case.family:13} {case.opset:5}  not exported: {str(error).splitlines()[0][:150]}", flush=True)
            continue
        model = onnx.load(base + ".onnx", load_external_data=False)
        command = [options.program, "infer", "--quiet", "--model", base + ".onnx", "--batch", "2"]
        for key in case.inputs:
            command += ["--in", f"{key}={base}.{key}.npy"]
        for key in outputs:
            command += ["--out", f"{key}={base}.{key}.npy"]
        error, seconds = run(command, options.limit)
        head = (f"{name:24} {case.family:13} {case.opset:5} {len(model.graph.node):5} "
                f"{os.path.getsize(base + '.onnx') / 1e6:8.2f}")
        if error:
            print(f"{head}  no     {error.replace(options.work + '/', '')}", flush=True)
            continue
        worst = max(relative_error(numpy.load(f"{base}.{key}.npy"), wanted) for key, wanted in zip(outputs, expected))
        agree += worst <= options.largest
        print(f"{head}  yes    {worst:14.1e}  {seconds:7.2f}{'' if worst <= options.largest else '  DIFFERS'}", flush=True)
    print(f"{agree} of {len(names)} load and agree to {options.largest}")
    return 0 if agree == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
