#!/usr/bin/env python3
# Writes the small networks of tests/onnx/gradients with PyTorch's gradients, and prints how far numemu's are from them.
# In the root: python3 tests/onnx/export/gradients.py [--write] (needs PyTorch), after a build of net_test.
import argparse
import os
import subprocess
import sys
import warnings

import numpy

try:
    import torch
    import torch.nn.functional as F
    from torch import nn

    import cases
    import transformers as t
    from products import Fn
except ModuleNotFoundError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

FOLDER = "tests/onnx/gradients"
BATCH = 3


def bottleneck():
    def forward(m, x):
        y = m.down(x)
        z = m.n3(m.c3(F.relu(m.n2(m.c2(F.relu(m.n1(m.c1(y))))))))
        return m.fc(F.relu(z + y).mean((2, 3)))

    return Fn(forward, down=nn.Conv2d(3, 8, 3, 2, 1), c1=nn.Conv2d(8, 4, 1, bias=False), n1=nn.BatchNorm2d(4), c2=nn.Conv2d(4, 4, 3, padding=1),
              n2=nn.BatchNorm2d(4), c3=nn.Conv2d(4, 8, 1), n3=nn.BatchNorm2d(8), fc=nn.Linear(8, 5))


def inverted():
    def forward(m, x):
        y = F.hardswish(m.n1(m.expand(x)))
        y = F.hardswish(m.n2(m.depth(y)))
        y = y * F.hardsigmoid(m.e2(F.relu(m.e1(F.adaptive_avg_pool2d(y, 1)))))
        return m.fc(F.max_pool2d(m.project(y), 2).flatten(1))

    return Fn(forward, expand=nn.Conv2d(4, 8, 1), n1=nn.BatchNorm2d(8), depth=nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False),
              n2=nn.BatchNorm2d(8), e1=nn.Conv2d(8, 3, 1), e2=nn.Conv2d(3, 8, 1), project=nn.Conv2d(8, 4, 1), fc=nn.Linear(16, 3))


def unet():
    def forward(m, x):
        low = F.leaky_relu(m.down(x), 0.1)
        up = F.interpolate(m.up(low), size=(8, 8), mode="bilinear", align_corners=False)
        return m.out(torch.cat([up, m.skip(x)], 1))

    return Fn(forward, down=nn.Conv2d(2, 5, 3, 2, 1), up=nn.ConvTranspose2d(5, 4, 3, 2, 1), skip=nn.PReLU(2), out=nn.Conv2d(6, 3, 1))


def spatial():
    def forward(m, x, grid):
        return m.after(F.grid_sample(m.before(x), grid, mode="bilinear", padding_mode="zeros", align_corners=False))

    return Fn(forward, before=nn.Conv2d(2, 3, 3, padding=1), after=nn.Sequential(nn.InstanceNorm2d(3, affine=True), nn.ELU(), nn.Conv2d(3, 2, 1)))


def stacked():
    def forward(m, x):
        y = torch.einsum("nid,ijdk->nijk", m.into(x), m.capsules).transpose(1, 2)
        y = torch.tanh(y @ m.heads) * m.gain - m.shift
        return m.out(F.layer_norm(y, (4,), m.scale, m.bias)).mean((1, 2))

    return Fn(forward, into=nn.Linear(3, 4), capsules=torch.rand(6, 2, 4, 5), heads=torch.rand(2, 5, 4), gain=torch.rand(1, 1, 1, 4), shift=torch.rand(4),
              scale=torch.rand(4), bias=torch.rand(4), out=nn.Linear(4, 3))


def spaced(n, count):
    return torch.randint(0, count, (n, 7))


