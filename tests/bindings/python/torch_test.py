"""numemu.torch: products of modules have the bits of `numemu infer`, and gradients are gradients."""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import warnings

import numemu
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: apt install python3-torch")
import numemu.torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

UNITS = {kind: {"unit": "neutral.exact"} for kind in ("fprop", "dgrad", "wgrad")}
EXACT = {"roles": {}, "gemms": UNITS}
# Scales of each sample for itself, so that any batch of it has the same bits.
DYNAMIC = {
    "roles": {"weight": {"format": "int8", "granularity": "channel"}, "activation": {"format": "int8"}},
    "gemms": {"fprop": {"unit": "nvidia.a100.mma.s8.s32"}},
    "calibrate": {"rule": "dynamic"},
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def bits(x):
    return np.ascontiguousarray(x.detach().numpy() if isinstance(x, torch.Tensor) else x).view(np.uint32)


def infer(program, module, inputs, recipe, outputs=("y",), options=()):
    """The outputs of the exported module under the recipe, and what the program reports."""
    inputs = {"x": inputs} if isinstance(inputs, torch.Tensor) else inputs
    names = [*inputs, *outputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), tuple(inputs.values()), str(program.folder / "m.onnx"), input_names=list(inputs),
            output_names=list(outputs), dynamic_axes={name: {0: "batch"} for name in names},
        )  # fmt: skip
    if isinstance(recipe, dict):
        (program.folder / "r.json").write_text(json.dumps({"numemu_recipe": 1, **recipe}))
        recipe = "r.json"
    words = ["infer", "--model", "m.onnx", "--recipe", recipe, "--no-predictions", *options]
    for name, x in inputs.items():
        words += ["--in", f"{name}={program.save(name + '.npy', x.numpy())}"]
    for name in outputs:
        words += ["--out", f"{name}={name}.npy"]
    report = program.json(*words)
    return [program.load(name + ".npy") for name in outputs], report


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, (3, 2), padding=(2, 1), groups=4, bias=False, dilation=(2, 1))
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.fc(F.max_pool2d(F.relu(self.depthwise(x)), 2).flatten(1))


def perceptron():
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5)), torch.randn(40, 20)


def images():
    return Images(), torch.randn(40, 3, 16, 16)


def signals():
    return nn.Sequential(nn.Conv1d(4, 6, 3, padding=1, stride=2), nn.ReLU(), nn.Conv1d(6, 5, 4)), torch.randn(40, 4, 15)


def volumes():
    return nn.Sequential(nn.Conv3d(2, 3, 2, padding=(0, 1, 1)), nn.ReLU(), nn.Flatten(), nn.Linear(225, 4)), torch.randn(40, 2, 4, 4, 4)


@pytest.mark.parametrize("recipe", ["fp8-e4m3-h100", "int8-static", "int8-dynamic", "mxfp4", "mxfp4-sr", "nvfp4", "w4a8"])
@pytest.mark.parametrize("network", [perceptron, images, signals, volumes])
def test_bits_and_layers_of_infer(program, network, recipe):
    module, x = network()
    (want,), report = infer(program, module, x, recipe)
    with numemu.torch.emulate(module, recipe, calibrate=x.split(25)) as emulation, torch.no_grad():
        assert emulation.layers([x]) == report["layers"]
        got = []
        for emulation.first_sample in range(0, 40, 16):  # as infer's batches, for random bits
            got.append(module(x[emulation.first_sample : emulation.first_sample + 16]))
    assert (bits(torch.cat(got)) == bits(want)).all()
    assert emulation.names == [name for name, part in module.named_modules() if hasattr(part, "weight")]
    assert torch.equal(module(x), copy.deepcopy(module)(x))


