# Transformers in plain PyTorch with random weights: the shapes of ViT, GPT-2, BERT, LLaMA and T5.
import math

import torch
from torch import nn


class Attention(nn.Module):
    """Heads over [n, tokens, width]; `mask` is added to the scores, shape [.., tokens, tokens]."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        n, tokens, width = x.shape
        return x.view(n, tokens, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, mask=None, rotate=None):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        if rotate is not None:
            q, k = rotate(q), rotate(k)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores + mask
        n, tokens, width = x.shape
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, tokens, width))


class Block(nn.Module):
    """Attention and a feed-forward layer, each with its residual; norms before them or after."""

    def __init__(self, width, heads, hidden, norm_first=True, approximate="none"):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, hidden), nn.GELU(approximate=approximate), nn.Linear(hidden, width))
        self.norm_first = norm_first

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed(x))


class ViT(nn.Module):
    """Vision Transformer (Dosovitskiy et al., 2021); the defaults are ViT-Tiny/16 (DeiT-Tiny)."""

    def __init__(self, image=224, patch=16, width=192, depth=12, heads=3, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class GPT2(nn.Module):
    """GPT-2 (Radford et al., 2019); the defaults are its small size. Logits share the table of tokens."""

    def __init__(self, vocabulary=50257, context=1024, width=768, depth=12, heads=12):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width, approximate="tanh") for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("mask", torch.full((context, context), -1e9).triu(1))

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.positions(torch.arange(length))
        for block in self.blocks:
            x = block(x, self.mask[:length, :length])
        return self.norm(x) @ self.tokens.weight.t()


class BERT(nn.Module):
    """BERT (Devlin et al., 2019); the defaults are its base size. `mask` is 1 for tokens, 0 for padding."""

    def __init__(self, vocabulary=30522, context=512, width=768, depth=12, heads=12):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width, norm_first=False) for _ in range(depth))
        self.pool = nn.Linear(width, width)

    def forward(self, tokens, mask=None, kinds=None):
        kind = self.kinds.weight[0] if kinds is None else self.kinds(kinds)
        x = self.norm(self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1])) + kind)
        if mask is not None:
            mask = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for block in self.blocks:
            x = block(x, mask)
        return x, torch.tanh(self.pool(x[:, 0]))


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Llama(nn.Module):
    """The parts of LLaMA (Touvron et al., 2023): RMSNorm, rotary positions, a gated feed-forward layer."""

    def __init__(self, vocabulary=1000, width=128, depth=2, heads=4):
        super().__init__()
        self.tokens, self.norm = nn.Embedding(vocabulary, width), RMSNorm(width)
        self.attention = nn.ModuleList(Attention(width, heads) for _ in range(depth))
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(2 * depth))
        self.gate, self.up = (nn.ModuleList(nn.Linear(width, 2 * width, False) for _ in range(depth)) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(2 * width, width, False) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary, False)
        size = width // heads
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(0, size, 2).float() / size))

    def forward(self, tokens):
        length = tokens.shape[1]
        angle = torch.outer(torch.arange(length).float(), self.frequency)
        angle = torch.cat([angle, angle], -1)
        cos, sin = angle.cos(), angle.sin()

        def rotate(x):
            half = x.shape[-1] // 2
            return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

        mask = torch.full((length, length), -1e9).triu(1)
        x = self.tokens(tokens)
        for i, attention in enumerate(self.attention):
            x = x + attention(self.norms[2 * i](x), mask, rotate)
            y = self.norms[2 * i + 1](x)
            x = x + self.down[i](nn.functional.silu(self.gate[i](y)) * self.up[i](y))
        return self.head(self.norm(x))


class T5Encoder(nn.Module):
    """The attention of T5 (Raffel et al., 2020): a learned bias for each bucket of relative positions."""

    def __init__(self, vocabulary=500, width=64, heads=4, buckets=32):
        super().__init__()
        self.tokens, self.bias = nn.Embedding(vocabulary, width), nn.Embedding(buckets, heads)
        self.attention, self.norm, self.buckets = Attention(width, heads), RMSNorm(width), buckets

    def forward(self, tokens):
        place = torch.arange(tokens.shape[1])
        distance = place[None, :] - place[:, None]
        near = self.buckets // 4
        bucket = (distance > 0).long() * (self.buckets // 2)
        distance = distance.abs()
        far = near + (torch.log(distance.float().clamp(min=1) / near) / math.log(128 / near) * near).long()
        bucket = bucket + torch.where(distance < near, distance, far.clamp(max=2 * near - 1))
        bias = self.bias(bucket).permute(2, 0, 1)[None]
        x = self.tokens(tokens)
        return x + self.attention(self.norm(x), bias)
