"""Networks under a recipe: evaluate them, run them on arrays, train and tune them; the bits of the program's commands."""
from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._progress import Progress, say

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
        self.model = os.fspath(model)
        ports = _core._ports(self.model)
        self.inputs, self.outputs = ports if ports else (None, None)

    def __repr__(self):
        return f"numemu.load({self.model!r})"

    def eval(self, data: Data, recipe: Recipe = None, *, metric: Optional[Metric] = None,
             combine: Optional[Callable[[list], Any]] = None, calibrate: Optional[Data] = None,
             metrics: Union[None, str, Sequence[str]] = None, images: Optional[int] = None, batch: int = 16,
             predictions: bool = True, image_size: Optional[int] = None, fold_batch_norm: bool = False,
             gate: Optional[str] = None, fresh: bool = False, progress: Shown = None) -> dict[str, Any]:
        """What a recipe does to the network, beside float32.

        data: a data set as on the command line ("glyphs", "npy:FILE.npz,test=100"); a dict of arrays by the inputs' names
        with targets "y", or "y/OUTPUT" for each output; or an iterable of such dicts, one a batch.
        recipe: a shipped recipe, a file or a dict; None is float32.
        calibrate: what static scales are calibrated on: a data set, a dict or an iterable of dicts. Without it the data
        set's own calibration samples or, under a metric of your own, the first batch.
        metrics: names of docs/data.md, each of every output that it fits, or "OUTPUT/NAME" of one.

        Returns the row of `numemu eval --json` as a dict: metrics, scores, predictions, layers.

        With metric=f, a function of (outputs, batch) of your own, the network runs on the batches of `data` under the
        recipe and in float32. `outputs` has an array for each output; `batch` is yours, with whatever it holds beside the
        inputs. f gives a number, an array of one number a sample, or a dict of either; they are averaged over all samples.
        combine=g gives the figure of the list of all that f gave, in place of the average. Returns a dict: samples, value,
        float32, difference (None where figures are no numbers), calibration.
        """
        if metric is not None:
            if isinstance(data, (str, os.PathLike)):
                raise _usage("eval: metric: expected beside it arrays or an iterable of batches as data")
            return self._own_metric(_batches(data), metric, combine, recipe, calibrate, batch, fold_batch_norm)
        if combine is not None:
            raise _usage("eval: combine: expected beside it a metric of your own")
        with _Files() as files, Progress("eval", progress) as bar:
            options = {"net": self.model, "data": files.data_set(data), "recipe": recipe,
                       "calibrate_on": files.data_set(calibrate), "metrics": _names(metrics), "images": images,
                       "predictions": predictions, "image_size": image_size, "fold_batch_norm": fold_batch_norm,
                       "gate": gate, "fresh": fresh}
            return _core._evaluate(options, bar.call, say)

    def infer(self, x: Arrays, recipe: Recipe = None, *, calibrate: Union[None, str, Arrays] = None,
              outputs: Union[None, str, Sequence[str]] = None, batch: int = 16,
              metrics: Union[None, str, Sequence[str]] = None, noise: bool = False, predictions: bool = False,
              fold_batch_norm: bool = False, progress: Shown = None) -> Inferred:
        """Outputs of the network for arrays: a dict of float32 arrays by the outputs' names, an `Inferred`.

        x: an array for a network of one input, or a dict by the inputs' names.
        calibrate: arrays like x, or a data set; without it static scales are calibrated on x.
        noise=True measures the SQNR of every layer on the first samples, predictions=True also predicts it: see
        `Inferred.layers`. metrics: "cosine", "sqnr" of the first output against float32, in `Inferred.report`.
        """
        with Progress("infer", progress) as bar:
            calibration, data = ({}, calibrate) if isinstance(calibrate, str) else (self._arrays(calibrate), None)
            options = {"model": self.model, "recipe": recipe, "keep": _names(outputs), "batch": batch,
                       "calibrate_on": None if data is None else [data], "metrics": _names(metrics), "noise": noise,
                       "predictions": predictions, "fold_batch_norm": fold_batch_norm, "digests": True}
            return Inferred(*_core._infer(options, self._arrays(x), calibration, bar.call, say))

    def prepare(self, recipe: Recipe = None, *, calibrate: Arrays, outputs: Union[None, str, Sequence[str]] = None,
                batch: int = 16, fold_batch_norm: bool = False) -> Prepared:
        """The network with the recipe bound and calibrated once, for samples that come piece by piece: a `Prepared`.
        `calibrate` are arrays as in infer(); they also give the extents that an .onnx file leaves open."""
        return Prepared(self, recipe, self._arrays(calibrate), outputs, batch, fold_batch_norm)

    def tune(self, data: Data, recipe: Recipe, *, out: Union[str, os.PathLike] = "out/tune", progress: Shown = None,
             **options: Any) -> dict[str, Any]:
        """`numemu tune`: recovers accuracy after training and writes a checkpoint into `out`, which load() takes.

        options: calibrate_on, steps ("calibrate,batch_norm"; docs/tune.md), samples, images, seed, keep_batch_norm, fresh.
        Returns what `numemu tune --json` prints, with "checkpoint".
        """
        with _Files() as files, Progress("tune", progress) as bar:
            given = dict(options, net=self.model, data=files.data_set(data), recipe=recipe, out=out)
            return _core._tune(given, bar.call, say)

    def _arrays(self, x):
        """A dict by the inputs' names; "" where there is one without."""
        if x is None:
            return {}
        return x if isinstance(x, dict) else {"": x}

    def _inputs_of(self, batch):
        """The inputs among the arrays of a batch."""
        if not isinstance(batch, dict):
            raise _usage(f"eval: data: expected batches that are dicts of arrays, found {type(batch).__name__}")
        names = self.inputs
        if names is None:
            names = ["x"]
        missing = [name for name in names if name not in batch]
        if missing and len(names) == 1 and "x" in batch:
            return {"": batch["x"]}
        if missing:
            raise _usage(f"eval: data: expected an array '{missing[0]}', an input of {self.model}, in every batch")
        return {"" if self.inputs is None else name: batch[name] for name in names}

    def _own_metric(self, batches, metric, combine, recipe, calibrate, batch, fold_batch_norm):
        batches = iter(batches)
        first = next(batches, None)
        if first is None:
            raise _usage("eval: data: expected at least one batch")
        calibration = self._inputs_of(first)
        if isinstance(calibrate, str):
            raise _usage("eval: calibrate: expected arrays beside a metric of your own, found a data set")
        if calibrate is not None:
            calibration = self._inputs_of(_joined(_batches(calibrate)))
        own = Prepared(self, recipe, calibration, None, batch, fold_batch_norm)
        exact = own if recipe is None else Prepared(self, None, calibration, None, batch, fold_batch_norm)
        figures, references, weights = [], [], []

        def see(one):
            inputs = self._inputs_of(one)
            figures.append(metric(own.infer(inputs), one))
            references.append(figures[-1] if exact is own else metric(exact.infer(inputs), one))
            weights.append(len(next(iter(inputs.values()))))

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
        options = {"model": network.model, "recipe": recipe, "keep": _names(outputs), "batch": batch,
                   "fold_batch_norm": fold_batch_norm}
        self._network, self._core = network, _core._Inference(options, calibrate, {}, say)

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


