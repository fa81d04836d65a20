#!/usr/bin/env python3
"""Trains LeNet in PyTorch on MNIST, its products under a recipe: torch_lenet.py FOLDER [--recipe NAME] [--steps N] [--batch B]

Batches of 64: the sums of the first gradients of conv1 over twice as many pixels may not fit the accumulator of six exponent bits.
"""
import argparse
import gzip
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import numemu.torch


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)
        for layer in self.children():  # as numemu train begins
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.fc3.weight, std=1 / 84)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


def mnist(folder, part):
    """Images [n, 1, 28, 28] of mean 0 and deviation 1, and classes."""
    read = lambda name, skip: np.frombuffer(gzip.open(folder / f"{part}-{name}.gz").read(), np.uint8, offset=skip)
    images = read("images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    return torch.from_numpy((images / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081)), torch.from_numpy(read("labels-idx1-ubyte", 8).astype(np.int64))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--recipe", default="e4m3-e5m2-chunked", help='"" for PyTorch alone')
    parser.add_argument("--steps", type=int, default=0, help="0: one epoch")
    parser.add_argument("--batch", type=int, default=64)
    asked = parser.parse_args()
    torch.manual_seed(0)
    net = LeNet()
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.01)  # of numemu train
    images, classes = mnist(asked.folder, "train")
    images, classes = images[:55000], classes[:55000]  # as numemu train, which keeps the rest to validate
    batches = torch.randperm(len(images)).split(asked.batch)[: asked.steps or None]
    emulation = numemu.torch.emulate(net, asked.recipe) if asked.recipe else None
    start, cpu = time.perf_counter(), time.process_time()
    for batch in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images[batch]), classes[batch])
        loss.backward()
        optimizer.step()
    seconds = f"{time.perf_counter() - start:.1f} s, {time.process_time() - cpu:.1f} s of all threads"
    print(f"{len(batches)} steps of {asked.batch}: {seconds}, last loss {loss.item():.3f}")
    net.eval()
    if emulation:
        emulation.calibrate(images[:512].split(128))  # static scales of the trained network
    images, classes = mnist(asked.folder, "t10k")
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in zip(images.split(500), classes.split(500)))
    print(f"test: {right / len(images):.2%}" + (f" under {asked.recipe}" if emulation else ""))


if __name__ == "__main__":
    main()
