"""numemu: low-precision number formats, matrix units and networks on them, bit for bit.

    import numemu
    codes = numemu.format("e4m3fn").encode(x)          # float8_e4m3fn of the numbers x
    d = numemu.unit("h100.wgmma.e4m3.f32").gemm(a, b)  # what the tensor core computes

Arrays are NumPy's, or CPU tensors of torch, used where they are if they lie in C order. Long calls release the interpreter's
lock and compute over threads; results are the same bits for any number of them. What is wrong raises numemu.Error.
"""
from ._core import (
    BlockFormat,
    Error,
    Format,
    Quantized,
    Unit,
    __version__,
    block_formats,
    counts,
    decode,
    encode,
    error,
    format,
    formats,
    mask,
    set_threads,
    unit,
    units,
    verify,
)
from ._records import Trace, Verified
from .analysis import best_scale, errors
from .networks import Inferred, Network, Prepared, load, recipe, recipes, train
from .studies import Report, Study, experiment, experiments, frame, report, rows, sweep
from .vectors import Vectors, vectors

from . import masks, style, testing  # noqa: E402  (they use what stands above)

import os as _os  # noqa: E402

# A forked process has one thread: a team of more would wait for those that its parent has.
_os.register_at_fork(after_in_child=lambda: set_threads(1))