NETWORKS = {  # builder, inputs, operator set
    "bottleneck": (bottleneck, {"x": (3, 10, 10)}, 13),
    "inverted_residual": (inverted, {"x": (4, 4, 4)}, 14),
    "unet": (unet, {"x": (2, 8, 8)}, 13),
    "wave": (lambda: nn.Sequential(nn.Conv1d(3, 6, 5, stride=2, padding=2), nn.GroupNorm(2, 6), nn.SiLU(), nn.AvgPool1d(2), nn.Flatten(),
                                   nn.Linear(18, 4)), {"x": (3, 12)}, 12),
    "volume": (lambda: nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.Softplus(), nn.MaxPool3d(2), nn.Flatten(),
                                     nn.Linear(32, 3)), {"x": (2, 4, 4, 4)}, 12),
    "lstm": (lambda: Fn(lambda m, x: m.fc(m.lstm(x)[0][:, -1]), lstm=nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), fc=nn.Linear(10, 3)),
             {"x": (6, 4)}, 14),
    "gru": (lambda: Fn(lambda m, x: m.fc(m.gru(x)[0].mean(1)), gru=nn.GRU(3, 6, batch_first=True), fc=nn.Linear(6, 2)), {"x": (5, 3)}, 14),
    "vit": (lambda: t.ViT(8, 4, 12, 2, 3, 5), {"x": (3, 8, 8)}, 17),
    "gpt": (lambda: t.GPT2(11, 7, 12, 2, 3), {"tokens": lambda n: spaced(n, 11)}, 13),
    "bert": (lambda: Fn(lambda m, tokens, mask: m.bert(tokens, mask)[1], bert=t.BERT(13, 7, 12, 2, 3)),
             {"tokens": lambda n: spaced(n, 13), "mask": cases.padding_mask(7, padded=0)}, 14),
    "llama": (lambda: t.Llama(9, 16, 1, 2), {"tokens": lambda n: spaced(n, 9)}, 15),
    "einsum": (lambda: Fn(lambda m, x: torch.einsum("bij,jk,bik->bk", x, m.w, m.l(x)), w=torch.rand(4, 3), l=nn.Linear(4, 3)), {"x": (5, 4)}, 12),
    "stacked": (stacked, {"x": (6, 3)}, 13),
    "spatial": (spatial, {"x": (2, 6, 6), "grid": (5, 4, 2)}, 16),
    "response": (lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.LocalResponseNorm(3, 0.1), nn.Tanh(), nn.ZeroPad2d((1, 0, 2, 1)), nn.AvgPool2d(3, 2),
                                       nn.Flatten(), nn.Linear(24, 3), nn.LogSoftmax(-1)), {"x": (2, 5, 7)}, 11),
}


def distinct(module):
    """Every element of every parameter differs from all others: files find gradients by the values, whatever the layout.
    Weights lie in (-0.5, 0.5); vectors that scale normalised values in (0.5, 1.5)."""
    parameters = list(dict.fromkeys(module.parameters()))
    count = sum(p.numel() for p in parameters)
    assert count < 1 << 15, count
    values = (torch.randperm(count) + 0.25 + torch.rand(count) / 2) / count - 0.5  # no sum of two is a third
    for p in parameters:
        mine, values = values[:p.numel()], values[p.numel():]
        p.data = mine.reshape(p.shape).clone()
    for m in module.modules():
        if "Norm" in type(m).__name__ and getattr(m, "weight", None) is not None:
            m.weight.data += 1
    return parameters


def write(name):
    torch.manual_seed(sum(name.encode()))
    build, shapes, opset = NETWORKS[name]
    module = build()
    parameters = distinct(module)
    inputs = {k: make(BATCH) if callable(make) else torch.rand(BATCH, *make) * 2 - 1 for k, make in shapes.items()}
    module.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, tuple(inputs.values()), f"{FOLDER}/{name}.onnx", opset_version=opset, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE, input_names=list(inputs), output_names=["y"],
                          dynamic_axes={k: {0: "batch"} for k in [*inputs, "y"]})
    module.train()  # as numemu trains: statistics of the batch
    y = module(*inputs.values())
    cotangent = torch.rand(y.shape) * 2 - 1
    (y * cotangent).sum().backward()
    arrays = {f"in.{k}": v.float().numpy() for k, v in inputs.items()}
    arrays["cotangent"] = cotangent.numpy()
    arrays["values"] = torch.cat([p.data.flatten() for p in parameters]).numpy()
    arrays["gradients"] = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]).numpy()
    numpy.savez_compressed(f"{FOLDER}/{name}.npz", **arrays)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the networks anew")
    parser.add_argument("--test", default="build/release/tests/net_test")
    options = parser.parse_args()
    os.makedirs(FOLDER, exist_ok=True)
    for name in NETWORKS if options.write else ():
        write(name)
    print("network              parameters  untrained  relative error of the gradient")
    sys.stdout.flush()
    return subprocess.run([options.test, "-#", "[#import_gradients_test]", "-o", os.devnull],
                          env={**os.environ, "NUMEMU_GRADIENTS": "/dev/stdout"}).returncode


if __name__ == "__main__":
    sys.exit(main())
