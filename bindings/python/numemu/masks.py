"""Masks: which elements a rule keeps, and how many masks a pattern admits.

    numemu.mask(w, "transposable(2:4)").keep      # bool, of the shape of w
    numemu.masks.count("transposable", "2:4")     # 90 masks of a tile of 4 x 4
"""
from typing import NamedTuple, Optional

import numpy as np

from ._core import count_masks as count
from ._core import mask

__all__ = ["Masked", "MaskCount", "count", "mask"]


class Masked(NamedTuple):
    """An array under a mask."""

    rule: str  #: canonical text of the rule
    values: np.ndarray  #: float32, +0 where pruned
    keep: np.ndarray  #: bool, where kept
    kept: int  #: elements


class MaskCount(NamedTuple):
    """A number of masks."""

    elements: int  #: that one mask is about
    count: Optional[int]  #: exactly; None beyond 2000 digits
    log10: float
    log2: float
    log10_per_block: float  #: of the masks per 64 elements, as diversity is published