def train(net: Union[str, os.PathLike] = "lenet", data: Data = "glyphs", recipe: Recipe = None, *,
          out: Union[str, os.PathLike] = "out/train", on_epoch: Optional[Callable[[dict], None]] = None,
          progress: Shown = None, **options: Any) -> dict[str, Any]:
    """`numemu train`: trains from scratch, or goes on where an interrupted run stopped, and writes checkpoint, metrics.jsonl
    and state into `out`. The same bytes for the same options.

    recipe: the numerics of training; a dict, too. on_epoch(metrics) hears of each epoch, with the members of a line of
    metrics.jsonl. options are those of the command: epochs, batch, seed, optimizer, learning_rate (--lr), weight_decay, clip,
    warmup, momentum, nesterov, beta1, beta2, epsilon, schedule, objectives (a list), patience, workers, micro_batches,
    local_steps, copies, augment ({"shift": 2, "flip": 1}), image_size, label_noise, store, save_every, fresh.
    Returns what `numemu train --json` prints, with "checkpoint", which load() takes.
    """
    with _Files() as files, Progress("train", progress) as bar:
        given = dict(options, net=os.fspath(net), data=files.data_set(data), recipe=recipe, out=out)
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
    return [data] if isinstance(data, dict) else data


def _joined(batches):
    """One batch of all: arrays one behind another."""
    batches = list(batches)
    if not batches:
        raise _usage("data: expected at least one batch")
    if any(not isinstance(batch, dict) or batch.keys() != batches[0].keys() for batch in batches):
        raise _usage("data: expected batches that are dicts of the same arrays")
    return {name: _stored([batch[name] for batch in batches]) for name in batches[0]}


def _stored(arrays):
    """As an archive has them: in C order, bool as numbers."""
    array = np.ascontiguousarray(np.concatenate([np.asarray(array) for array in arrays]))
    return array.astype(np.int8) if array.dtype.kind == "b" else array


def _average(results, weights):
    if isinstance(results[0], dict):
        return {name: _average([result[name] for result in results], weights) for name in results[0]}
    if np.ndim(results[0]) == 1:
        return float(np.mean(np.concatenate([np.asarray(result, np.float64) for result in results])))
    return float(np.average(np.asarray(results, np.float64), weights=weights))


def _difference(value, reference):
    if isinstance(value, dict):
        return {name: _difference(value[name], reference[name]) for name in value}
    return value - reference if isinstance(value, (int, float, np.number)) else None


def _names(names):
    return [names] if isinstance(names, str) else None if names is None else list(names)


def _usage(text):
    error = _core.Error(text)
    error.kind = "usage"
    return error