class Scores(nn.Module):
    """Both products of attention; the second softmax is exact in any arithmetic."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16, bias=False) for _ in range(3))

    def forward(self, x, choice):
        heads = lambda y: y.view(y.shape[0], 5, 2, 8).transpose(1, 2)
        scores = heads(self.q(x)) @ heads(self.k(x)).transpose(-2, -1) / 4
        mixed = torch.softmax(choice, -1) @ heads(self.v(x))
        return scores, torch.softmax(scores, -1), mixed


@pytest.mark.parametrize("right", [{}, {"key": {"format": "int8", "granularity": "row"}, "value": {"format": "int4", "granularity": "channel"}}])
def test_attention_has_the_bits_of_infer(program, right):
    module, x = Scores(), torch.randn(12, 5, 16)
    choice = torch.where(torch.randn(12, 2, 5, 5) > 1, 0.0, -1e4)
    choice[..., 0, :] = torch.tensor([0.0, 0, 0, 0, -1e4])
    choice[..., 1:, 1:3], choice[..., 1:, 0] = -1e4, 0.0
    choice[..., 1:, 3:] = -1e4
    recipe = {**DYNAMIC, "roles": {**DYNAMIC["roles"], **right}}
    want, report = infer(program, module, {"x": x, "choice": choice}, recipe, ("scores", "softmax", "mixed"))
    with numemu.torch.emulate(module, recipe, calibrate=[(x, choice)]) as emulation, torch.no_grad():
        got = module(x, choice)
        rows = emulation.layers([(x, choice)])
    assert emulation.names == ["q", "k", "matmul", "v", "matmul_1"]
    assert (bits(got[0]) == bits(want[0])).all()
    assert (bits(got[2]) == bits(want[2])).all()
    figures = lambda row: {key: row[key] for key in ("unit", "sqnr_db", "sqnr_ci95", "overflow", "underflow", "invalid")}
    assert [*map(figures, rows)] == [*map(figures, report["layers"])]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_products_have_the_bits_of_infer(program, kind):
    layer, x = kind(6, 7, batch_first=True), torch.randn(9, 5, 6)
    with numemu.torch.emulate(layer, DYNAMIC) as emulation, torch.no_grad():
        states = layer(x)[0]
        products = emulation._run(numemu._core.ProductMode.inference, (x,), {})
    assert emulation.names == ["input", "recurrent"]
    assert len(products["recurrent"]) == 4  # none before the second step
    linear = lambda weight: nn.utils.skip_init(nn.Linear, *reversed(weight.shape), bias=False)
    for weight, operand, got in [
        (layer.weight_ih_l0, x, products["input"][0]),
        *[(layer.weight_hh_l0, states[:, t], products["recurrent"][t]) for t in range(4)],
    ]:
        one = linear(weight)
        one.weight = nn.Parameter(weight.detach().clone())
        (want,), _ = infer(program, one, operand.contiguous(), DYNAMIC)
        assert (bits(got) == bits(want)).all()


def test_lstm_beside_infer(program):
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.fc = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3)

        def forward(self, x):
            return self.fc(self.lstm(x)[0])

    module, x = Last(), torch.randn(16, 5, 6)
    (want,), report = infer(program, module, x, DYNAMIC)
    with numemu.torch.emulate(module, DYNAMIC) as emulation, torch.no_grad():
        got = module(x)
        rows = emulation.layers([x])
    assert emulation.names == ["lstm.input", "lstm.recurrent", "fc"]
    # Gates are PyTorch's: they differ in the last place, which may take an element to the next code.
    steps = np.abs(got.numpy() - want).max() / (np.abs(want).max() / 127)
    assert steps < 2
    assert (rows[0]["sqnr_db"], rows[0]["underflow"]) == (report["layers"][0]["sqnr_db"], report["layers"][0]["underflow"])
    assert abs(rows[1]["sqnr_db"] - report["layers"][1]["sqnr_db"]) < 0.1


class Heads(nn.Module):
    """torch.nn.MultiheadAttention on other keys than queries."""

    def __init__(self, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.options = options

    def forward(self, x):
        keys = x.flip(1)
        return self.attention(x, keys, keys, **self.options)[0]


class First(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x)[0]


class Packed(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, [5, 4, 4, 2, 1, 1], batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.part(packed)[0], batch_first=True)[0]


class Cells(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        state = None
        for row in x.unbind(1):
            state = self.part(row, state)
        return state if isinstance(state, torch.Tensor) else state[0]


class Functions(nn.Module):
    """What modules call themselves."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(16, 7)), nn.Parameter(torch.randn(7))

    def forward(self, x):
        y = x @ self.w
        z = torch.baddbmm(torch.bmm(y, y.transpose(1, 2)), y, y.transpose(1, 2), alpha=0.5)
        u = torch.addmm(self.b, x[:, 0], self.w, beta=2)
        return z.sum(1) + u[:, :5] + torch.matmul(x, x.new_ones(16)) + F.linear(x[0], self.w.t(), self.b).sum()


