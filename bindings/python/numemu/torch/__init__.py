"""The matrix products of a live torch.nn.Module under a recipe.

    import numemu.torch
    emulation = numemu.torch.emulate(net, "fp8-e4m3-h100", calibrate=batches)
    y = net(x)                                     # products on the unit, all else PyTorch's
    for layer in emulation.layers(batches):        # as `numemu infer --json` shows them
        print(layer["name"], layer["sqnr_db"])
    emulation.remove()

Linear, Conv1d/2d/3d, RNN, LSTM, GRU and attention, and what modules call themselves: linear, matmul, @, mm, bmm, addmm, baddbmm.
Given the same operands, a product has the bits of `numemu infer`; in training, backward those of `numemu train`.
"""
try:
    import torch
except ImportError as error:
    raise ImportError(
        "numemu.torch: PyTorch is not installed; on Debian and Ubuntu: apt install python3-torch, "
        "elsewhere: pip install torch --index-url https://download.pytorch.org/whl/cpu"
    ) from error

from ._emulation import Emulation

__all__ = ["Emulation", "emulate"]


def emulate(module: torch.nn.Module, recipe, calibrate=None, batch_axis: int = 0) -> Emulation:
    """Replaces the products of `module` from its next call on, in place, until Emulation.remove().

    recipe: a name, a file or a dict (docs/recipes.md).
    calibrate: batches of the module's arguments, for static scales: each a tensor, a tuple of arguments or a dict of named ones.
        The first samples are used, as many as the recipe's calibrate.samples says.
    batch_axis: where the arguments have their samples (1 for sequences before the batch).

    In module.train() with gradients the products are those of training, forward and backward; else those of inference, with
    frozen weights and static scales. Raises numemu.Error where the recipe does not fit the module.
    """
    return Emulation(module, recipe, calibrate, batch_axis)
