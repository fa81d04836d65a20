"""What **options of functions take, by name; written by numemu._options.stub()."""
from os import PathLike
from typing import Any, Literal, Mapping, Optional, Sequence, TypedDict, Union

class EvalOptions(TypedDict, total=False):
    image_size: Optional[int]
    metrics: Optional[Union[str, Sequence[str]]]
    images: Optional[int]
    predictions: Optional[bool]
    gate: Optional[Union[str, float, Sequence[Any], Mapping[str, Any]]]
    fresh: Optional[bool]

class ExperimentOptions(TypedDict, total=False):
    size: Optional[Union[str, PathLike[str]]]
    seed: Optional[int]
    out: Optional[Union[str, PathLike[str]]]
    fresh: Optional[bool]
    shard: Optional[Union[str, PathLike[str]]]
    figures: Optional[Union[str, PathLike[str]]]

class InferOptions(TypedDict, total=False):
    metrics: Optional[Union[str, Sequence[str]]]
    fold_batch_norm: Optional[bool]
    batch: Optional[int]

class SweepOptions(TypedDict, total=False):
    out: Optional[Union[str, PathLike[str]]]
    calibrate_on: Optional[Union[str, PathLike[str]]]
    metrics: Optional[Union[str, Sequence[str]]]
    shard: Optional[Union[str, PathLike[str]]]
    fresh: Optional[bool]
    keep_old: Optional[bool]
    predictions: Optional[bool]
    gate: Optional[Union[str, float, Sequence[Any], Mapping[str, Any]]]
    figures: Optional[Union[str, PathLike[str]]]

class TrainOptions(TypedDict, total=False):
    store: Optional[Literal["f32", "f16", "bf16"]]
    save_every: Optional[int]
    fresh: Optional[bool]
    optimizer: Optional[Union[str, PathLike[str]]]
    objectives: Optional[Union[str, float, Sequence[Any], Mapping[str, Any]]]
    schedule: Optional[Union[str, PathLike[str]]]
    learning_rate: Optional[float]
    warmup: Optional[int]
    weight_decay: Optional[float]
    clip: Optional[float]
    momentum: Optional[float]
    nesterov: Optional[bool]
    beta1: Optional[float]
    beta2: Optional[float]
    epsilon: Optional[float]
    epochs: Optional[int]
    patience: Optional[int]
    batch: Optional[int]
    workers: Optional[int]
    micro_batches: Optional[int]
    local_steps: Optional[int]
    augment: Optional[Union[str, float, Sequence[Any], Mapping[str, Any]]]
    copies: Optional[int]
    image_size: Optional[int]
    image_sizes: Optional[Union[str, float, Sequence[Any], Mapping[str, Any]]]
    size_changes: Optional[Literal["batch", "copies", "both", "none"]]
    size_smoothing: Optional[int]
    label_noise: Optional[float]
    seed: Optional[int]

class TuneOptions(TypedDict, total=False):
    steps: Optional[Union[str, PathLike[str]]]
    samples: Optional[int]
    images: Optional[int]
    seed: Optional[int]
    keep_batch_norm: Optional[bool]
    fresh: Optional[bool]
