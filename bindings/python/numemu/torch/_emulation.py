"""One module under one recipe: which layers it has, what its passes are, what becomes of them."""
import contextlib
from collections.abc import Iterable, Mapping

import torch
from torch.overrides import TorchFunctionMode

from .. import _core
from .._views import usage
from ._functions import LEFT, PASSES, functions
from ._products import AllSteps, Product, array_of, plain

_FUNCTIONS = functions()
_Mode = _core.ProductMode


class _Layer:
    """What the first pass shows of a layer."""

    def __init__(self, name, kind, transpose_b, axes, groups):
        self.name, self.kind, self.transpose_b, self.axes, self.groups = name, kind, transpose_b, axes, groups
        self.second, self.weight = "activation", None
        self.left, self.right = [], []  # shapes, one for each product


class _Interceptor(TorchFunctionMode):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def __torch_function__(self, function, types, args=(), kwargs=None):
        instead = _FUNCTIONS.get(function)
        if instead is not None:
            return instead(self.run, *args, **(kwargs or {}))
        result = function(*args, **(kwargs or {}))
        if self.run.found is not None:
            self.run.follow(getattr(function, "__name__", ""), args, result)
        return result


class _Forward:
    """Stands for the method `forward` of a part of the module."""

    def __init__(self, emulation, name, part):
        self.emulation, self.name, self.part, self.own = emulation, name, part, part.forward

    def __call__(self, *args, **options):
        return self.emulation.call(self, args, options)

    def __reduce__(self):
        raise TypeError("numemu.torch: an emulated module is not copied or stored; remove() the emulation before, or take state_dict()")


