"""Ctrl-C ends long work soon and leaves folders that go on; threads, forks and callables that raise."""
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import numemu

#: Seconds within which work ends that would take minutes: an operator of a network, on a machine that others use.
SOON = 30

BEGIN = """
import os, signal, sys, threading, time
import numpy as np
import numemu

def interrupted(after, call):
    begin = []
    def kick():
        begin.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(after, kick)
    timer.start()
    try:
        call()
        print("finished")
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - begin[0] < %d)
    timer.cancel()
""" % SOON

NETWORKS = """
x = np.random.default_rng(0).standard_normal((30000, 28, 28, 1)).astype(np.float32)
net = numemu.load("lenet")
prepared = net.prepare("fp8-e4m3-h100", calibrate=x[:16])
interrupted(0.5, lambda: prepared.infer(x))
interrupted(0.5, lambda: net.infer(x, "fp8-e4m3-h100", noise=True, predictions=True))
interrupted(0.02, lambda: net.prepare("fp8-e4m3-h100", calibrate=x))
interrupted(0.5, lambda: net.eval(({"x": x[i:i + 100]} for i in range(0, 30000, 100)), "fp8-e4m3-h100", metric=lambda *_: 0))
"""
PRODUCTS = """
a = np.full((4096, 4096), 0x38, np.uint8)
unit = numemu.unit("h100.wgmma.e4m3.f32")
interrupted(0.5, lambda: unit.gemm(a, a, reference=True))
"""
STUDIES = """
interrupted(1.5, lambda: numemu.load("lenet").tune("glyphs", "int8-static", steps="adaround", out="t"))
interrupted(1.5, lambda: numemu.experiment("zap", out="e"))
"""


@pytest.mark.parametrize("script, count", [(NETWORKS, 4), (PRODUCTS, 1), (STUDIES, 2)], ids=["networks", "products", "studies"])
def test_ctrl_c_ends_long_work(tmp_path, script, count):
    done = subprocess.run([sys.executable, "-c", BEGIN + script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout == "interrupted True\n" * count, done.stderr


def test_an_interrupted_sweep_goes_on(tmp_path):
    # Progress is looked at ten times a second; points of 200 images may begin and end between two looks.
    config = {"net": "mlp", "data": "glyphs", "eval_images": 4000, "grid": {"roles.weight.format": ["int8", "int4", "int3"]}}
    begun = []

    def second(phase, done, total):
        begun.append(phase)
        if phase.startswith("point 2/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        numemu.sweep(config, out=tmp_path / "a", progress=second)
    assert begun
    rows = numemu.rows(tmp_path / "a")
    assert len(rows) < 3
    study = numemu.sweep(config, out=tmp_path / "a")
    assert study.info["kept"] == len(rows) and len(study.rows) == 3
    numemu.sweep(config, out=tmp_path / "b")
    assert (tmp_path / "a/rows.jsonl").read_bytes() == (tmp_path / "b/rows.jsonl").read_bytes()


def test_an_interrupted_training_goes_on(tmp_path):
    class Enough(Exception):
        pass

    def stop(metrics):
        raise Enough

    options = dict(epochs=2, batch=64, seed=1)
    random = np.random.default_rng(1)
    data = {"x": random.normal(0, 1, (400, 8, 8, 1)).astype(np.float32), "y": random.integers(0, 4, 400)}
    np.savez(tmp_path / "d.npz", **data)
    source = f"npy:{tmp_path}/d.npz,layout=nhwc,test=40,validation=40"
    with pytest.raises(Enough):
        numemu.train("mlp", source, out=tmp_path / "a", on_epoch=stop, **options)
    a, b = (pathlib.Path(numemu.train("mlp", source, out=tmp_path / name, **options)["checkpoint"]) for name in "ab")
    assert a.read_bytes() == b.read_bytes()


def test_what_callables_raise_is_raised_here(tmp_path):
    class Mine(Exception):
        pass

    def fails(*_):
        raise Mine

    def batches():
        yield {"x": np.zeros((4, 28, 28, 1), np.float32)}
        raise Mine

    net = numemu.load("mlp")
    with pytest.raises(Mine):
        net.infer(np.zeros((64, 28, 28, 1), np.float32), "int8-static", progress=fails)
    with pytest.raises(Mine):
        net.eval(batches(), metric=lambda *_: 0)
    with pytest.raises(Mine):
        net.eval(batches())
    for metric, text in [
        (lambda *_: None, "expected numbers, found NoneType"), (lambda *_: "x", "expected numbers, found str"),
        (lambda *_: np.zeros(3), "one of each of 4 samples, found shape \\[3\\]"), (5, "expected a function, found int"),
    ]:
        with pytest.raises(numemu.Error, match="eval: metric: .*" + text):
            net.eval({"x": np.zeros((4, 28, 28, 1), np.float32)}, metric=metric)
    for data, text in [
        ([], "expected at least one batch"), (5, "expected a data set, a dict of arrays or an iterable of such dicts, found int"),
        ([{"x": np.zeros((4, 28, 28, 1))}, {"x": np.zeros((4, 5, 5, 1))}], "x: expected arrays that are alike but for their samples"),
        ({"x": np.array([None])}, "x: dtype: expected numbers, found object"), ([{"x": [1]}, {"y": [1]}], "dicts of the same arrays"),
    ]:
        with pytest.raises(numemu.Error, match="data: .*" + text):
            net.eval(data)
    assert not list(pathlib.Path(tmp_path).iterdir())


def test_threads_of_python_share_objects():
    x = np.random.default_rng(2).standard_normal((16, 28, 28, 1)).astype(np.float32)
    codes = numemu.encode(x, "e4m3fn")
    prepared = numemu.load("mlp").prepare("int8-static", calibrate=x)
    unit, e4m3, out = numemu.unit("h100.wgmma.e4m3.f32"), numemu.format("e4m3fn"), np.empty_like(codes)
    a = np.full((8, 32), 0x38, np.uint8)
    want, wrong = prepared.infer(x)["output"], []

    def work():
        for _ in range(20):
            if not np.array_equal(prepared.infer(x)["output"], want):
                wrong.append("infer")
            if not (e4m3.encode(x, out=out) is out and np.array_equal(out, codes)):
                wrong.append("encode")
            if (unit.dot(a, a) != 32).any():
                wrong.append("dot")

    count = sys.getrefcount(out)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and sys.getrefcount(out) == count


def test_a_forked_process_computes_too():
    x = np.random.default_rng(3).standard_normal(1 << 20, dtype=np.float32)
    want = numemu.encode(x, "e4m3fn")  # with a team of threads
    network = numemu.load("mlp")
    images = np.zeros((4, 28, 28, 1), np.float32)
    logits = network.infer(images, "int8-static")["output"]
    child = os.fork()
    if child == 0:
        same = np.array_equal(numemu.encode(x, "e4m3fn"), want) and np.array_equal(network.infer(images, "int8-static")["output"], logits)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