SEQUENCE = (6, 5, 16)
MODULES = {
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(4, 6, 3, padding="same", dilation=2), nn.Tanh(), nn.Conv1d(6, 2, 4, 2)), (3, 4, 11)),
    "conv2d": (lambda: nn.Sequential(nn.Conv2d(4, 6, 3, 2, 1, groups=2), nn.Tanh(), nn.Conv2d(6, 2, (2, 1))), (3, 4, 9, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2, stride=(1, 2, 1), padding=(0, 1, 1)), (3, 2, 4, 5, 4)),
    "circular": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (3, 2, 5, 5)),
    "heads": (Heads, SEQUENCE),
    "heads without weights": (lambda: Heads(need_weights=False), SEQUENCE),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), SEQUENCE),
    "lstm": (lambda: First(nn.LSTM(16, 7, batch_first=True)), SEQUENCE),
    "two lstm": (lambda: First(nn.LSTM(16, 7, num_layers=2, bidirectional=True)), SEQUENCE),
    "projected lstm": (lambda: First(nn.LSTM(16, 7, proj_size=3, bias=False)), SEQUENCE),
    "two gru": (lambda: First(nn.GRU(16, 7, 2, bidirectional=True)), SEQUENCE),
    "rnn": (lambda: First(nn.RNN(16, 7, nonlinearity="relu")), SEQUENCE),
    "packed lstm": (lambda: Packed(nn.LSTM(16, 7, batch_first=True, bidirectional=True)), SEQUENCE),
    "packed gru": (lambda: Packed(nn.GRU(16, 7, batch_first=True)), SEQUENCE),
    "lstm cell": (lambda: Cells(nn.LSTMCell(16, 7)), SEQUENCE),
    "gru cell": (lambda: Cells(nn.GRUCell(16, 7)), SEQUENCE),
    "functions": (Functions, SEQUENCE),
}


@pytest.mark.parametrize("name", MODULES)
def test_gradients_with_exact_sums(name):
    """float32 rounds each result of an exact unit once: within some ulps of float64."""
    make, shape = MODULES[name]
    module = make().train()
    double = copy.deepcopy(module).double()
    x = torch.randn(shape)
    ours, theirs = x.clone().requires_grad_(), x.double().requires_grad_()
    want = double(theirs)
    along = torch.randn_like(want)
    want.backward(along)
    calls = []
    with numemu.torch.emulate(module, EXACT) as emulation:
        products = emulation.product
        emulation.product = lambda *a, **o: calls.append(a[0]) or products(*a, **o)
        got = module(ours)
        got.backward(along.float())
    assert calls and not emulation.float32
    pairs = [(got, want), (ours.grad, theirs.grad), *((p.grad, q.grad) for p, q in zip(module.parameters(), double.parameters()))]
    for a, b in pairs:
        if b is None:
            assert a is None
            continue
        assert (a.double() - b).abs().max() <= 64 * 2**-24 * max(1, b.abs().max())


def test_gradients_through_scales_per_channel():
    """dgrad reads the numbers of weights that forward multiplied, by float32 where their scales vary along its depth."""
    weight, image = torch.tensor([[3.0, 100.0], [5.0, -7.0]]), torch.tensor([[2.0, 4.0]], requires_grad=True)
    linear = nn.Linear(2, 2, bias=False)
    linear.weight = nn.Parameter(weight)
    with numemu.torch.emulate(linear, "fp8-e4m3-h100"):
        got = linear(image)
        got.backward(torch.ones_like(got))
    rows = weight.abs().amax(1, keepdim=True) / 448
    read = torch.from_numpy(numemu.format("float8_e4m3fn").quantize((weight / rows).numpy())) * rows
    assert torch.allclose(got, image.detach() @ read.t(), rtol=2**-12)
    assert torch.allclose(image.grad, torch.ones(1, 2) @ read, rtol=2**-22)


def test_layers_keep_their_names():
    named = lambda module, x: (numemu.torch.emulate(module, EXACT)(x), module.forward.emulation.names)[1]
    x = torch.randn(SEQUENCE)
    rows = ["attention.in_proj[0:16]", "attention.in_proj[16:48]"]
    assert named(Heads(), x) == [*rows, "attention.qk", "attention.pv", "attention.out_proj"]
    assert named(First(nn.LSTM(16, 7, num_layers=2)), x) == ["part.input", "part.recurrent", "part.input_l1", "part.recurrent_l1"]
    assert named(Functions(), x) == ["w", "bmm", "baddbmm", "matmul"]
    roles = {layer.name: layer.second for layer in numemu.torch.emulate(Heads(), EXACT, calibrate=x)._layers}
    assert (roles["attention.qk"], roles["attention.pv"]) == ("key", "value")


