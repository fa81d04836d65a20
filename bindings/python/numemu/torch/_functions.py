"""What each intercepted function of PyTorch does: its products by Emulation.product(), all else in PyTorch."""
import math
import types

import torch
import torch.nn.functional as F

from .._views import usage


def linear(run, input, weight, bias=None):
    name = run.weight_name(weight, "linear")
    flat = input.unsqueeze(0) if input.dim() == 1 else input
    y = run.product(name, "linear", flat, weight)
    y = y if bias is None else y + bias
    run.output(name, y)
    return y.squeeze(0) if input.dim() == 1 else y


def conv(run, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    axes = weight.dim() - 2
    each = lambda value: list(value) * (axes // len(value)) if isinstance(value, (tuple, list)) else [value] * axes
    strides, dilations = each(stride), each(dilation)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:])]
        pads = [(t // 2, t - t // 2) for t in total]
    else:
        pads = [(p, p) for p in each(0 if padding == "valid" else padding)]
    name = run.weight_name(weight, "conv")
    x = input if input.dim() == axes + 2 else input.unsqueeze(0)
    y = run.product(
        name,
        "conv",
        x.movedim(1, -1),
        weight.movedim(1, -1),
        axes=[(s, d, *p) for s, d, p in zip(strides, dilations, pads)],
        groups=groups,
    ).movedim(-1, 1)
    y = y if bias is None else y + bias.view(-1, *[1] * axes)
    run.output(name, y)
    return y if input.dim() == axes + 2 else y.squeeze(0)


def matmul(run, input, other, *, out=None, kind="matmul", second=None):
    if other.dim() == 2 and input.dim() >= 2 and run.is_weight(other):
        return linear(run, input, other.t())
    if run.attention:  # of torch.nn.MultiheadAttention
        kind, second = run.attention.pop(0)
    a = input.unsqueeze(0) if input.dim() == 1 else input
    b = other.unsqueeze(1) if other.dim() == 1 else other
    shape = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    single = [math.prod(x.shape[:-2]) == 1 for x in (a, b)]
    if a.shape[:-2] != b.shape[:-2] and not any(single):
        a, b = (run.tag(x.expand(*shape, *x.shape[-2:]), x) for x in (a, b))
    # Heads beside the samples, as torch.nn.MultiheadAttention has them, are matrices of their sample.
    if a.dim() == b.dim() == 3 and len(a) == len(b) != run.samples and len(a) % run.samples == 0:
        a, b = (run.tag(x.unflatten(0, (run.samples, -1)), x) for x in (a, b))
    name = run.free_name(kind)
    product = run.product(name, "matmul", a, b, second=second)
    run.output(name, product)
    y = product.reshape(*shape, *product.shape[-2:])
    y = y.squeeze(-2) if input.dim() == 1 else y
    return run.tag(y.squeeze(-1) if other.dim() == 1 else y, product)


def addmm(run, input, mat1, mat2, *, beta=1, alpha=1, kind="addmm"):
    y = matmul(run, mat1, mat2, kind=kind)
    return run.tag((input if beta == 1 else beta * input) + (y if alpha == 1 else alpha * y), y)


def named(function, kind):
    return lambda run, *args, **options: function(run, *args, kind=kind, **options)


def attention(run, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    """softmax(q k^T scale + mask) v, and the softmax; query [.., l, e], key [.., s, e], value [.., s, d]."""
    if enable_gqa:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = (x.repeat_interleave(repeats, -3) for x in (key, value))
    run.attention = []
    scores = matmul(run, query, key.transpose(-2, -1), kind="qk", second="key")
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = torch.softmax(scores, -1)
    kept = F.dropout(weights, dropout_p) if dropout_p > 0 else weights
    return matmul(run, kept, value, kind="pv", second="value"), weights


def fused_attention(run, *args, **options):
    return attention(run, *args, **options)[0]


def fused_attention_1(run, q, k, v, attn_mask=None, dropout_p=0.0, need_attn_weights=False, is_causal=False):
    return attention(run, q, k, v, attn_mask, dropout_p, is_causal)


def heads():
    """torch.nn.MultiheadAttention, whose function is written in Python: with its own calls intercepted."""
    function = F.multi_head_attention_forward
    inside = dict(function.__globals__)
    inside.update({name: lambda *_: False for name in inside if name.startswith("has_torch_function")})
    body = types.FunctionType(function.__code__, inside, function.__name__, function.__defaults__, function.__closure__)
    body.__kwdefaults__ = function.__kwdefaults__

    def again(run, *args, **options):
        run.attention = [("qk", "key"), ("pv", "value")]
        try:
            with run.interceptor():
                return body(*args, **options)
        finally:
            run.attention = []

    return again


def _lstm(sums, own, h, c):
    i, f, g, o = (sums if own is None else sums + own).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def _gru(sums, own, h, c):
    (r, z, n), (own_r, own_z, own_n) = sums.chunk(3, -1), own.chunk(3, -1)
    r, z = torch.sigmoid(r + own_r), torch.sigmoid(z + own_z)
    h = (1 - z) * torch.tanh(n + r * own_n) + z * h
    return h, h


def _plain(act):
    def cell(sums, own, h, c):
        h = act(sums if own is None else sums + own)
        return h, h

    return cell


def _direction(run, cell, x, sizes, h, c, weights, reverse):
    """One layer in one direction over x [batch, time, in], or packed [rows, in] of those sizes; h, c [batch, hidden]."""
    weight, recurrent, *rest = weights
    bias, own_bias = rest[:2] if len(rest) > 1 else (weight.new_zeros(len(weight)),) * 2
    project = rest[-1] if len(rest) % 2 else None
    input_name, name = run.weight_name(weight, "input"), run.weight_name(recurrent, "recurrent")
    sums = run.product(input_name, "linear", x, weight)
    run.output(input_name, sums)
    # Only the GRU has the recurrent sums apart.
    sums = sums + (bias if cell is _gru else bias + own_bias)
    steps = list(enumerate(sums.unbind(1) if sizes is None else sums.split(sizes)))
    # There is no product before the second step where the states begin as zeros.
    lead = 0 if h.requires_grad or h.any() else 1
    count = len(steps) - lead
    of_all = run.all_steps(name, recurrent)
    results = [None] * len(steps)
    for n, (t, row) in enumerate(reversed(steps) if reverse else steps):
        rows, own = len(row), None
        if n >= lead:
            own = run.product(name, "linear", h[:rows], of_all[0], repetition=(n - lead, count), steps=of_all[1])
            run.output(name, own)
        if cell is _gru:
            own = own_bias.expand_as(row) if own is None else own + own_bias
        new, cells = cell(row, own, h[:rows], c[:rows])
        new = new if project is None else linear(run, new, project)
        results[t] = new
        h, c = (torch.cat([first, last[rows:]]) if rows < len(last) else first for first, last in ((new, h), (cells, c)))
    return torch.stack(results, 1) if sizes is None else torch.cat(results), h, c


def recurrent(cell, has_cells=False):
    def run_layers(run, *args):
        if isinstance(args[3], bool):
            x, states, weights, _, layers, dropout, training, bidirectional, batch_first = args
            sizes = None
            x = x if batch_first else x.transpose(0, 1)
        else:
            x, sizes, states, weights, _, layers, dropout, training, bidirectional = args
            sizes, batch_first = sizes.tolist(), True
        directions = 2 if bidirectional else 1
        each = len(weights) // (layers * directions)
        h, c = states if has_cells else (states, states)
        out_h, out_c = [], []
        for layer in range(layers):
            results = []
            for i in range(layer * directions, (layer + 1) * directions):
                y, last_h, last_c = _direction(
                    run, cell, x, sizes, h[i], c[i], weights[i * each : (i + 1) * each], i % directions == 1
                )
                results.append(y)
                out_h.append(last_h)
                out_c.append(last_c)
            x = results[0] if directions == 1 else torch.cat(results, -1)
            if training and dropout > 0 and layer + 1 < layers:
                x = F.dropout(x, dropout)
        y = x if batch_first else x.transpose(0, 1)
        return (y, torch.stack(out_h), torch.stack(out_c)) if has_cells else (y, torch.stack(out_h))

    return run_layers


def recurrent_cell(cell, has_cells=False):
    def run_cell(run, x, states, weight, own_weight, bias=None, own_bias=None):
        h, c = states if has_cells else (states, states)
        new, cells = cell(linear(run, x, weight, bias), linear(run, h, own_weight, own_bias), h, c)
        return (new, cells) if has_cells else new

    return run_cell


def refuse(what):
    def raise_error(run, *args, **options):
        raise usage(f"numemu.torch: {what} computes products that cannot be emulated")

    return raise_error


def functions():
    """By function of PyTorch, what is called instead."""
    table = {
        F.linear: linear,
        torch.conv1d: conv,
        torch.conv2d: conv,
        torch.conv3d: conv,
        F.multi_head_attention_forward: heads(),
        torch.lstm: recurrent(_lstm, True),
        torch.gru: recurrent(_gru),
        torch.rnn_tanh: recurrent(_plain(torch.tanh)),
        torch.rnn_relu: recurrent(_plain(torch.relu)),
        torch.lstm_cell: recurrent_cell(_lstm, True),
        torch.gru_cell: recurrent_cell(_gru),
        torch.rnn_tanh_cell: recurrent_cell(_plain(torch.tanh)),
        torch.rnn_relu_cell: recurrent_cell(_plain(torch.relu)),
    }
    for kind in ("matmul", "mm", "bmm"):
        for owner in (torch, torch.Tensor):
            table[getattr(owner, kind)] = named(matmul, kind)
    for kind in ("__matmul__", "__rmatmul__"):
        table[getattr(torch.Tensor, kind)] = named(matmul, "matmul")
    table[torch.linalg.matmul] = named(matmul, "matmul")
    for kind in ("addmm", "baddbmm"):
        for owner in (torch, torch.Tensor):
            table[getattr(owner, kind)] = named(addmm, kind)
    for name, function in (("_scaled_dot_product_attention", fused_attention_1), ("scaled_dot_product_attention", fused_attention)):
        if hasattr(torch._C._nn, name):
            table[getattr(torch._C._nn, name)] = function
    for name in ("_native_multi_head_attention", "_transformer_encoder_layer_fwd"):
        if hasattr(torch, name):
            table[getattr(torch, name)] = refuse(name)
    return table


# Products that stay in float32; Emulation.float32 names those that ran.
LEFT = {
    "einsum", "bilinear", "tensordot", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "addbmm", "addmv", "mv", "dot",
    "inner", "outer", "ger", "vdot", "chain_matmul", "multi_dot", "conv_tbc", "_convolution", "convolution", "cdist",
}  # fmt: skip
# What may stand between the products of attention and its softmax.
PASSES = {
    "add", "sub", "mul", "div", "true_divide", "truediv", "masked_fill", "where", "dropout", "view", "reshape", "transpose",
    "permute", "contiguous", "clone", "unsqueeze", "squeeze", "flatten", "unflatten", "to", "float", "rsub", "radd", "rmul", "expand",
}  # fmt: skip
