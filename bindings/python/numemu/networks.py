"""Networks under a recipe: evaluate them, run them on arrays, train and tune them; the bits of the program's commands."""
from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._options import with_options
from ._progress import Progress, say
from ._views import raise_value, usage

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _option_types

Batch = Mapping[str, Any]  #: arrays by the names of inputs and targets, and what else a metric reads
Data = Union[str, os.PathLike, Batch, Iterable[Batch]]
Arrays = Union[ArrayLike, Mapping[str, ArrayLike]]
Recipe = Union[None, str, os.PathLike, Mapping[str, Any]]
Metric = Callable[["dict[str, NDArray[np.float32]]", Batch], Any]
Shown = Union[None, bool, Callable[[str, float, float], None]]


class Network:
    """A network by what the program calls it: an .onnx or .safetensors file, the name of a shipped one ("lenet"), or
    NAME=FILE with weights of your own.

    `inputs` and `outputs` are the names of an .onnx file's, None of another network, which has one of each: "x" and
    "output". Arrays have samples along the first axis; they are rounded to float32 (to nearest even), images are NCHW for
    .onnx files and NHWC for others, as in docs/models.md.
    """

    def __init__(self, model: Union[str, os.PathLike]):
        if not isinstance(model, (str, os.PathLike)):
            raise usage(f"load: model: expected a name or a file, found {type(model).__name__}")
        self.model = os.fspath(model)
        ports = _core._ports(self.model)
        self.inputs, self.outputs = ports if ports else (None, None)

    def __repr__(self):
        return f"numemu.load({self.model!r})"

    @with_options("eval", without=("net", "calibrate_on"))
    def eval(self, data: Data, recipe: Recipe = None, *, metric: Optional[Metric] = None,
             combine: Optional[Callable[[list], Any]] = None, calibrate: Optional[Data] = None, batch: int = 16,
             fold_batch_norm: bool = False, progress: Shown = None, **options: Unpack[_option_types.EvalOptions]) -> dict[str, Any]:
        """What a recipe does to the network, beside float32.

        data: a data set as on the command line ("glyphs", "npy:FILE.npz,test=100"); a dict of arrays by the inputs' names
        with targets "y", or "y/OUTPUT" for each output; or an iterable of such dicts, one a batch.
        recipe: a shipped recipe, a file or a dict; None is float32.
        calibrate: what static scales are calibrated on: a data set, a dict or an iterable of dicts. Without it the data
        set's own calibration samples or, under a metric of your own, the first batch.

        Returns the row of `numemu eval --json` as a dict: metrics, scores, predictions, layers.

        With metric=f, a function of (outputs, batch) of your own, the network runs on the batches of `data` under the
        recipe and in float32, `batch` samples at a time. `outputs` has an array for each output; f's batch is yours, with
        whatever it holds beside the inputs. f gives a number, an array of one number a sample, or a dict of either; they
        are averaged over all samples. combine=g gives the figure of the list of all that f gave, in place of the average.
        Returns a dict: samples, value, float32, difference (None where figures are no numbers), calibration.
        """
        if metric is not None:
            if not callable(metric):
                raise usage(f"eval: metric: expected a function, found {type(metric).__name__}")
            if isinstance(data, (str, os.PathLike)):
                raise usage("eval: metric: expected beside it arrays or an iterable of batches as data")
            for name, value in options.items():
                if value is not None:
                    raise usage(f"eval: {name}: expected no metric of your own beside it")
            return self._own_metric(_batches(data), metric, combine, recipe, calibrate, batch, fold_batch_norm)
        if combine is not None:
            raise usage("eval: combine: expected beside it a metric of your own")
        with _Files() as files, Progress("eval", progress) as bar:
            given = {"net": self.model, "data": files.data_set(data), "recipe": recipe,
                     "calibrate_on": files.data_set(calibrate), "fold_batch_norm": fold_batch_norm, **options}
            return _core._evaluate(given, bar.call, say)

    @with_options("infer", without=("model", "calibrate_on"))
    def infer(self, x: Arrays, recipe: Recipe = None, *, calibrate: Union[None, str, Arrays] = None,
              outputs: Union[None, str, Sequence[str]] = None, noise: bool = False, predictions: bool = False,
              progress: Shown = None, **options: Unpack[_option_types.InferOptions]) -> Inferred:
        """Outputs of the network for arrays: a dict of float32 arrays by the outputs' names, an `Inferred`.

        x: an array for a network of one input, or a dict by the inputs' names.
        calibrate: arrays like x, or a data set; without it static scales are calibrated on x.
        outputs: names of those that are wanted; all without it.
        noise=True measures the SQNR of every layer on the first samples, predictions=True also predicts it: see
        `Inferred.layers`. metrics are in `Inferred.report`.
        """
        with Progress("infer", progress) as bar:
            calibration, data = ({}, calibrate) if isinstance(calibrate, str) else (self._arrays(calibrate), None)
            given = {"model": self.model, "recipe": recipe, "calibrate_on": data, "noise": noise,
                     "predictions": predictions, **options}
            return Inferred(*_core._infer(given, self._arrays(x), calibration, outputs, bar.call, say))

    def prepare(self, recipe: Recipe = None, *, calibrate: Arrays, outputs: Union[None, str, Sequence[str]] = None,
                batch: int = 16, fold_batch_norm: bool = False) -> Prepared:
        """The network with the recipe bound and calibrated once, for samples that come piece by piece: a `Prepared`.
        `calibrate` are arrays as in infer(); they also give the extents that an .onnx file leaves open."""
        return Prepared(self, recipe, self._arrays(calibrate), outputs, batch, fold_batch_norm)

    @with_options("tune", without=("net",))
    def tune(self, data: Data, recipe: Recipe, *, out: Union[str, os.PathLike] = "out/tune",
             calibrate_on: Optional[Data] = None, progress: Shown = None, **options: Unpack[_option_types.TuneOptions]) -> dict[str, Any]:
        """`numemu tune`: recovers accuracy after training and writes a checkpoint into `out`, which load() takes.

        data and calibrate_on, which steps read in place of the data's own samples: as in eval().
        Returns what `numemu tune --json` prints, with "checkpoint".
        """
        with _Files() as files, Progress("tune", progress) as bar:
            given = {"net": self.model, "data": files.data_set(data), "recipe": recipe, "out": out,
                     "calibrate_on": files.data_set(calibrate_on), **options}
            return _core._tune(given, bar.call, say)

    def _arrays(self, x):
        """A dict by the inputs' names; "" where there is one without."""
        if x is None:
            return {}
        return dict(x) if isinstance(x, Mapping) else {"": x}

    def _inputs_of(self, batch):
        """The inputs among the arrays of a batch."""
        if not isinstance(batch, Mapping):
            raise usage(f"eval: data: expected batches that are dicts of arrays, found {type(batch).__name__}")
        names = self.inputs
        if names is None:
            names = ["x"]
        missing = [name for name in names if name not in batch]
        if missing and len(names) == 1 and "x" in batch:
            return {"": batch["x"]}
        if missing:
            raise usage(f"eval: data: expected an array '{missing[0]}', an input of {self.model}, in every batch")
        return {"" if self.inputs is None else name: batch[name] for name in names}

    def _own_metric(self, batches, metric, combine, recipe, calibrate, batch, fold_batch_norm):
        batches = iter(batches)
        first = next(batches, None)
        if first is None:
            raise usage("eval: data: expected at least one batch")
        calibration = self._inputs_of(first)
        if isinstance(calibrate, str):
            raise usage("eval: calibrate: expected arrays beside a metric of your own, found a data set")
        if calibrate is not None:
            calibration = self._inputs_of(_joined(_batches(calibrate)))
        own = Prepared(self, recipe, calibration, None, batch, fold_batch_norm)
        exact = own if recipe is None else Prepared(self, None, calibration, None, batch, fold_batch_norm)
        figures, references, weights = [], [], []

        def see(one):
            inputs = self._inputs_of(one)
            figures.append(metric(own.infer(inputs), one))
            references.append(figures[-1] if exact is own else metric(exact.infer(inputs), one))
            weights.append(len(np.atleast_1d(next(iter(inputs.values())))))

        see(first)
        for one in batches:
            see(one)
        figure = combine or (lambda results: _average(results, weights))
        value, reference = figure(figures), figure(references)
        return {"samples": sum(weights), "value": value, "float32": reference,
                "difference": _difference(value, reference), "calibration": own.calibration}


