"""Gradients of learned scales beside PyTorch's autograd.

One step of plain gradient descent on all samples moves scales and weights by the learning rate times their
gradients. The checkpoint has what they became; a network with the published quantizer (Esser et al., 2020,
appendix A: round and gradient scale pass straight through) has the gradients of the same loss.
usage: lsq_autograd_test.py NUMEMU
"""
import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
try:
    import numpy as np
    import torch
except ImportError as error:
    print("skipped: " + str(error))
    sys.exit(SKIPPED)

RATE, INPUTS, HIDDEN, CLASSES, SAMPLES = 0.01, 6, 12, 3, 64
RECIPE = {
    "roles": {
        "weight": {"format": "int4", "granularity": "channel"},
        "activation": {"format": "int4"},
    },
    "update": {"optimizer": "sgd"},
    "learn": "lsq(both,1,sgd)",
}


def checkpoint(path):
    """Tensors and ranges of a .safetensors file."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), file.read()
    ranges = json.loads(header.pop("__metadata__")["ranges"])
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] == "F32" and not name.startswith("tuned_from"):
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return tensors, ranges


def learned(x, scale, elements, levels):
    """The published quantizer, symmetric codes from -levels to levels."""
    factor = 1 / np.sqrt(elements * levels)
    scaled = scale * factor
    step = (scale - scaled).detach() + scaled
    value = torch.clamp(x / step, -levels, levels)
    return ((torch.round(value) - value).detach() + value) * step


def main(program):
    torch.manual_seed(3)
    network = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES))
    x, y = torch.randn(SAMPLES, INPUTS), torch.randint(0, CLASSES, (SAMPLES,))
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "net.onnx")
        torch.onnx.export(network, x[:1], file, input_names=["x"], output_names=["y"],
                          dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
        samples = {"x": x.numpy(), "y": y.numpy(), "x_test": x.numpy(), "y_test": y.numpy()}
        data = os.path.join(folder, "data.npz")
        np.savez(data, **samples)

        def train(rate):
            out = os.path.join(folder, str(rate))
            subprocess.run([program, "train", "--net", file, "--data", "npy:" + data, "--recipe",
                            json.dumps(RECIPE), "--epochs", "1", "--batch", str(SAMPLES), "--lr",
                            str(rate), "--weight-decay", "0", "--clip", "0", "--warmup", "0",
                            "--quiet", "--out", out], check=True, stdout=subprocess.DEVNULL)
            return checkpoint(os.path.join(out, "net-npy.safetensors"))

        (weights, first), (moved, then) = train(1e-20), train(RATE)
    layers = sorted(first)
    assert len(layers) == 2, layers
    by_size = {len(first[name]["weight"]): name for name in layers}
    layers = [by_size[HIDDEN], by_size[CLASSES]]

    levels, h, leaves = 7, x, {}
    for place, name in enumerate(layers):
        linear = network[2 * place]
        # The largest element of each scale lies on the end of the range, and is inside: rounding must
        # not move it beyond. A layer reads what larger scales before it have made larger.
        inside = 1 + 2.0**-20 * 8**place
        assert np.array_equal(weights[name + ".weight"], linear.weight.detach().numpy())
        of_weight = torch.tensor([[high / levels * inside] for _, high in first[name]["weight"]],
                                 requires_grad=True)
        of_input = torch.tensor(first[name]["activation"][1] / levels * inside,
                                requires_grad=True)
        leaves[name] = (of_weight, of_input, linear)
        rows = learned(linear.weight, of_weight, linear.weight.shape[1], levels)
        h = torch.nn.functional.linear(learned(h, of_input, h.shape[1], levels), rows, linear.bias)
        h = torch.relu(h) if place == 0 else h
    torch.nn.functional.cross_entropy(h, y).backward()

    worst = 0
    for place, name in enumerate(layers):
        of_weight, of_input, linear = leaves[name]
        pairs = [(np.array([(a[1] - b[1]) / levels for a, b in
                            zip(first[name]["weight"], then[name]["weight"])]) / RATE,
                  of_weight.grad.numpy().ravel()),
                 ((weights[name + ".weight"] - moved[name + ".weight"]) / RATE,
                  linear.weight.grad.numpy())]
        if place > 0:  # the network's input needs no gradient, and its scale has none
            pairs.append((np.array([(first[name]["activation"][1] - then[name]["activation"][1])
                                    / levels / RATE]), of_input.grad.numpy().reshape(1)))
        for given, expected in pairs:
            assert np.abs(expected).max() > 1e-4, name
            # Differences of float32 numbers below 4, divided by the rate.
            tolerance = 4 * 2.0**-23 / RATE + 1e-4 * np.abs(expected).max()
            worst = max(worst, float((np.abs(given - expected) / tolerance).max()))
    print("largest difference: %.2f of the tolerance" % worst)
    return 0 if worst < 1 else 1


sys.exit(main(sys.argv[1]))
