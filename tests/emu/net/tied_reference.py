#!/usr/bin/env python3
# Writes tests/emu/net/tied_reference.hpp: gradients, SGD and Adam steps of a network with tied weights, by PyTorch's autograd and optimizers.
# In the root: python3 tests/emu/net/tied_reference.py (needs PyTorch; written with 1.13).
import sys

try:
    import torch
    import torch.nn.functional as F
except ModuleNotFoundError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

V, D, K, N, T, STEPS, RATE = 6, 4, 5, 8, 3, 3, 0.05


def numbers(seed, *shape):
    count = torch.Size(shape).numel()
    return torch.tensor([(i * 7919 + seed * 104729) % 1009 / 504.5 - 1 for i in range(count)]).reshape(shape)


def parameters():
    return {name: numbers(seed, *shape).requires_grad_() for name, seed, shape in (("table", 1, (V, D)), ("twice", 2, (D, D)), ("code", 3, (D, K)))}


# Every weight is read twice: the table also gives the logits, "twice" is a layer passed two times, "code" also decodes.
def loss(p):
    ids = torch.tensor([(5 * i + 3) % V for i in range(N * T)]).reshape(N, T)
    classes = torch.tensor([(7 * i + 2) % V for i in range(N)])
    h = p["table"][ids].mean(1)
    h = torch.tanh(torch.tanh(h @ p["twice"]) @ p["twice"])
    h = torch.tanh(h @ p["code"]) @ p["code"].t()
    return F.cross_entropy(h @ p["table"].t(), classes)


def after(make):
    p = parameters()
    optimizer = make(p.values())
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(p).backward()
        optimizer.step()
    return p


def row(name, tensor):
    texts = [f"{x:.9g}" for x in tensor.detach().flatten().tolist()]
    texts = [t if "." in t or "e" in t else t + ".0" for t in texts]
    return f"inline constexpr float k{name}[] = {{{', '.join(t + 'f' for t in texts)}}};"


lines = ["// Written by tests/emu/net/tied_reference.py with PyTorch " + torch.__version__.split("a")[0] + ".", "#pragma once", "",
         "// clang-format off", "namespace numemu::net::tied_reference {", ""]
p = parameters()
loss(p).backward()
for title, found in (("Gradient", {name: x.grad for name, x in p.items()}),
                     ("Sgd", after(lambda own: torch.optim.SGD(own, RATE, momentum=0.9))),
                     ("Adam", after(lambda own: torch.optim.Adam(own, RATE)))):
    lines += [row(name.capitalize() + title, x) for name, x in found.items()]
lines += ["", "}  // namespace numemu::net::tied_reference", "// clang-format on", ""]
open("tests/emu/net/tied_reference.hpp", "w").write("\n".join(lines))
