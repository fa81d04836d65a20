"""Masks and their number."""
import itertools
import math

import numemu
import numpy as np
import pytest


def test_the_largest_of_each_group_are_kept(rng):
    w = rng.standard_normal((8, 12)).astype(np.float32)
    m = numemu.mask(w, "greedy(2:4)")
    order = np.argsort(np.abs(w.reshape(-1, 4)), axis=1)
    want = np.zeros_like(w, bool).reshape(-1, 4)
    np.put_along_axis(want, order[:, 2:], True, axis=1)
    assert m.keep.dtype == bool and np.array_equal(m.keep, want.reshape(w.shape)) and m.kept == 48
    assert np.array_equal(m.values, np.where(m.keep, w, np.float32(0)))
    down = numemu.mask(w, "greedy(2:4)", axis=0)
    assert np.array_equal(down.keep, numemu.mask(w.T.copy(), "greedy(2:4)").keep.T)
    deep = numemu.mask(w.reshape(2, 4, 12), "greedy(2:4)", axis=1)
    assert np.array_equal(deep.keep.reshape(8, 12), down.keep)


def test_transposable_masks_are_best_of_all(rng):
    w = rng.standard_normal((4, 4)).astype(np.float32)
    m = numemu.mask(w, "transposable(2:4)")
    rows = [np.array(bits) for bits in itertools.product([0, 1], repeat=4) if sum(bits) == 2]
    tiles = [np.stack(four) for four in itertools.product(rows, repeat=4)]
    tiles = [tile for tile in tiles if (tile.sum(axis=0) == 2).all()]
    assert len(tiles) == numemu.masks.count("transposable", "2:4").count == 90
    assert m.keep.sum(axis=0).tolist() == m.keep.sum(axis=1).tolist() == [2] * 4
    kept = lambda tile: float(np.abs(w[tile.astype(bool)]).sum())
    assert kept(m.keep) == pytest.approx(max(map(kept, tiles)), rel=1e-6)


def test_counts():
    assert numemu.masks.count("group", "4:8").count == math.comb(8, 4)
    assert numemu.masks.count("transposable", "4:8").count == 116963796250
    assert numemu.masks.count("sequential", "2:4").count == 3
    assert numemu.masks.count("unstructured", "2:4", 64).count == math.comb(64, 32)
    diversity = numemu.masks.count("transposable", "2:4", 64)
    assert diversity.count == 90**4 and diversity.log10 == pytest.approx(4 * math.log10(90))
    assert diversity.log10_per_block == pytest.approx(diversity.log10)
    assert numemu.masks.count("group", "2:4", 1 << 20).count is None


def test_rules_that_draw_and_refusals(rng):
    w = rng.standard_normal((16, 16)).astype(np.float32)
    one, two = (numemu.mask(w, "mvue(1:2)", seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.keep, two.keep)
    assert np.array_equal(one.values, numemu.mask(w, "mvue(1:2)", seed=1).values)
    for words, text in [
        (dict(x=w, rule="greedi(2:4)"), "greedy"),
        (dict(x=w[:, :6], rule="greedy(2:4)"), "expected a multiple of 4"),
        (dict(x=w, rule="greedy(2:4)", axis=2), "axis: expected -2 to 1, found 2"),
        (dict(x=w, rule="transposable(2:4)", axis=0), "axis"),
        (dict(x=w[0], rule="transposable(2:4)"), "expected matrices"),
    ]:
        with pytest.raises(numemu.Error, match=text):
            numemu.mask(**words)
    with pytest.raises(numemu.Error, match="elements"):
        numemu.masks.count("unstructured", "2:4")
    with pytest.raises(numemu.Error, match="family of masks"):
        numemu.masks.count("groups", "2:4")
