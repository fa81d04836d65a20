"""Products as autograd functions. Operands are float32 CPU tensors; a result is numemu's memory."""
import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


def array_of(tensor):
    """The elements in C order, where they are if they lie so."""
    return tensor.detach().contiguous().numpy()


def plain(layer, left, right):
    """The product in PyTorch."""
    if layer.kind == "linear":
        return F.linear(left, right)
    if layer.kind == "matmul":
        return torch.matmul(left, right.transpose(-2, -1) if layer.transpose_b else right)
    pads = [pad for axis in reversed(layer.axes) for pad in axis[2:]]
    x = F.pad(left.movedim(-1, 1), pads)
    convolve = (F.conv1d, F.conv2d, F.conv3d)[len(layer.axes) - 1]
    strides, dilations = ([axis[i] for axis in layer.axes] for i in (0, 1))
    return convolve(x, right.movedim(-1, 1), None, strides, 0, dilations, layer.groups).movedim(1, -1)


class Product(torch.autograd.Function):
    """The product of layer number `index`; see api/products.hpp for the shapes.

    call: mode, step or first sample, repetition, repetitions. steps: None, or where backward leaves both operands of the
    gradient of `right`, which AllSteps multiplies.
    """

    @staticmethod
    def forward(ctx, left, right, products, index, call, steps):
        left, right = left.contiguous(), right.contiguous()
        result = products.forward(index, *call, array_of(left), array_of(right))
        if any(ctx.needs_input_grad[:2]):
            ctx.products, ctx.index, ctx.call, ctx.steps = products, index, call, steps
            ctx.save_for_backward(left, right)  # where they lie: changing them before backward is PyTorch's error
        return torch.from_numpy(result)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        left, right = ctx.saved_tensors
        want_left, want_right = ctx.needs_input_grad[:2]
        if ctx.steps is not None and want_right:
            ctx.steps.append((ctx.call[2], left, gradient))
            want_right = False
        grads = [None, None]
        if want_left or want_right:
            made = ctx.products.backward(
                ctx.index, *ctx.call, array_of(left), array_of(right), array_of(gradient), want_left, want_right
            )
            grads = [torch.from_numpy(made[i]) if want else None for i, want in enumerate((want_left, want_right))]
        return (*grads, None, None, None, None)


class AllSteps(torch.autograd.Function):
    """A recurrent weight [out, in] for its products, whose gradient is one product over all steps, the sample before the step."""

    @staticmethod
    def forward(ctx, weight, products, index, call, steps):
        ctx.products, ctx.index, ctx.call, ctx.steps = products, index, call, steps
        ctx.save_for_backward(weight)
        return weight.view_as(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx, _):
        (weight,) = ctx.saved_tensors
        if not ctx.steps:
            return torch.zeros_like(weight), None, None, None, None
        ctx.steps.sort(key=lambda step: step[0])
        states, gradients = ([step[i] for step in ctx.steps] for i in (1, 2))
        ctx.steps.clear()
        even = all(len(state) == len(states[0]) for state in states)
        join = (lambda parts: torch.stack(parts, 1)) if even else torch.cat
        _, gradient = ctx.products.backward(
            ctx.index, *ctx.call, array_of(join(states)), array_of(weight), array_of(join(gradients)), False, True
        )
        return torch.from_numpy(gradient), None, None, None, None