class Inferred(dict):
    """Arrays by output. `report` is what `numemu infer --json` prints; `layers` its layers, empty without noise=True."""

    def __init__(self, outputs, report):
        super().__init__(outputs)
        self.report, self.layers = report, report.get("layers", [])


class Prepared:
    """Network.prepare(): infer() gives the next samples' outputs. All pieces together have the bits of one Network.infer()
    where every piece but the last has a multiple of `batch` samples. `calibration` says what static scales are of."""

    def __init__(self, network, recipe, calibrate, outputs, batch, fold_batch_norm):
        options = {"model": network.model, "recipe": recipe, "batch": batch, "fold_batch_norm": fold_batch_norm}
        self._network, self._core = network, _core._prepare(options, calibrate, {}, outputs, say)

    def infer(self, x: Arrays) -> dict[str, NDArray[np.float32]]:
        """A dict of float32 arrays by the outputs' names for an array, or a dict of arrays by the inputs' names."""
        return self._core.run(self._network._arrays(x))

    @property
    def calibration(self) -> Optional[dict[str, Any]]:
        """How many samples static scales are calibrated on; None without such scales."""
        return self._core.calibration


def load(model: Union[str, os.PathLike]) -> Network:
    """The network of an .onnx or .safetensors file, of a shipped checkpoint ("lenet"), or NAME=FILE."""
    return Network(model)


