"""Networks of several inputs and outputs, from PyTorch, under two shipped recipes with metrics of the caller's own."""
import numemu
import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: apt install python3-torch")
import torch  # noqa: E402
import torch_models  # noqa: E402

RECIPES = ["int8-static", "fp8-e4m3-h100"]
SAMPLES, TEST, CALIBRATION = 512, 10**6, 10**7  # seeds that training does not reach


def batches(samples, size=64):
    return [{name: array[first:first + size] for name, array in samples.items()}
            for first in range(0, len(next(iter(samples.values()))), size)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def reported(capsys, name, results):
    """The figures, where they are looked for: pytest -s."""
    with capsys.disabled():
        for recipe, result in results.items():
            print(f"\n{name} under {recipe}: {result['value']}, float32 {result['float32']}", end="")


def test_a_bert_of_ids_and_mask(folder, capsys):
    model = torch_models.bert(folder / "bert.onnx")
    net = numemu.load(folder / "bert.onnx")
    assert net.inputs == ["input_ids", "attention_mask"] and net.outputs == ["logits"]
    samples = torch_models.sentences(SAMPLES, TEST)
    with torch.no_grad():
        exact = model(*(torch.from_numpy(samples[name]) for name in net.inputs)).numpy()

    def right(outputs, batch):
        return outputs["logits"].argmax(1) == batch["label"]

    results = {recipe: net.eval(iter(batches(samples)), recipe, metric=right,
                                calibrate=torch_models.sentences(128, CALIBRATION)) for recipe in RECIPES}
    reported(capsys, "BERT, top-1", results)
    for result in results.values():
        assert result["samples"] == SAMPLES and result["calibration"]["samples"] == 128
        assert result["float32"] == (exact.argmax(1) == samples["label"]).mean() > 0.95
        assert abs(result["difference"]) < 0.02
    # The same arrays as a data set: the row of `numemu eval`, with calibration samples of their own.
    data = {name: samples[name] for name in net.inputs} | {"y": samples["label"]}
    row = net.eval(data, RECIPES[0], calibrate={name: torch_models.sentences(128, CALIBRATION)[name] for name in net.inputs})
    assert row["metrics"]["top1"] == pytest.approx(results[RECIPES[0]]["value"], abs=1e-6)  # six digits
    # The mask is read: without it padding counts.
    ones = dict(samples, attention_mask=np.ones_like(samples["attention_mask"]))
    assert net.eval(ones, metric=right)["value"] < 0.95


def test_a_siamese_network(folder, capsys):
    torch_models.siamese(folder / "siamese.onnx")
    net = numemu.load(folder / "siamese.onnx")
    assert (net.inputs, net.outputs) == (["left", "right"], ["distance", "embedding", "other"])
    samples = torch_models.pairs(SAMPLES, TEST)

    def figures(outputs, batch):
        assert set(outputs) == set(net.outputs)
        return {"accuracy": (outputs["distance"][:, 0] < 1) == batch["same"],
                "distance": ((outputs["embedding"] - outputs["other"]) ** 2).sum(1)}

    results = {recipe: net.eval(batches(samples), recipe, metric=figures, calibrate=torch_models.pairs(128, CALIBRATION))
               for recipe in RECIPES}
    reported(capsys, "siamese", results)
    for result in results.values():
        assert result["float32"]["accuracy"] > 0.95
        assert abs(result["difference"]["accuracy"]) < 0.02
        assert result["difference"]["distance"] != 0
    # The two towers share their weights: the same image has the same embedding, also in numbers of 8 bits.
    twice = net.infer({"left": samples["left"], "right": samples["left"]}, RECIPES[1])
    assert not twice["distance"].any() and np.array_equal(twice["embedding"], twice["other"])


def test_a_detector_head(folder, capsys):
    model = torch_models.detector(folder / "detector.onnx")
    net = numemu.load(folder / "detector.onnx")
    samples = torch_models.scenes(SAMPLES, TEST)
    with torch.no_grad():
        classes, boxes = (y.numpy() for y in model(torch.from_numpy(samples["image"])))
    exact = torch_models.average_precision([torch_models.detections({"classes": classes, "boxes": boxes}, samples)])
    results = {recipe: net.eval(batches(samples), recipe, metric=torch_models.detections,
                                combine=torch_models.average_precision,
                                calibrate=torch_models.scenes(128, CALIBRATION)) for recipe in RECIPES}
    reported(capsys, "detector, average precision", results)
    for result in results.values():
        assert result["float32"] == pytest.approx(exact, abs=0.01)  # numbers of PyTorch differ in their last bits
        assert result["float32"] > 0.85 and abs(result["difference"]) < 0.03
    # Metrics per output, of the command: classes first, then boxes.
    row = net.eval({"image": samples["image"], "y/classes": samples["classes"], "y/boxes": samples["boxes"]},
                   RECIPES[1], calibrate={"image": torch_models.scenes(64, CALIBRATION)["image"]})
    assert [score["name"] for score in row["scores"]] == ["mean_iou", "pixel_accuracy", "top1", "boxes/mse", "boxes/mae"]
