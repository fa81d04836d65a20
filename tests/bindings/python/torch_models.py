"""Networks of several inputs or outputs as PyTorch's exporter writes them, trained for a moment on tasks that are drawn here,
with samples to test and metrics of one's own."""
import warnings

import numpy as np
import torch
from torch import nn


class Bert(nn.Module):
    """An encoder of token numbers under a mask of the tokens that are there; two classes from the first token."""

    def __init__(self, words=20, tokens=12, width=32, heads=4, layers=2):
        super().__init__()
        self.heads = heads
        self.words, self.positions = nn.Embedding(words, width), nn.Parameter(torch.randn(tokens, width) * 0.1)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"norm1": nn.LayerNorm(width), "query": nn.Linear(width, width), "key": nn.Linear(width, width),
                           "value": nn.Linear(width, width), "out": nn.Linear(width, width), "norm2": nn.LayerNorm(width),
                           "up": nn.Linear(width, 2 * width), "down": nn.Linear(2 * width, width)}) for _ in range(layers))
        self.classifier = nn.Linear(width, 2)

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids) + self.positions
        n, t, w = x.shape
        absent = (1 - attention_mask.to(x.dtype)).reshape(n, 1, 1, t) * -10000.0
        for layer in self.layers:
            y = layer["norm1"](x)
            split = lambda name: layer[name](y).reshape(n, t, self.heads, w // self.heads).permute(0, 2, 1, 3)
            scores = torch.softmax(split("query") @ split("key").transpose(-1, -2) / (w // self.heads) ** 0.5 + absent, -1)
            x = x + layer["out"]((scores @ split("value")).permute(0, 2, 1, 3).reshape(n, t, w))
            x = x + layer["down"](torch.relu(layer["up"](layer["norm2"](x))))
        return self.classifier(x[:, 0])


class Siamese(nn.Module):
    """One tower for two images; the squared distance of their embeddings."""

    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1),
                                   nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 16))

    def forward(self, left, right):
        a, b = self.tower(left), self.tower(right)
        return ((a - b) ** 2).sum(1, keepdim=True), a, b


class Detector(nn.Module):
    """A backbone and two heads for each of 16 cells: a class (0: nothing) and a box (x0, y0, x1, y1) in shares of the image."""

    def __init__(self, classes=3):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classes, self.boxes = nn.Conv2d(32, classes, 3, padding=1), nn.Conv2d(32, 4, 3, padding=1)

    def forward(self, image):
        x = self.backbone(image)
        cells = lambda y: y.flatten(2).transpose(1, 2)
        return cells(self.classes(x)), torch.sigmoid(cells(self.boxes(x)))


def export(model, path, args, inputs, outputs):
    model.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, args, str(path), input_names=inputs, output_names=outputs, opset_version=13,
                          dynamic_axes={name: {0: "batch"} for name in inputs + outputs})