def test_recipes_match_the_names():
    recipe = {**DYNAMIC, "layers": [{"match": "0", "roles": {"weight": {"format": "int4"}}}]}
    module, x = perceptron()
    with numemu.torch.emulate(module, recipe, calibrate=x) as emulation:
        assert emulation.recipe["layers"][0]["match"] == "0"
        first, second = emulation.layers([x])
    assert first["sqnr_db"] < 30 < second["sqnr_db"] + 15
    with pytest.raises(numemu.Error, match="fc\\*"):
        numemu.torch.emulate(module, {**DYNAMIC, "layers": [{"match": "fc*", "roles": {"weight": None}}]}, calibrate=x)


def test_the_fused_paths_are_off():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2).eval()
    x = torch.randn(SEQUENCE)
    with torch.no_grad():
        fused = encoder(x)
        with numemu.torch.emulate(encoder, EXACT) as emulation:
            assert torch.allclose(encoder(x), fused, atol=1e-5)
        assert len(emulation.names) == 12 and not emulation.float32
        with numemu.torch.emulate(encoder, DYNAMIC):
            assert not torch.allclose(encoder(x), fused, atol=1e-4)


def test_random_numbers_and_statistics_are_left_alone():
    module = nn.Sequential(nn.Linear(20, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    x = torch.randn(10, 20)
    other = copy.deepcopy(module)
    torch.manual_seed(5)
    want = other(x)
    torch.manual_seed(5)
    with numemu.torch.emulate(module, EXACT):
        got = module(x)
    assert torch.allclose(got, want, atol=1e-5)
    assert int(module[1].num_batches_tracked) == 1 and torch.allclose(module[1].running_mean, other[1].running_mean)


def test_weights_that_change_are_quantized_anew():
    module, x = perceptron()
    with torch.no_grad(), numemu.torch.emulate(module, DYNAMIC):
        before = module(x)
        module[2].weight.data.neg_()
        module[2].bias.data.neg_()
        assert torch.equal(module(x), -before)


def train(module, x, steps):
    for _ in range(steps):
        module.zero_grad()
        module(x).square().mean().backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter -= 0.05 * parameter.grad
    return [bits(parameter).copy() for parameter in module.parameters()]


def test_training_goes_on_from_its_state():
    """Delayed scales and the bits of stochastic rounding belong to the step."""
    module, x = perceptron()
    halfway, recipe = copy.deepcopy(module), "e4m3-e5m2-chunked"
    with numemu.torch.emulate(module, recipe):
        want = train(module, x, 6)
    with numemu.torch.emulate(halfway, recipe) as emulation:
        train(halfway, x, 3)
        state = emulation.state_dict()
    assert state["step"] == 2 and any("history" in name for name in state["recipe"])
    with numemu.torch.emulate(halfway, recipe) as emulation:
        with pytest.raises(numemu.Error, match="expected a pass"):
            emulation.load_state_dict(state)
        emulation.calibrate(x)
        emulation.load_state_dict(state)
        got = train(halfway, x, 3)
    assert all((a == b).all() for a, b in zip(want, got))


def test_works_after_fork():
    module, x = images()
    torch.set_num_threads(2)
    with numemu.torch.emulate(module, "fp8-current") as emulation:
        want = bits(module(x)).tobytes()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            emulation.step = -1
            os.write(write, b"same" if bits(module(x)).tobytes() == want else b"other")
            os._exit(0)
        assert os.read(read, 5) == b"same" and os.waitpid(child, 0)[1] == 0


def test_refusals():
    module, x = perceptron()
    for batches, text in [(5, "expected batches of the module's arguments, found int"), ([5], "tensors, tuples or dicts, found int"),
                          ([], "calibrate: expected a batch at least")]:
        with pytest.raises(numemu.Error, match=text) as caught:
            numemu.torch.emulate(module, "int8-static", calibrate=batches)
        assert caught.value.kind == "usage"
    with pytest.raises(numemu.Error, match="expected a torch.nn.Module"):
        numemu.torch.emulate(x, EXACT)
    with pytest.raises(numemu.Error, match="emulated already"), numemu.torch.emulate(module, EXACT):
        numemu.torch.emulate(module, EXACT)
    with pytest.raises(numemu.Error, match="int8-statik"):
        numemu.torch.emulate(module, "int8-statik", calibrate=x)
    with pytest.raises(numemu.Error, match="expected batches to calibrate"), numemu.torch.emulate(module, "int8-static"), torch.no_grad():
        module(x)
    with pytest.raises(numemu.Error, match="layer 0: expected tensors on the CPU, found meta"), numemu.torch.emulate(module, EXACT):
        module(x.to("meta"))
    transformer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    with pytest.raises(numemu.Error, match="was not in the first pass"), numemu.torch.emulate(transformer, EXACT) as emulation:
        emulation(torch.randn(SEQUENCE))
        transformer.linear1 = nn.Linear(16, 32)
        transformer.other = transformer.linear1.weight
        transformer.linear2.register_forward_pre_hook(lambda part, args: (args[0] @ torch.eye(32),))
        emulation(torch.randn(SEQUENCE))


def test_parts_are_emulated_where_they_are_called():
    module, x = perceptron()
    part, recipe = copy.deepcopy(module[2]), {**EXACT, "roles": {"activation": {"format": "int4"}}, "calibrate": {"rule": "dynamic"}}
    with numemu.torch.emulate(module, recipe) as emulation, torch.no_grad():
        whole = module(x)
        hidden = module[1](module[0](x))
        assert torch.equal(module[2](hidden), whole)
        assert not torch.equal(part(hidden), whole)
        with pytest.raises(TypeError, match="not copied"):
            copy.deepcopy(module)


class Saving(nn.Module):
    """Backward computes the body again."""

    def __init__(self):
        super().__init__()
        self.body, self.again = perceptron()[0], True

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=True) if self.again else self.body(x)


def test_segments_that_backward_computes_again_have_the_products_of_their_step():
    module, x = Saving().train(), torch.randn(40, 20, requires_grad=True)
    gradients = []
    for module.again in (True, False):
        with numemu.torch.emulate(module, "e4m3-e5m2-chunked") as emulation:
            for _ in range(2):
                module.zero_grad()
                module(x).sum().backward()
        assert emulation.step == 1
        gradients.append([bits(parameter.grad).copy() for parameter in module.parameters()])
    assert all((a == b).all() for a, b in zip(*gradients))


def test_operands_are_read_where_they_lie():
    """In training nothing is copied: what PyTorch changes before backward is its error, as with its own products."""
    module = nn.Linear(20, 5).train()
    x = torch.randn(40, 20)
    with numemu.torch.emulate(module, "e4m3-e5m2-chunked"):
        y = module(x)
        x.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        y = module(x)
        with torch.no_grad():
            module.weight.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        strided = torch.randn(20, 40).t()  # a copy is what backward reads
        y = module(strided)
        strided.mul_(2)
        y.sum().backward()


def test_training_leaves_frozen_weights_frozen():
    """Weights that training lends to a product are not those of inference."""
    module, x = nn.Linear(20, 5), torch.randn(40, 20)
    recipe = {**DYNAMIC, "roles": {role: {"format": "int8"} for role in ("weight", "activation")}}
    with numemu.torch.emulate(module, recipe), torch.no_grad():
        before = bits(module.eval()(x)).copy()
        with torch.enable_grad():
            module.train()(x).sum().backward()
        assert (bits(module.eval()(x)) == before).all()
        module.weight.mul_(0.5)
        after = bits(module(x)).copy()
        assert (after != before).any()
    with numemu.torch.emulate(module, recipe), torch.no_grad():
        assert (bits(module.eval()(x)) == after).all()


def test_what_the_recipe_leaves_to_pytorch():
    module, x = perceptron()
    recipe = {**DYNAMIC, "roles": {**DYNAMIC["roles"], "vector": {"format": "bfloat16"}}, "update": {"master": "bfloat16"}}
    with numemu.torch.emulate(module, recipe, calibrate=x) as emulation:
        assert emulation.ignored == ["update", "roles.vector"]

    class Einsum(nn.Module):
        def forward(self, x):
            return torch.einsum("ij,kj->ik", x, x) + x @ x.t()

    with numemu.torch.emulate(Einsum(), EXACT) as emulation:
        emulation(x)
        assert emulation.float32 == {"einsum"}


def test_without_pytorch_the_import_says_how_to_get_it():
    code = "import sys; sys.modules['torch'] = None\ntry: import numemu.torch\nexcept ImportError as error: print(error)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "apt install python3-torch" in said and "pip install torch" in said


@pytest.mark.parametrize("name", ["bindings-torch.md", "migrating.md"])
def test_snippets_of_the_pages(name):
    page = pathlib.Path(__file__).parents[3] / "docs" / name
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert snippets
    names = {}
    for snippet in snippets:
        exec(compile(snippet, str(page), "exec"), names)
