#!/usr/bin/env python3
# Writes the small networks of tests/onnx/products: convolutions, pooling, recurrent layers, products of matrices and attention, exported by
# PyTorch 1.13 or written by hand for later operator sets, with inputs and PyTorch's outputs. Run it in the root: python3 tests/onnx/export/products.py
import os
import random
import warnings

import numpy
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from torch import nn

FOLDER = "tests/onnx/products"
BATCH = 2


class Fn(nn.Module):
    """A function with the modules that it calls."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, nn.Parameter(module) if isinstance(module, torch.Tensor) else module)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def packed(layer, x, lengths):
    """What a recurrent layer gives for sequences of these lengths, falling."""
    directions = 2 if layer.bidirectional else 1
    zeros = torch.zeros(layer.num_layers * directions, x.shape[0], layer.hidden_size)
    y, state = layer(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True), zeros if isinstance(layer, nn.GRU) else (zeros, zeros))
    return nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0], state


def save(name, inputs, outputs):
    arrays = {f"in.{k}": v.numpy() for k, v in inputs.items()}
    arrays.update({f"out.{k}": v.numpy() for k, v in outputs.items()})
    numpy.savez_compressed(f"{FOLDER}/{name}.npz", **arrays)


def export(name, module, shapes, opset, fixed=False, names=("y",), axes=None):
    """`shapes`: of one sample, by input. `axes`: the axis of the batch of an output, 0 where it is not given."""
    torch.manual_seed(sum(name.encode()))
    for parameter in module.parameters():
        parameter.data.uniform_(-0.5, 0.5)
    module.eval()
    inputs = {k: make(BATCH) if callable(make) else torch.rand(BATCH, *make) * 2 - 1 for k, make in shapes.items()}
    with torch.no_grad():
        result = module(*inputs.values())
    flat = []

    def collect(value):
        flat.append(value) if isinstance(value, torch.Tensor) else [collect(v) for v in value]

    collect(result)
    dynamic = {}
    if not fixed:
        dynamic = {k: {0: "batch"} for k in inputs}
        dynamic.update({k: {(axes or {}).get(k, 0): "batch"} for k in names})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, tuple(inputs.values()), f"{FOLDER}/{name}.onnx", opset_version=opset,
                          input_names=list(inputs), output_names=list(names), dynamic_axes=dynamic)
    save(name, inputs, dict(zip(names, flat)))


def by_hand(name, opset, nodes, shapes, initializers, outputs, reference):
    """A graph of nodes (operator, inputs, outputs, attributes) with open batch; `reference` computes the outputs."""
    torch.manual_seed(sum(name.encode()))
    inputs = {k: torch.rand(BATCH, *shape) * 2 - 1 for k, shape in shapes.items()}
    graph = helper.make_graph(
        [helper.make_node(op, list(i), list(o), name=f"{op}_{n}", **a) for n, (op, i, o, a) in enumerate(nodes)], name,
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, ["batch", *shape]) for k, shape in shapes.items()],
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, None) for k in outputs],
        [numpy_helper.from_array(v.numpy() if isinstance(v, torch.Tensor) else numpy.array(v), k) for k, v in initializers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    onnx.save(model, f"{FOLDER}/{name}.onnx")
    with torch.no_grad():
        result = reference(*inputs.values())
    save(name, inputs, dict(zip(outputs, result if isinstance(result, (tuple, list)) else [result])))


def convolutions():
    export("conv1d", nn.Sequential(nn.Conv1d(3, 6, 5, stride=2, padding=2), nn.BatchNorm1d(6), nn.ReLU(), nn.MaxPool1d(3, 2, 1),
                                   nn.Conv1d(6, 4, 3, padding=1, dilation=1, groups=2), nn.AvgPool1d(2, 2), nn.Flatten(), nn.Linear(12, 5)),
           {"x": (3, 24)}, 13)
    export("conv1d_causal", Fn(lambda m, x: m.a(F.pad(x, (4, 0))) + x, a=nn.Conv1d(4, 4, 3, dilation=2)), {"x": (4, 10)}, 11)
    export("conv1d_tokens", Fn(lambda m, x: m.l(m.c(x.transpose(1, 2)).transpose(1, 2)), c=nn.Conv1d(6, 5, 3, padding=1), l=nn.Linear(5, 4)),
           {"x": (7, 6)}, 14)
    export("conv3d", nn.Sequential(nn.Conv3d(2, 4, 3, padding=1, bias=False), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2),
                                   nn.Conv3d(4, 4, (1, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1), groups=4), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
                                   nn.Linear(4, 3)), {"x": (2, 4, 6, 6)}, 12)
    export("conv3d_average", nn.Sequential(nn.Conv3d(1, 2, 2), nn.AvgPool3d((2, 3, 2), (1, 2, 2), (1, 1, 0))), {"x": (1, 4, 7, 5)}, 10)
    export("transpose1d", nn.Sequential(nn.ConvTranspose1d(3, 4, 4, stride=2, padding=1), nn.LeakyReLU(), nn.ConvTranspose1d(4, 2, 3, 3, output_padding=2)),
           {"x": (3, 5)}, 9)
    export("transpose2d", nn.Sequential(nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2), dilation=(2, 1), groups=2),
                                        nn.ReLU(), nn.Conv2d(6, 3, 3, padding=1)), {"x": (4, 3, 4)}, 11)
    export("transpose3d", nn.ConvTranspose3d(2, 3, (2, 3, 2), stride=(2, 1, 2), padding=(0, 1, 1)), {"x": (2, 3, 3, 4)}, 13)
    export("unet", Fn(lambda m, x: m.out(torch.cat([m.up(F.relu(m.down(x))), x], 1)), down=nn.Conv2d(3, 6, 3, 2, 1),
                      up=nn.ConvTranspose2d(6, 5, 2, 2), out=nn.Conv2d(8, 2, 1)), {"x": (3, 6, 8)}, 16)
    w = torch.rand(4, 3, 3) - 0.5
    by_hand("transpose_same_21", 21, [("ConvTranspose", ("x", "w"), ("y",), {"strides": [2], "auto_pad": "SAME_UPPER"})], {"x": (4, 5)}, {"w": w},
            ["y"], lambda x: F.conv_transpose1d(x, w, stride=2)[:, :, :10])
    k = torch.rand(3, 2, 3, 3) - 0.5
    by_hand("conv_pool_20", 20, [("Conv", ("x", "k"), ("c",), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}), ("Relu", ("c",), ("r",), {}),
                                 ("AveragePool", ("r",), ("a",), {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1], "count_include_pad": 1}),
                                 ("GlobalMaxPool", ("a",), ("y",), {})], {"x": (2, 6, 6)}, {"k": k}, ["y"],
            lambda x: F.avg_pool2d(F.pad(F.relu(F.conv2d(F.pad(x, (1, 0, 1, 0)), k, stride=2)), (0, 1, 0, 1)), 2, 1).amax((2, 3), keepdim=True))


def recurrent():
    last = {"h": 1, "c": 1}
    export("lstm", nn.LSTM(4, 5, batch_first=True), {"x": (6, 4)}, 13, names=("y", "h", "c"), axes=last)
    export("lstm_bidirectional", Fn(lambda m, x: m.fc(m.lstm(x)[0][:, -1]), lstm=nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True),
                                    fc=nn.Linear(10, 3)), {"x": (6, 4)}, 14)
    export("lstm_state", Fn(lambda m, x, h, c: m.lstm(x, (h.unsqueeze(0), c.unsqueeze(0))), lstm=nn.LSTM(3, 4, batch_first=True)),
           {"x": (5, 3), "h0": (4,), "c0": (4,)}, 11, names=("y", "h", "c"), axes=last)
    export("lstm_learned_state", Fn(lambda m, x: m.lstm(x, (m.h.expand(1, x.shape[0], 4).contiguous(), m.c.expand(1, x.shape[0], 4).contiguous()))[0],
                                    lstm=nn.LSTM(3, 4, batch_first=True), h=torch.rand(1, 1, 4), c=torch.rand(1, 1, 4)), {"x": (5, 3)}, 12)
    export("lstm_fixed", Fn(lambda m, x: m.fc(m.lstm(x)[1][0][-1]), lstm=nn.LSTM(4, 5, 2, batch_first=True), fc=nn.Linear(5, 3)), {"x": (6, 4)}, 9,
           fixed=True)
    export("lstm_time_first", Fn(lambda m, x: m.lstm(x.transpose(0, 1))[0].transpose(0, 1), lstm=nn.LSTM(4, 5, bias=False)), {"x": (6, 4)}, 15)
    export("lstm_time_axis", nn.LSTM(4, 5), {"x": lambda n: torch.rand(6, n, 4)}, 13, fixed=True, names=("y", "h", "c"))
    export("gru", nn.GRU(4, 5, batch_first=True), {"x": (6, 4)}, 13, names=("y", "h"), axes=last)
    export("gru_bidirectional", Fn(lambda m, x: m.gru(x)[0].mean(1), gru=nn.GRU(4, 3, 2, batch_first=True, bidirectional=True)), {"x": (5, 4)}, 10)
    export("gru_encoder", Fn(lambda m, t: m.fc(m.gru(m.e(t))[1][-1]), e=nn.Embedding(11, 6), gru=nn.GRU(6, 5, 1, batch_first=True), fc=nn.Linear(5, 11)),
           {"t": lambda n: torch.randint(0, 11, (n, 7))}, 16)
    export("gru_packed", Fn(lambda m, x, n: packed(m.gru, x, n)[1][-1], gru=nn.GRU(4, 5, batch_first=True)),
           {"x": (6, 4), "n": lambda n: torch.tensor([5, 2][:n])}, 11)
    export("lstm_packed", Fn(lambda m, x, n: packed(m.lstm, x, n), lstm=nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True)),
           {"x": (6, 4), "n": lambda n: torch.tensor([6, 3][:n])}, 14, names=("y", "h", "c"), axes=last)
    export("rnn", nn.RNN(4, 5, batch_first=True, nonlinearity="relu"), {"x": (4, 4)}, 13, names=("y", "h"), axes=last)
    export("rnn_tanh", nn.RNN(4, 3, batch_first=True, bidirectional=True), {"x": (4, 4)}, 9, names=("y", "h"), axes=last)
    hidden, w, r, b = 3, torch.rand(1, 9, 2) - 0.5, torch.rand(1, 9, 3) - 0.5, torch.rand(1, 18) - 0.5

    def reset_before(x):
        gates = lambda a: (a @ w[0].T + b[0, :9]).chunk(3, -1)
        h, y = torch.zeros(x.shape[0], hidden), []
        for t in reversed(range(x.shape[1])):
            z, q, n = gates(x[:, t])
            zr, qr = (h @ r[0, :6].T + b[0, 9:15]).chunk(2, -1)
            z, q = torch.sigmoid(z + zr), torch.sigmoid(q + qr)
            n = torch.tanh(n + (q * h) @ r[0, 6:].T + b[0, 15:])
            h = (1 - z) * n + z * h
            y.insert(0, h)
        return torch.stack(y, 1)[:, :, None], h[:, None]

    by_hand("gru_reset_before_21", 21, [("GRU", ("x", "w", "r", "b"), ("y", "h"), {"hidden_size": 3, "layout": 1, "direction": "reverse"})],
            {"x": (4, 2)}, {"w": w, "r": r, "b": b}, ["y", "h"], reset_before)


def matrices():
    export("einsum", Fn(lambda m, q, k: torch.einsum("bhid,bhjd->bhij", q.reshape(-1, 2, 3, 4), torch.einsum("bsc,cd->bsd", k, m.w).reshape(-1, 2, 3, 4)),
                        w=torch.rand(4, 4)), {"q": (6, 4), "k": (6, 4)}, 12)
    export("einsum_heads", Fn(lambda m, x: torch.einsum("bhsk,hkd->bsd", torch.einsum("bsd,dhk->bhsk", x, m.i), m.o), i=torch.rand(4, 2, 3),
                              o=torch.rand(2, 3, 5)), {"x": (6, 4)}, 13)
    export("einsum_open", Fn(lambda m, x: torch.einsum("...ij,...kj->...ik", x, m.w), w=torch.rand(3, 5)), {"x": (2, 4, 5)}, 14)
    a = torch.rand(3, 4) - 0.5
    by_hand("einsum_three_18", 18, [("Einsum", ("x", "a", "y"), ("o",), {"equation": "bi,ij,bj->b"}), ("Einsum", ("y",), ("s",), {"equation": "b j -> b"})],
            {"x": (3,), "y": (4,)}, {"a": a}, ["o", "s"], lambda x, y: (torch.einsum("bi,ij,bj->b", x, a, y), y.sum(1)))
    export("bilinear", Fn(lambda m, a, b: torch.einsum("bi,kij,bj->bk", a, m.w, b), w=torch.rand(2, 3, 4)), {"a": (3,), "b": (4,)}, 13)
    export("matmul_broadcast", Fn(lambda m, q, k: (q.reshape(-1, 4, 3, 2) @ k.unsqueeze(1).transpose(2, 3)) @ m.v, v=torch.rand(4, 5, 2)),
           {"q": (3, 8), "k": (5, 2)}, 13)
    export("matmul_vector", Fn(lambda m, x: (x @ m.w) @ m.v, w=torch.rand(4, 3), v=torch.rand(3)), {"x": (5, 4)}, 11)
    b, c = torch.rand(3, 4) - 0.5, torch.rand(1) - 0.5
    by_hand("gemm_19", 19, [("Gemm", ("x", "b", "c"), ("p",), {"alpha": 0.5, "beta": 2.0, "transB": 1}), ("Transpose", ("y",), ("t",), {"perm": [1, 0]}),
                            ("Gemm", ("t", "b"), ("q",), {"transA": 1, "alpha": 2.0}), ("Gemm", ("q", "b", "p"), ("o",), {"beta": 3.0, "transB": 1})],
            {"x": (4,), "y": (3,)}, {"b": b, "c": c}, ["o"], lambda x, y: (y @ b * 2) @ b.T + 3 * (0.5 * x @ b.T + 2 * c))


def attention():
    attend = lambda m, x: m.a(x, x, x, need_weights=False)[0]
    export("attention", Fn(attend, a=nn.MultiheadAttention(8, 2, batch_first=True)), {"x": (5, 8)}, 13)
    export("attention_fixed", Fn(attend, a=nn.MultiheadAttention(8, 2, batch_first=True)), {"x": (5, 8)}, 14, fixed=True)

    def masked(m, tokens, mask):
        x = m.e(tokens)
        heads = lambda y: y.view(y.shape[0], y.shape[1], 2, 4).transpose(1, 2)
        scores = heads(m.q(x)) @ heads(m.k(x)).transpose(-1, -2) / 2
        live = (1 - mask[:, None, None, :].to(scores.dtype)) * torch.finfo(torch.float32).min
        y = (scores + live).softmax(-1) @ heads(m.v(x))
        return m.o(y.transpose(1, 2).reshape(x.shape[0], x.shape[1], 8))

    def mask(n):
        out = torch.ones(n, 6, dtype=torch.int64)
        out[0, 4:] = 0
        return out

    for name, fixed in (("bert_mask", False), ("bert_mask_fixed", True)):
        export(name, Fn(masked, e=nn.Embedding(13, 8), q=nn.Linear(8, 8), k=nn.Linear(8, 8), v=nn.Linear(8, 8), o=nn.Linear(8, 8)),
               {"tokens": lambda n: torch.randint(0, 13, (n, 6)), "mask": mask}, 13, fixed=fixed)


def samples():
    for mode in ("bilinear", "nearest"):
        for border in ("zeros", "border", "reflection"):
            align = border != "border"
            export(f"grid_{mode}_{border}", Fn(lambda m, x, g: F.grid_sample(x, g * 1.7, mode, border, align)), {"x": (2, 4, 5), "g": (3, 3, 2)}, 16)


def random_graphs():
    """Chains of convolutions and pooling, contractions and recurrent layers of random shapes and attributes."""
    pick = random.Random(19)
    for n in range(10):
        axes = pick.randint(1, 3)
        size, channels, layers = [pick.randint(5, 8) for _ in range(axes)], 2 * pick.randint(1, 2), []
        x = torch.zeros(1, channels, *size)
        while len(layers) < 4:
            each = lambda low, high: tuple(pick.randint(low, high) for _ in range(axes))
            groups, more, kernel = pick.choice([1, 2]), 2 * pick.randint(1, 2), each(1, 3)
            dims = {"conv": f"Conv{axes}d", "turned": f"ConvTranspose{axes}d", "most": f"MaxPool{axes}d", "mean": f"AvgPool{axes}d"}
            kind = pick.choice(list(dims))
            if kind == "conv":
                layer = nn.Conv1d if axes == 1 else getattr(nn, dims[kind])
                layer = layer(channels, more, kernel, each(1, 2), each(0, 2), each(1, 2), groups, pick.random() < 0.5)
            elif kind == "turned":
                stride = each(1, 3)
                layer = getattr(nn, dims[kind])(channels, more, kernel, stride, tuple(pick.randint(0, k - 1) for k in kernel),
                                                tuple(pick.randint(0, s - 1) for s in stride), groups, pick.random() < 0.5)
            elif kind == "most":
                layer = getattr(nn, dims[kind])(kernel, each(1, 2), tuple(k // 2 for k in kernel))
            else:
                layer = getattr(nn, dims[kind])(kernel, each(1, 2), tuple(k // 2 for k in kernel), False, pick.random() < 0.5)
            try:
                y = layer(x)
            except RuntimeError:  # smaller than the kernel
                continue
            if y[0].numel() > 600:
                continue
            x, channels = y, y.shape[1]
            layers.append(layer)
        export(f"random_windows_{n}", nn.Sequential(*layers), {"x": (layers_input(layers), *size)}, pick.choice([9, 10, 11, 13, 16]))
    for n in range(8):
        letters = {c: pick.randint(1, 4) for c in "ijklm"}
        term = lambda: "".join(pick.sample("ijklm", pick.randint(1, 3)))
        left, right = "b" + term(), pick.choice(["b", ""]) + term()
        both = [c for c in dict.fromkeys(left + right) if c == "b" or pick.random() < 0.7]
        tail = both[1:]
        pick.shuffle(tail)
        equation = f"{left},{right}->b{''.join(tail)}"
        shape = lambda t: tuple(letters[c] for c in t.replace("b", ""))
        if right.startswith("b"):
            export(f"random_einsum_{n}", Fn(lambda m, p, q, e=equation: torch.einsum(e, p, q)), {"p": shape(left), "q": shape(right)}, 12)
        else:
            export(f"random_einsum_{n}", Fn(lambda m, p, e=equation: torch.einsum(e, p, m.w), w=torch.rand(shape(right))), {"p": shape(left)}, 13)
    for n in range(6):
        layer = pick.choice([nn.LSTM, nn.GRU])(pick.randint(1, 5), pick.randint(1, 6), pick.randint(1, 2), pick.random() < 0.5, True, 0,
                                               pick.random() < 0.5)
        export(f"random_recurrent_{n}", Fn(lambda m, x: m.layer(x)[0], layer=layer), {"x": (pick.randint(1, 6), layer.input_size)}, 14)


def dynamic(x):
    """DynamicQuantizeLinear of every sample by the formula of the specification: integers, scale, zero point."""
    flat = x.flatten(1)
    least, most = flat.amin(1).clamp(max=0), flat.amax(1).clamp(min=0)
    scale = (most - least) / 255
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = torch.round((0 - least / scale).clamp(0, 255))
    scale, zero = (v.reshape(-1, *[1] * (x.dim() - 1)) for v in (scale, zero))
    return (torch.round(x / scale) + zero).clamp(0, 255), scale, zero


def integers():
    """As onnxruntime.quantization.quantize_dynamic writes layers: integers, their product, both scales, a bias."""
    torch.manual_seed(3)
    w, zeros = torch.randint(-128, 128, (8, 5), dtype=torch.int8), torch.randint(-9, 9, (5,), dtype=torch.int8)
    scales, bias = torch.rand(5) * 0.01, torch.rand(5)

    def linear(x):
        q, scale, zero = dynamic(x)
        return ((q - zero) @ (w.float() - zeros)) * (scale * scales) + bias

    quantize = ("DynamicQuantizeLinear", ("x",), ("q", "s", "z"), {})
    rest = [("Cast", ("i",), ("f",), {"to": TensorProto.FLOAT}), ("Mul", ("s", "ws"), ("t",), {}), ("Mul", ("f", "t"), ("u",), {}),
            ("Add", ("u", "b"), ("y",), {})]
    constants = {"w": w, "wz": zeros, "ws": scales, "b": bias}
    by_hand("dynamic_linear", 11, [quantize, ("MatMulInteger", ("q", "w", "z", "wz"), ("i",), {}), *rest], {"x": (3, 8)}, constants, ["y"], linear)
    k = torch.randint(0, 256, (4, 3, 3, 3), dtype=torch.uint8)
    moved, one = k.float() - 120, torch.tensor(0.01)

    def convolution(x):
        q, scale, zero = dynamic(x)
        return F.conv2d(q - zero, moved, stride=2, padding=1) * (scale * one) + torch.arange(4.0).reshape(1, 4, 1, 1)

    by_hand("dynamic_conv", 13, [quantize, ("ConvInteger", ("q", "w", "z", "wz"), ("i",), {"pads": [1, 1, 1, 1], "strides": [2, 2]}), *rest],
            {"x": (3, 7, 6)}, {"w": k, "wz": torch.tensor(120, dtype=torch.uint8), "ws": one, "b": torch.arange(4.0).reshape(1, 4, 1, 1)},
            ["y"], convolution)


def branches():
    """If with a condition that follows from shapes; both branches have names of their own and read values outside."""
    def graph(name, nodes, constants):
        return helper.make_graph([helper.make_node(op, i, o, name=f"{name}.{op}", **a) for op, i, o, a in nodes], name, [],
                                 [helper.make_tensor_value_info(f"{name}.y", TensorProto.FLOAT, None)],
                                 [numpy_helper.from_array(v.numpy(), f"{name}.{k}") for k, v in constants.items()])

    w = torch.rand(6, 4) - 0.5
    inner = {"then_branch": graph("same", [("Relu", ["r"], ["same.y"], {})], {}),
             "else_branch": graph("turned", [("Neg", ["r"], ["turned.y"], {})], {})}
    outer = {"then_branch": graph("wide", [("MatMul", ["x", "wide.w"], ["r"], {}), ("If", ["no"], ["wide.y"], inner)], {"w": w}),
             "else_branch": graph("narrow", [("NotAnOperator", ["x"], ["narrow.y"], {})], {})}
    by_hand("if_branches", 16, [("Shape", ["x"], ["shape"], {}), ("Gather", ["shape", "one"], ["width"], {}), ("Equal", ["width", "six"], ["yes"], {}),
                                ("Not", ["yes"], ["no"], {}), ("If", ["yes"], ["z"], outer), ("Add", ["z", "c"], ["y"], {})],
            {"x": (6,)}, {"one": torch.tensor(1), "six": torch.tensor(6), "c": torch.full((4,), 0.25)}, ["y"], lambda x: 0.25 - x @ w)


def early_sets():
    """Operator sets 7 and 8, as exporters of 2018 wrote them."""
    torch.manual_seed(8)
    k, w, b = torch.rand(5, 2, 3, 3) - 0.5, torch.rand(20, 4) - 0.5, torch.rand(4)
    gain, bias, mean, variance = torch.rand(5), torch.rand(5), torch.rand(5), torch.rand(5) + 0.5

    def classifier(x):
        x = F.relu(F.batch_norm(F.conv2d(x, k, padding=1), mean, variance, gain, bias))
        return F.avg_pool2d(x, 2, 2).flatten(1) @ w + b

    constants = {"k": k, "g": gain, "h": bias, "m": mean, "v": variance, "w": w, "b": b}
    nodes = [("Conv", ("x", "k"), ("c",), {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}), ("BatchNormalization", ("c", "g", "h", "m", "v"), ("n",), {}),
             ("Relu", ("n",), ("r",), {}), ("AveragePool", ("r",), ("a",), {"kernel_shape": [2, 2], "strides": [2, 2]}),
             ("Flatten", ("a",), ("f",), {}), ("Gemm", ("f", "w", "b"), ("y",), {})]
    by_hand("classifier_7", 7, nodes, {"x": (2, 5, 4)}, constants, ["y"], classifier)
    deep = torch.rand(4, 3, 3) - 0.5

    def attention(q, v):
        return torch.softmax(q @ q.transpose(1, 2), -1) @ v + F.conv1d(v.transpose(1, 2), deep).sum(1, keepdim=True).transpose(1, 2)

    by_hand("attention_8", 8, [("Transpose", ("q",), ("t",), {"perm": [0, 2, 1]}), ("MatMul", ("q", "t"), ("s",), {}), ("Softmax", ("s",), ("p",), {"axis": 2}),
                               ("MatMul", ("p", "v"), ("o",), {}), ("Transpose", ("v",), ("vt",), {"perm": [0, 2, 1]}), ("Conv", ("vt", "d"), ("e",), {}),
                               ("ReduceSum", ("e",), ("es",), {"axes": [1], "keepdims": 1}), ("Transpose", ("es",), ("et",), {"perm": [0, 2, 1]}),
                               ("Sum", ("o", "et"), ("y",), {})], {"q": (3, 2), "v": (3, 3)}, {"d": deep}, ["y"], attention)


def layers_input(layers):
    """Channels that the first layer with weights expects, whatever pools before it."""
    return next((layer.in_channels for layer in layers if hasattr(layer, "in_channels")), 2)


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    for family in (convolutions, recurrent, matrices, attention, samples, integers, branches, early_sets, random_graphs):
        family()
    print(f"{len(os.listdir(FOLDER)) // 2} networks in {FOLDER}")