@with_options("train")
def train(net: Union[str, os.PathLike] = "lenet", data: Data = "glyphs", recipe: Recipe = None, *,
          out: Union[str, os.PathLike] = "out/train", on_epoch: Optional[Callable[[dict], None]] = None,
          progress: Shown = None, **options: Unpack[_option_types.TrainOptions]) -> dict[str, Any]:
    """`numemu train`: trains from scratch, or goes on where an interrupted run stopped, and writes checkpoint, metrics.jsonl
    and state into `out`. The same bytes for the same options.

    recipe: the numerics of training; a dict, too. on_epoch(metrics) hears of each epoch, with the members of a line of
    metrics.jsonl. Lists may be lists or texts, augment a dict, too: {"shift": 2, "flip": True}.
    Returns what `numemu train --json` prints, with "checkpoint", which load() takes.
    """
    with _Files() as files, Progress("train", progress) as bar:
        given = {"net": net, "data": files.data_set(data), "recipe": recipe, "out": out, **options}
        return _core._train(given, on_epoch, bar.call, say)


def recipes() -> list[str]:
    """Names of the shipped recipes."""
    return _core._recipes()


def recipe(name: Recipe) -> dict[str, Any]:
    """The canonical form of a recipe, every default written out: of a shipped one, a file or a dict."""
    return _core._recipe(name)


class _Files:
    """Data sets of arrays in memory, as files while a call lasts."""

    def __enter__(self):
        self._folder = None
        return self

    def __exit__(self, *_):
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def data_set(self, data):
        if data is None or isinstance(data, str):
            return data
        if isinstance(data, os.PathLike):
            return f"npy:{os.fspath(data)}"
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="numemu-")
        path = os.path.join(self._folder, f"{len(os.listdir(self._folder))}.npz")
        np.savez(path, **_joined(_batches(data)))
        return f"npy:{path}"


def _batches(data):
    if isinstance(data, Mapping):
        return [data]
    if not isinstance(data, Iterable):
        raise usage(f"data: expected a data set, a dict of arrays or an iterable of such dicts, found {type(data).__name__}")
    return data


def _joined(batches):
    """One batch of all: arrays one behind another."""
    batches = list(batches)
    if not batches:
        raise usage("data: expected at least one batch")
    if any(not isinstance(batch, Mapping) or batch.keys() != batches[0].keys() for batch in batches):
        raise usage("data: expected batches that are dicts of the same arrays")
    return {name: _stored([batch[name] for batch in batches], name) for name in batches[0]}


def _stored(arrays, name):
    """As an archive has them: in C order, bool as numbers."""
    try:
        arrays = [np.asarray(array) for array in arrays]
        array = np.ascontiguousarray(np.concatenate(arrays))
    except ValueError:
        shapes = ", ".join(sorted({str(list(np.shape(array))) for array in arrays}))
        raise_value(f"data: {name}: expected arrays that are alike but for their samples, found {shapes}")
    if array.dtype.kind not in "biuf":
        raise_value(f"data: {name}: dtype: expected numbers, found {array.dtype}")
    return array.astype(np.int8) if array.dtype.kind == "b" else array


def _average(results, weights):
    first = results[0]
    if isinstance(first, Mapping):
        if any(not isinstance(result, Mapping) or result.keys() != first.keys() for result in results):
            raise_value("eval: metric: expected dicts of the same figures from every batch")
        return {name: _average([result[name] for result in results], weights) for name in first}
    try:
        results = [np.asarray(result, np.float64) for result in results if result is not None]
    except (TypeError, ValueError):
        results = []
    if len(results) < len(weights):
        raise_value(f"eval: metric: expected numbers, found {type(first).__name__}; combine= takes anything")
    shapes = [result.shape for result in results]
    if all(shape == () for shape in shapes):
        return float(np.average(results, weights=weights))
    if shapes != [(weight,) for weight in weights]:
        raise_value(f"eval: metric: expected a number or one of each of {weights[0]} samples, found shape {list(shapes[0])}")
    return float(np.mean(np.concatenate(results)))


def _difference(value, reference):
    if isinstance(value, Mapping):
        return {name: _difference(value[name], reference[name]) for name in value}
    numbers = all(isinstance(one, (int, float, np.number)) for one in (value, reference))
    return value - reference if numbers else None