def trained(model, batch_of, loss_of, steps, rate=3e-3):
    """After so many steps of Adam on batches of 64 new samples each."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the same weights wherever it runs
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for step in range(steps):
        batch = {name: torch.from_numpy(array) for name, array in batch_of(64, step).items()}
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
    return model


def sentences(n, seed):
    """Class 1: of the tokens that are there more have even numbers than odd ones."""
    random = np.random.default_rng(seed)
    ids = random.integers(2, 20, (n, 12))
    ids[:, 0] = 1
    there = np.arange(12) < random.integers(4, 13, n)[:, None]
    sign = np.where(ids % 2 == 0, 1, -1)
    sign[:, 0] = 0
    return {"input_ids": ids, "attention_mask": there.astype(np.int64),
            "label": ((sign * there).sum(1) > 0).astype(np.int64)}


def bert(path):
    loss = lambda model, b: nn.functional.cross_entropy(model(b["input_ids"], b["attention_mask"]), b["label"])
    model = trained(Bert(), sentences, loss, 120)
    sample = sentences(2, 0)
    export(model, path, tuple(torch.from_numpy(sample[name]) for name in ("input_ids", "attention_mask")),
           ["input_ids", "attention_mask"], ["logits"])
    return model


def pairs(n, seed):
    """Two drawings of a cross at a place or of different places, with noise; 1 where they are the same."""
    random = np.random.default_rng(seed)
    same = random.random(n) < 0.5
    places = random.integers(2, 10, (n, 2, 2))
    places[same, 1] = places[same, 0]
    images = random.normal(0, 0.25, (n, 2, 1, 12, 12)).astype(np.float32)
    for i in range(n):
        for k, (y, x) in enumerate(places[i]):
            images[i, k, 0, y - 2:y + 3, x] += 1
            images[i, k, 0, y, x - 2:x + 3] += 1
    same = (places[:, 0] == places[:, 1]).all(1)
    return {"left": images[:, 0].copy(), "right": images[:, 1].copy(), "same": same.astype(np.float32)}


def siamese(path):
    def loss(model, b):
        distance = model(b["left"], b["right"])[0][:, 0]
        return (b["same"] * distance + (1 - b["same"]) * torch.relu(2 - distance)).mean()

    model = trained(Siamese(), pairs, loss, 150)
    sample = pairs(2, 0)
    export(model, path, tuple(torch.from_numpy(sample[name]) for name in ("left", "right")), ["left", "right"],
           ["distance", "embedding", "other"])
    return model


def scenes(n, seed):
    """A bright or a dark rectangle; the cell of its centre has its class and its box."""
    random = np.random.default_rng(seed)
    image = random.normal(0, 0.2, (n, 1, 16, 16)).astype(np.float32)
    classes, boxes = np.zeros((n, 16), np.int64), np.zeros((n, 16, 4), np.float32)
    for i in range(n):
        height, width = random.integers(4, 9, 2)
        y, x = random.integers(0, 17 - height), random.integers(0, 17 - width)
        bright = random.integers(0, 2)
        image[i, 0, y:y + height, x:x + width] += 1 if bright else -1
        cell = (2 * y + height) // 8 * 4 + (2 * x + width) // 8
        classes[i, cell] = 1 + bright
        boxes[i, cell] = np.array([x, y, x + width, y + height]) / 16
    return {"image": image, "classes": classes, "boxes": boxes}


def detector(path):
    def loss(model, b):
        logits, boxes = model(b["image"])
        there = (b["classes"] > 0).to(boxes.dtype)[:, :, None]
        return (nn.functional.cross_entropy(logits.flatten(0, 1), b["classes"].flatten(), torch.tensor([0.1, 1.0, 1.0]))
                + 5 * (there * (boxes - b["boxes"]).abs()).sum() / there.sum())

    model = trained(Detector(), scenes, loss, 150)
    export(model, path, (torch.from_numpy(scenes(2, 0)["image"]),), ["image"], ["classes", "boxes"])
    return model


def average_precision(results):
    """Of detections of all batches: (score, whether right) of each image's best cell; the area under precision by recall."""
    score, right = (np.concatenate(parts) for parts in zip(*results))
    right = right[np.argsort(-score, kind="stable")]
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return float((precision * right).sum() / len(right))


def detections(outputs, batch):
    """Of each image: the score of the cell that is surest of an object, and whether its class is right and its box overlaps
    that of the object by half at least."""
    logits, boxes = outputs["classes"].astype(np.float64), outputs["boxes"]
    share = np.exp(logits - logits.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    cell = share[:, :, 1:].max(-1).argmax(1)
    image = np.arange(len(cell))
    there = batch["classes"].argmax(1)
    own, other = boxes[image, cell], batch["boxes"][image, there]
    overlap = np.clip(np.minimum(own[:, 2:], other[:, 2:]) - np.maximum(own[:, :2], other[:, :2]), 0, None).prod(1)
    area = lambda box: (box[:, 2:] - box[:, :2]).prod(1)
    iou = overlap / (area(own) + area(other) - overlap)
    same = logits[image, cell].argmax(-1) == batch["classes"][image, there]
    return share[image, cell, 1:].max(-1), (same & (iou >= 0.5)).astype(np.float64)
