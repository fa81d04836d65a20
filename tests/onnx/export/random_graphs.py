# Random graphs of operators: written as PyTorch exports them, with an input and what PyTorch computes from it in float64.
import argparse
import os
import random
import warnings

import numpy
import onnx
import torch
import torch.nn.functional as F

SEED, GRAPHS, NODES, SHAPE = 20, 36, 9, (4, 6)

# Functions of one tensor [n, 4, 6] that keep its shape and raise neither its size nor its errors by more than a small factor.
ONE = [
    torch.sin, torch.cos, torch.atan, torch.tanh, torch.sigmoid, torch.erf, torch.abs, torch.relu, F.elu, F.selu, F.celu,
    F.softplus, F.mish, F.silu, F.gelu, F.hardswish, F.hardsigmoid, F.softsign, torch.neg, F.leaky_relu, torch.asinh,
    lambda x: torch.clamp(x, -0.75, 0.5), lambda x: torch.exp(-x.abs()), lambda x: torch.sqrt(x * x + 0.25),
    lambda x: torch.log(x.abs() + 0.5), lambda x: 1 / (x.abs() + 0.5), lambda x: torch.cumsum(x, 2) / 6,
    lambda x: x.flip(2), lambda x: x.roll(2, 1), lambda x: x.transpose(1, 2).reshape(-1, 4, 6), lambda x: x[:, :, ::2].repeat(1, 1, 2),
    lambda x: x - x.mean(2, keepdim=True), lambda x: x / (x.norm(dim=2, keepdim=True) + 0.5), lambda x: x - x.amax(1, keepdim=True),
    lambda x: x + x.amin((1, 2), keepdim=True), lambda x: x - x.logsumexp(2, keepdim=True), lambda x: x * x.sum(1, keepdim=True) / 8,
    lambda x: torch.softmax(x, 2), lambda x: torch.log_softmax(x, 1) / 4, lambda x: F.pad(x, (1, 1), mode="reflect")[:, :, 1:-1] + x,
    lambda x: F.pad(x, (2, 0), mode="replicate")[:, :, :6], lambda x: F.pad(x, (1, -1, 0, 0)), lambda x: torch.tril(x),
    lambda x: F.interpolate(x, scale_factor=2, mode="nearest")[:, :, 3:9], lambda x: F.interpolate(x, size=6, mode="nearest"),
    lambda x: F.interpolate(x, size=12, mode="linear", align_corners=False)[:, :, ::2],
    lambda x: F.interpolate(x, size=11, mode="linear", align_corners=True)[:, :, 2:8],
    lambda x: x.masked_fill(x > 0.4, 0.25), lambda x: torch.where(x < 0, x * 0.5, x), lambda x: F.layer_norm(x, (6,)),
    lambda x: F.group_norm(x, 2), lambda x: F.instance_norm(x), lambda x: torch.stack(x.unbind(1)[::-1], 1),
    lambda x: torch.cat(x.split([1, 2, 3], 2)[::-1], 2), lambda x: x.gather(2, torch.tensor([[[5, 0, 1, 1, 2, 3]]]).expand(x.shape[0], 4, 6)),
]
TWO = [
    torch.add, torch.sub, lambda x, y: x * torch.tanh(y), torch.maximum, torch.minimum, lambda x, y: torch.where(x.abs() > y.abs(), x, y),
    lambda x, y: x / (y.abs() + 1), lambda x, y: (x + y) * 0.5, lambda x, y: torch.cat([x, y], 1)[:, 1:5],
    lambda x, y: torch.pow(x.abs() + 0.5, torch.sigmoid(y)), lambda x, y: x * (y >= 0).to(x.dtype),
]


class RandomGraph(torch.nn.Module):
    def __init__(self, seed):
        super().__init__()
        chance = random.Random(seed)
        self.steps = []
        for i in range(NODES):
            inputs = [chance.randrange(max(0, i - 3), i + 1)]
            if chance.random() < 0.4:
                inputs.append(chance.randrange(i + 1))
            self.steps.append((chance.choice(ONE if len(inputs) == 1 else TWO), inputs))

    def forward(self, x):
        values = [x]
        for function, inputs in self.steps:
            values.append(function(*(values[i] for i in inputs)))
        return values[-1] + 0 * values[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=os.path.join(os.path.dirname(__file__), "../random"))
    folder = parser.parse_args().folder
    warnings.simplefilter("ignore")
    written = 0
    for seed in range(SEED, SEED + GRAPHS):
        graph = RandomGraph(seed).eval()
        torch.manual_seed(seed)
        # Coarse numbers: no input lies within rounding errors of a threshold.
        x = torch.round(torch.randn(3, *SHAPE) * 16) / 16 + 1 / 64
        name, opset = f"{folder}/graph{seed:02}", 11 + seed % 7
        try:
            torch.onnx.export(graph, x, name + ".onnx", opset_version=opset, input_names=["x"], output_names=["y"],
                              dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
        except Exception as error:  # an operator that this exporter lacks in this operator set
            print(f"graph{seed}: {str(error).splitlines()[0]}")
            if os.path.exists(name + ".onnx"):
                os.remove(name + ".onnx")
            continue
        model = onnx.load(name + ".onnx")
        for node in model.graph.node:
            node.doc_string = ""
        onnx.save(model, name + ".onnx")
        y = graph(x.double()).float().numpy()
        numpy.savez_compressed(name + ".npz", x=x.numpy(), y=y)
        written += 1
    print(f"{written} graphs")


if __name__ == "__main__":
    main()
