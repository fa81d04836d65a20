"""Networks from Python: the bits of the program's commands, several inputs and outputs, metrics of one's own."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import numemu

RECIPE = {"roles": {"weight": {"format": "int8", "scale": "absmax", "granularity": "channel"},
                    "activation": {"format": "int8", "scale": "absmax", "granularity": "tensor"}}}


def pixels(n=40):
    return np.random.default_rng(0).normal(0, 1, (n, 28, 28, 1)).astype(np.float32)


def test_eval_gives_the_row_of_the_command(program):
    row = numemu.load("mlp").eval("glyphs", "int8-static", images=200)
    printed = program.json("eval", "--net", "mlp", "--data", "glyphs", "--recipe", "int8-static", "--images", 200, "--quiet")
    assert row == printed
    assert row["metrics"]["top1"] > 0.9


def test_a_recipe_is_a_dict_too(tmp_path, program):
    file = tmp_path / "r.json"
    file.write_text(json.dumps({"numemu_recipe": 1, **RECIPE}))
    net = numemu.load("mlp")
    one, other = (net.eval("glyphs", recipe, images=64, predictions=False) for recipe in (RECIPE, file))
    assert one["metrics"] == other["metrics"] and one["key"] == other["key"]
    with pytest.raises(numemu.Error, match="^recipe: roles.weight.format") as caught:
        net.eval("glyphs", {"roles": {"weight": {"format": "int9000"}}}, images=64)
    assert caught.value.kind == "value"
    assert numemu.recipe("mxfp8") == json.loads(program.run("config", "--print", "mxfp8").stdout)
    assert "int8-static" in numemu.recipes()


@pytest.mark.parametrize("recipe", [None, "int8-static", "fp8-e4m3-h100"])
def test_infer_gives_the_bits_of_the_command(program, recipe):
    x = pixels()
    program.save("x.npy", x)
    given = ["--recipe", recipe] if recipe else []
    printed = program.json("infer", "--model", "lenet", "--in", "x.npy", "--out", "y.npy", "--quiet", *given)
    y = numemu.load("lenet").infer(x, recipe, noise=True, predictions=True)
    assert list(y) == ["output"]
    assert np.array_equal(y["output"].view(np.uint32), program.load("y.npy").view(np.uint32))
    assert y.report["outputs"][0]["digest"] == printed["outputs"][0]["digest"]
    assert y.layers == printed.get("layers", [])
    assert len(y.layers) == (0 if recipe is None else 5)


def test_prepared_networks_give_the_same_bits_piece_by_piece():
    x = pixels()
    net = numemu.load("lenet")
    whole = net.infer(x, "fp8-e4m3-h100", calibrate=x[:16])["output"]
    prepared = net.prepare("fp8-e4m3-h100", calibrate=x[:16])
    pieces = np.concatenate([prepared.infer(piece)["output"] for piece in (x[:16], x[16:])])
    assert np.array_equal(whole.view(np.uint32), pieces.view(np.uint32))
    static = net.prepare("int8-static", calibrate=x)
    assert static.calibration == {"samples": 40, "of": 40, "from": "arrays of the caller"}


def test_arrays_and_arguments_that_do_not_fit_are_refused():
    net = numemu.load("lenet")
    with pytest.raises(numemu.Error, match="expected .*28, 28, 1") as caught:
        net.infer(np.zeros((2, 5, 5, 1), np.float32))
    assert caught.value.kind == "value"
    with pytest.raises(numemu.Error, match="uint8; of pixels"):
        net.infer(np.zeros((2, 28, 28, 1), np.uint8))
    with pytest.raises(numemu.Error, match="unknown option 'epoch'; did you mean 'epochs'") as caught:
        numemu.train("mlp", "glyphs", epoch=1)
    assert caught.value.kind == "usage"
    with pytest.raises(numemu.Error, match="^train: epochs: expected a whole number, found str"):
        numemu.train("mlp", "glyphs", epochs="many")
    with pytest.raises(numemu.Error, match="^augment: expected shift=PIXELS"):
        numemu.train("mlp", "glyphs", out="never", augment="shiftt=2")
    with pytest.raises(numemu.Error, match="^images: expected at most 10000"):
        net.eval("glyphs", images=100000)
    with pytest.raises(numemu.Error, match="metric: expected beside it arrays"):
        net.eval("glyphs", metric=lambda outputs, batch: 0)


def test_train_and_tune_write_the_bytes_of_the_commands(tmp_path, program):
    random = np.random.default_rng(1)
    data = {"x": random.normal(0, 1, (300, 8, 8, 1)).astype(np.float32), "y": random.integers(0, 4, 300)}
    np.savez(tmp_path / "d.npz", **data)
    source = f"npy:{tmp_path}/d.npz,layout=nhwc,test=40,validation=40,calibration=64"
    recipe = {"roles": {"weight": {"format": "int8"}, "activation": {"format": "int8"}, "gradient": {"format": "float8_e5m2"}}}
    (tmp_path / "r.json").write_text(json.dumps({"numemu_recipe": 1, **recipe}))
    epochs = []
    result = numemu.train("mlp", source, recipe, out=tmp_path / "a", epochs=2, batch=32, seed=3, on_epoch=epochs.append)
    printed = program.json("train", "--net", "mlp", "--data", source, "--recipe", "r.json", "--out", "b", "--epochs", 2, "--batch", 32,
                           "--seed", 3, "--quiet")
    name = pathlib.Path(result["checkpoint"]).name
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert result["metrics"] == printed["metrics"]
    lines = [json.loads(line) for line in (tmp_path / "a/metrics.jsonl").read_text().splitlines()]
    six_digits = 1e-5
    assert [epoch["train_loss"] for epoch in epochs] == pytest.approx([line["train_loss"] for line in lines], rel=six_digits)
    tuned = numemu.load(result["checkpoint"]).tune(source, RECIPE, out=tmp_path / "t", steps="calibrate")
    program.run("tune", "--net", tmp_path / "b" / name, "--data", source, "--recipe", write(tmp_path / "q.json", RECIPE), "--out",
            tmp_path / "u", "--steps", "calibrate", "--quiet")
    assert digest(tuned["checkpoint"]) == digest(tmp_path / "u" / pathlib.Path(tuned["checkpoint"]).name)


def write(path, recipe):
    path.write_text(json.dumps({"numemu_recipe": 1, **recipe}))
    return path


def digest(path):
    return pathlib.Path(path).read_bytes()


def test_a_metric_of_ones_own_is_averaged_over_samples_or_combined():
    x = pixels(40)
    batches = [{"x": x[i:i + 16], "index": np.arange(i, min(i + 16, 40))} for i in range(0, 40, 16)]
    net = numemu.load("lenet")
    seen = []

    def largest(outputs, batch):
        seen.append(batch["index"][0])
        return outputs["output"].max(1)

    result = net.eval(iter(batches), "int8-static", metric=largest)
    assert seen == [0, 0, 16, 16, 32, 32]  # under the recipe and in float32
    own = net.infer(x, "int8-static", calibrate=x[:16])["output"].max(1).astype(np.float64)
    exact = net.infer(x)["output"].max(1).astype(np.float64)
    assert result["samples"] == 40
    assert result["value"] == own.mean() and result["float32"] == exact.mean()
    assert result["difference"] == result["value"] - result["float32"] != 0
    assert result["calibration"]["samples"] == 16
    # A number of a batch counts as often as it has samples.
    means = net.eval(batches, "int8-static", metric=lambda outputs, _: {"m": outputs["output"].max(1).astype(np.float64).mean()})
    assert means["value"]["m"] == pytest.approx(own.mean(), rel=1e-12)
    parts = net.eval(batches, metric=lambda outputs, batch: len(batch["index"]), combine=list)
    assert parts["value"] == [16, 16, 8] and parts["difference"] is None


def test_what_a_metric_raises_reaches_the_caller():
    def fails(outputs, batch):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        numemu.load("lenet").eval({"x": pixels(4)}, metric=fails)
    with pytest.raises(numemu.Error, match="expected batches that are dicts"):
        numemu.load("lenet").eval([pixels(4)], metric=fails)


def test_progress_is_told_and_may_end_the_work():
    states = []
    numemu.load("mlp").eval("glyphs", RECIPE, images=2000, fresh=True, progress=lambda *state: states.append(state))
    assert states and all(done <= total for _, done, total in states)
    done = [state[1] for state in states]
    assert done == sorted(done)

    class Enough(Exception):
        pass

    def stop(*_):
        raise Enough

    with pytest.raises(Enough):
        numemu.load("lenet").eval("glyphs", RECIPE, fresh=True, progress=stop)


def test_the_bar_is_one_line():
    from numemu._progress import bar_text

    assert bar_text("eval", "evaluation", 1, 2, 72.9) == "eval [############............]  50 %  1:12  evaluation"


def test_keyboard_interrupt_ends_long_work(tmp_path):
    code = ("import numemu, threading, _thread, time\n"
            "threading.Timer(1.5, _thread.interrupt_main).start()\n"
            "begin = time.monotonic()\n"
            "try:\n"
            f"    numemu.train('lenet', 'glyphs', out={str(tmp_path)!r}, epochs=50)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', time.monotonic() - begin < 20)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted True\n", done.stderr