class Emulation:
    """The products of a module under a recipe, from emulate() until remove(). One pass runs at a time.

    names: the layers that multiply, in the order of the first pass. recipe: its canonical form, a dict. ignored: keys of the
    recipe about other operators, which PyTorch computes. float32: functions of the first pass whose products stay PyTorch's.
    step: of training, counted at each pass. first_sample: of the next batch of inference; random bits belong to samples.
    """

    def __init__(self, module, recipe, calibrate=None, batch_axis=0):
        if not isinstance(module, torch.nn.Module):
            raise usage(f"numemu.torch.emulate: expected a torch.nn.Module, got {type(module).__name__}")
        if any(isinstance(vars(part).get("forward"), _Forward) for part in module.modules()):
            raise usage("numemu.torch.emulate: the module is emulated already; remove() that first")
        self.module, self.batch_axis = module, batch_axis
        self.step, self.first_sample = -1, 0
        self.float32 = set()
        self.found = None  # layers by name, in the pass that finds them
        self.samples = 1  # of the pass
        self.attention = []  # names and right operands of the products that an attention has still to compute
        self._recipe, self._products = recipe, None
        self._layers, self._index = [], {}
        self._mode = None  # of the pass that is running
        self._frozen = self._training = False  # ready for inference; a step has begun
        self._outputs = None  # by layer, where a pass keeps them
        parts = [(name, part) for name, part in module.named_modules() if not isinstance(part, torch.jit.ScriptModule)]
        self._forwards = [_Forward(self, name, part) for name, part in parts]
        for forward in self._forwards:
            forward.part.forward = forward
        if calibrate is not None:
            try:
                self.calibrate(calibrate)
            except Exception:
                self.remove()
                raise

    names = property(lambda self: [layer.name for layer in self._layers])
    recipe = property(lambda self: self._bound().recipe)
    ignored = property(lambda self: self._bound().ignored)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def __call__(self, *args, **options):
        return self.module(*args, **options)

    def remove(self):
        """The module computes its own products again."""
        for forward in self._forwards:
            vars(forward.part).pop("forward", None)

    def calibrate(self, batches):
        """Static scales from what products read in float32 on the first samples of the batches (see emulate())."""
        taken, available = [], 0
        for batch in _batches(batches):
            if self._products is None:
                self._bind(self._forwards[0], *batch)
            taken.append(batch)
            available += self._samples_of(*batch)
            if available >= self.recipe["calibrate"]["samples"]:
                break
        if not taken:
            raise usage("calibrate: expected a batch at least")
        self._products.freeze(
            available, lambda first, count: self._run(_Mode.reference, *self._cut(taken, first, count))
        )
        self._frozen = True

    def layers(self, batches):
        """By layer what `numemu infer` shows: the SQNR of its output on these batches, in inference, beside float32, and shares
        of operands that overflowed, underflowed or were invalid. A list of dicts, as in a row (docs/sweeps.md)."""
        first = self.first_sample
        for number, batch in enumerate(_batches(batches)):
            if self._products is None:
                self._bind(self._forwards[0], *batch)
            if number == 0:
                self._products.reset()
            clean, quantized = (self._run(mode, *batch) for mode in (_Mode.reference, _Mode.inference))
            for name, outputs in clean.items():
                self._products.compare(self._index[name], self._joined(outputs), self._joined(quantized[name]))
            self.first_sample += self._samples_of(*batch)
        self.first_sample = first
        return self._bound().rows()

    def state_dict(self):
        """The state of training that is no tensor of the module: the step, and histories of delayed scales."""
        self._end_step()
        return {"step": self.step, "recipe": self._bound().state()}

    def load_state_dict(self, state):
        """After a first pass, or calibrate()."""
        self._end_step()
        self._bound().load_state(state["recipe"])
        self.step = state["step"]

    def call(self, forward, args, options):
        """What a call of the module, or of a part of it, does."""
        if self._mode is not None:
            self._stack.append((forward.name, forward.part))
            try:
                return forward.own(*args, **options)
            finally:
                self._stack.pop()
        if self._products is None:
            self._bind(forward, args, options)
        training = self.module.training and torch.is_grad_enabled()
        if training and (forward.part is self.module or not self._training):
            self._end_step()
            self.step += 1
            self._products.begin_step(self.step)
            self._training = True
        elif not training and not self._frozen:
            raise usage("numemu.torch: the recipe has static scales: expected batches to calibrate() on")
        with self._pass(_Mode.training if training else _Mode.inference, forward, args, options):
            return forward.own(*args, **options)

    # What the functions of _functions.py call.

    def interceptor(self):
        return _Interceptor(self)

    def product(self, name, kind, left, right, axes=None, groups=1, second=None, repetition=None, steps=None):
        """The product of a layer; without `repetition` it has the next number of the layer's in the pass. steps: of
        all_steps()."""
        for tensor in (left, right):
            if tensor.device.type != "cpu":
                raise usage(f"numemu.torch: layer {name}: expected tensors on the CPU, found {tensor.device}")
        if self.found is not None:
            return self._find(name, kind, left, right, axes, groups, second)
        if name not in self._index:
            raise usage(
                f"numemu.torch: layer {name} was not in the first pass, which found {', '.join(self.names)}; "
                "emulate() anew with a batch to calibrate on that reaches it"
            )
        index = self._index[name]
        layer = self._layers[index]
        right = right.transpose(-2, -1) if layer.transpose_b else right
        if repetition is None:
            number = self._repetitions[name] = self._repetitions.get(name, -1) + 1
            repetition = (number, max(len(layer.left), number + 1))
        y = Product.apply(left.float(), right.float(), self._products, index, self._call(*repetition), steps)
        return y.to(left.dtype)

    def all_steps(self, name, weight):
        """The weight of a recurrence as product() takes it, and what gathers the steps for its gradient."""
        if self.found is not None or name not in self._index or not (torch.is_grad_enabled() and weight.requires_grad):
            return weight, None
        steps = []
        return AllSteps.apply(weight, self._products, self._index[name], self._call(0, 1), steps), steps

    def output(self, name, y):
        """What a layer gives, bias and all."""
        if self._outputs is not None:
            self._outputs.setdefault(name, []).append(y.detach())

    def is_weight(self, tensor):
        return id(tensor) in self._weights or id(tensor._base) in self._weights

    def weight_name(self, weight, kind):
        """The layer of a weight: the module that runs, where it is its weight, else the parameter's name without "weight"; of a
        part of a parameter with its rows."""
        path, module = self._stack[-1]
        if weight is module._parameters.get("weight"):
            return path or kind
        if id(weight) in self._weights:
            return self._weights[id(weight)]
        base = weight._base
        if base is not None and id(base) in self._weights:
            name = self._weights[id(base)]
            if weight.numel() == base.numel():
                return name
            first = weight.storage_offset() // base.stride(0)
            return f"{name}[{first}:{first + len(weight)}]"
        owns = isinstance(module, (torch.nn.Linear, torch.nn.modules.conv._ConvNd))
        return path if owns and path else self.free_name(kind)

    def free_name(self, kind):
        """Of a function that a module calls: "block.matmul", then "block.matmul_1"."""
        path = self._stack[-1][0]
        name = f"{path}.{kind}" if path else kind
        number = self._counts[name] = self._counts.get(name, -1) + 1
        return f"{name}_{number}" if number else name

    def tag(self, result, source):
        """In the first pass: the result comes from what `source` comes from."""
        if self.found is not None and hasattr(source, "numemu_source"):
            result.numemu_source = source.numemu_source
        return result

    def follow(self, function, args, result):
        """In the first pass: finds which products softmax joins to attention."""
        function = function.strip("_")
        if function in LEFT:
            self.float32.add(function)
        sources = [x.numemu_source for x in args if hasattr(x, "numemu_source")]
        if function == "softmax":
            if sources and isinstance(sources[0], _Layer):
                sources[0].second = "key"
            result.numemu_source = "softmax"
        elif sources and function in PASSES and isinstance(result, torch.Tensor):
            result.numemu_source = sources[0]

    # Passes.

    def _bound(self):
        if self._products is None:
            raise usage("numemu.torch: expected a pass of the module, or calibrate(), before")
        return self._products

    def _call(self, repetition, repetitions):
        return (self._mode, self.step if self._mode == _Mode.training else self.first_sample, repetition, repetitions)

    def _find(self, name, kind, left, right, axes, groups, second):
        turned = kind == "matmul" and right.stride(-1) != 1 and right.stride(-2) == 1
        layer = self.found.setdefault(name, _Layer(name, kind, turned, axes, groups))
        right = right.transpose(-2, -1) if layer.transpose_b else right
        if kind != "matmul":
            layer.weight = array_of(right.float())
        elif second or getattr(left, "numemu_source", None) == "softmax":
            layer.second = second or "value"
        layer.left.append(list(left.shape))
        layer.right.append(list(right.shape))
        y = plain(layer, left, right)
        y.numemu_source = layer
        return y

    def _bind(self, forward, args, options):
        """A pass in PyTorch finds the layers; buffers and random numbers are as before."""
        buffers = [(buffer, buffer.clone()) for buffer in self.module.buffers()]
        self.found = {}
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]), self._pass(_Mode.reference, forward, args, options):
                forward.own(*args, **options)
            layers = list(self.found.values())
        finally:
            self.found = None
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
        self._products = _core.Products(self._recipe, [vars(layer) for layer in layers], self._samples_of(args, options))
        self._layers, self._index = layers, {layer.name: i for i, layer in enumerate(layers)}
        for layer in layers:
            layer.weight = None
        if self._products.calibration_samples(1) == 0:
            self._products.freeze(0, lambda first, count: None)
            self._frozen = True

    def _end_step(self):
        if self._training:
            self._products.end_step(self.step)
        self._training = False

    def _run(self, mode, args, options):
        """A pass as in evaluation; what each layer gave."""
        if mode == _Mode.inference and not self._frozen:
            raise usage("numemu.torch: the recipe has static scales: expected batches to calibrate() on")
        outputs = self._outputs = {}
        training = [module for module in self.module.modules() if module.training]
        try:
            for module in training:
                module.training = False
            with torch.no_grad(), self._pass(mode, self._forwards[0], args, options):
                self._forwards[0].own(*args, **options)
        finally:
            self._outputs = None
            for module in training:
                module.training = True
        return outputs

    @contextlib.contextmanager
    def _pass(self, mode, forward, args, options):
        self._mode, self.samples = mode, self._samples_of(args, options)
        self._stack, self._counts, self._repetitions = [(forward.name, forward.part)], {}, {}
        self._weights = {id(parameter): _layer_name(name) for name, parameter in self.module.named_parameters()}
        try:
            with _Interceptor(self):
                yield
        finally:
            self._mode = None

    def _tensors(self, args, options):
        return [x for x in (*args, *options.values()) if isinstance(x, torch.Tensor) and x.dim() > self.batch_axis]

    def _samples_of(self, args, options):
        tensors = self._tensors(args, options)
        return tensors[0].shape[self.batch_axis] if tensors else 1

    def _cut(self, batches, first, count):
        """Samples [first, first + count) of the batches, as one."""
        pieces = []
        for args, options in batches:
            samples = self._samples_of(args, options)
            begin, end = max(first, 0), min(first + count, samples)
            first -= samples
            if begin < end:
                cut = lambda x: (
                    x.narrow(self.batch_axis, begin, end - begin)
                    if isinstance(x, torch.Tensor) and x.dim() > self.batch_axis and x.shape[self.batch_axis] == samples
                    else x
                )
                pieces.append(([cut(x) for x in args], {name: cut(x) for name, x in options.items()}))
        if len(pieces) == 1:
            return pieces[0]
        join = lambda parts: torch.cat(parts, self.batch_axis) if isinstance(parts[0], torch.Tensor) else parts[0]
        args = [join(parts) for parts in zip(*(piece[0] for piece in pieces))]
        return args, {name: join([piece[1][name] for piece in pieces]) for name in pieces[0][1]}

    def _joined(self, outputs):
        """Of all products of a layer, [samples, elements]."""
        even = all(y.numel() % self.samples == 0 for y in outputs)
        return array_of(torch.cat([y.float().reshape(self.samples if even else 1, -1) for y in outputs], 1))


def _batches(batches):
    """Each as arguments and named arguments."""
    if not isinstance(batches, (torch.Tensor, Iterable)):
        raise usage(f"numemu.torch: expected batches of the module's arguments, found {type(batches).__name__}")
    for batch in [batches] if isinstance(batches, torch.Tensor) else batches:
        if isinstance(batch, torch.Tensor):
            yield (batch,), {}
        elif isinstance(batch, Mapping):
            yield (), dict(batch)
        elif isinstance(batch, (tuple, list)):
            yield tuple(batch), {}
        else:
            raise usage(f"numemu.torch: expected batches that are tensors, tuples or dicts, found {type(batch).__name__}")


def _layer_name(parameter):
    """ "fc1" of "fc1.weight", "attn.in_proj" of "attn.in_proj_weight", "lstm.input" of "lstm.weight_ih_l0"."""
    path, _, own = parameter.rpartition(".")
    for prefix, part in (("weight_ih", "input"), ("weight_hh", "recurrent")):
        if own.startswith(prefix):
            own = part + own[len(prefix) :]
            own = own[:-3] if own.endswith("_l0") else own
    own = own[: -len("weight")].rstrip("_") if own.endswith("weight") else own
    return ".".join(part for part in (path, own) if part) or parameter
