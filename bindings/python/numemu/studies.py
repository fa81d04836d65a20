"""Sweeps, experiments, their rows and reports."""
from __future__ import annotations

import html
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from . import _core
from ._options import with_options
from ._progress import Progress, say

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _option_types

Path = Union[str, os.PathLike]
Shown = Union[None, bool, Callable[[str, float, float], None]]


@with_options("sweep")
def sweep(config: Union[None, Path, Mapping[str, Any]] = None, *, progress: Shown = None, **options: Unpack[_option_types.SweepOptions]) -> Study:
    """Runs the points of a sweep that its folder lacks and writes the report: `numemu sweep`.

    config: the file of a sweep (docs/sweeps.md) or a dict, "numemu_sweep" left out; None is the shipped one. Returns a `Study`.
    """
    if isinstance(config, Mapping):
        config = {"numemu_sweep": 1, **config}
    with Progress("sweep", progress) as bar:
        return Study(_core._sweep({"config": config, **options}, bar.call, say))


def experiments() -> list[str]:
    """Names of the experiments (docs/experiments.md)."""
    return _core._experiments()


@with_options("experiment")
def experiment(name: str, *, settings: Optional[Mapping[str, Any]] = None, progress: Shown = None, **options: Unpack[_option_types.ExperimentOptions]) -> Study:
    """Runs an experiment or goes on with it: `numemu experiment`. settings: a dict. Returns a `Study` whose `result` is its
    experiment.json: findings, claims, sentences; None of a shard."""
    with Progress(str(name), progress) as bar:
        words = [f"{key}={value}" for key, value in (settings or {}).items()]
        return Study(_core._experiment({"name": name, "settings": words, **options}, bar.call, say))


class Study:
    """The folder of a sweep or an experiment. `out` is its path; `info` what running it told, such as the number of points
    computed; `rows`, `frame()` and `report` what the folder holds. Jupyter shows the report."""

    def __init__(self, info):
        self.info, self.out, self.result = info, info["out"], info.get("result")

    def __repr__(self):
        return f"numemu.Study({self.out!r})"

    @property
    def rows(self) -> list[dict[str, Any]]:
        return rows(self.out)

    def frame(self):
        return frame(self.out)

    @property
    def report(self) -> Report:
        return report(self.out)

    def _repr_html_(self):
        return self.report._repr_html_()


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder as dicts (docs/sweeps.md), those of all shards, in the order of the points."""
    return _core._rows(folder)


def frame(folder: Path) -> "pandas.DataFrame":  # noqa: F821
    """rows() as a pandas.DataFrame: a column for each number and text, "metrics.top1"; a score is "score.NAME" with
    "score.NAME.ci95.low" and so on. Lists of layers and tensors stay as they are."""
    import pandas

    flat = []
    for row in rows(folder):
        row = dict(row)
        scores = row.pop("scores", [])
        cells = _flat(row)
        for score in scores:
            score = dict(score)
            name = f"score.{score.pop('name')}"
            cells[name] = score.pop("value", None)
            cells.update(_flat(score, name + "."))
        flat.append(cells)
    return pandas.DataFrame(flat)


class Report:
    """The report of a folder: `html`, `csv`, `sqlite` and `markdown` are paths, `unfinished` says what is missing. Jupyter
    shows it in the page."""

    def __init__(self, paths, height):
        self.html, self.csv, self.sqlite, self.markdown = (paths[key] for key in ("html", "csv", "sqlite", "markdown"))
        self.unfinished, self._height = paths["unfinished"], height

    def __repr__(self):
        return f"numemu.Report({self.html!r})"

    def _repr_html_(self):
        # In a frame of its own: its styles and scripts stay in it.
        with open(self.html, encoding="utf-8") as file:
            page = html.escape(file.read(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: {self._height}px; border: 0"></iframe>'


def report(folder: Path, *, predictions: bool = True, height: int = 900) -> Report:
    """Writes the report of a folder anew and returns it, a `Report`; `height` in pixels of the page in Jupyter."""
    return Report(_core._report(folder, predictions, say), height)


def _flat(value, prefix=""):
    cells = {}
    for key, member in value.items():
        if isinstance(member, dict):
            cells.update(_flat(member, f"{prefix}{key}."))
        elif key.endswith("ci95") and isinstance(member, list):
            cells[f"{prefix}{key}.low"], cells[f"{prefix}{key}.high"] = member
        else:
            cells[prefix + key] = member
    return cells
