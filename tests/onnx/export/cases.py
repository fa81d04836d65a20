# The exported networks: what each is called, how it is built, its inputs, operator set and open axes.
import torch
import torch.nn.functional as F
from torch import nn

import transformers as t

try:
    import torchvision.models as zoo
except ImportError:  # the networks of torchvision are left out
    zoo = None


class Case:
    def __init__(self, family, build, inputs, opset, fixed=False, axes=None, batch_axis=0):
        """`inputs`: shapes without the batch, or functions of the batch. `fixed`: the file states the batch as a
        number. `axes`: further open axes, {input: {axis: name}}. `batch_axis`: of inputs that are functions and of
        outputs."""
        self.batch_axis = batch_axis
        self.family, self.build, self.opset, self.fixed, self.axes = family, build, opset, fixed, axes or {}
        self.inputs = inputs


class Fn(nn.Module):
    """A function with the modules that it calls."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, nn.Parameter(module) if isinstance(module, torch.Tensor) else module)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def tokens(length, vocabulary):
    return lambda n: torch.randint(0, vocabulary, (n, length))


def padding_mask(length, kind=torch.int64, padded=0):
    """1 for tokens, or `padded` where they end: every sample has another length."""

    def make(n):
        mask = torch.ones(n, length, dtype=kind) if not padded else torch.zeros(n, length, dtype=kind)
        for i in range(n):
            mask[i, length - 2 - 3 * i:] = padded
        return mask

    return make


CASES = {}


def case(name, family, build, inputs, opset=13, **more):
    assert name not in CASES, name
    CASES[name] = Case(family, build, inputs if isinstance(inputs, dict) else {"x": inputs}, opset, **more)


def image(name, opset, size=224, family="image", **arguments):
    if zoo:
        case(name, family, lambda: getattr(zoo, name)(weights=None, **arguments), (3, size, size), opset)


# Classification at 224 pixels.
image("alexnet", 9)
image("vgg11_bn", 10)
image("resnet18", 9)
image("resnet50", 13)
image("resnext50_32x4d", 11)
image("wide_resnet50_2", 12)
image("densenet121", 10)
image("googlenet", 11, init_weights=False, aux_logits=False)
image("inception_v3", 12, size=299, init_weights=False, aux_logits=False)
image("squeezenet1_1", 9)
image("shufflenet_v2_x1_0", 11)
image("mobilenet_v2", 11)
image("mobilenet_v3_small", 14)
image("mnasnet1_0", 9)
image("efficientnet_b0", 13)
image("efficientnet_v2_s", 14)
image("regnet_x_400mf", 15)
image("regnet_y_400mf", 12)
image("convnext_tiny", 16)
image("vit_b_16", 14)
image("swin_t", 13)
image("maxvit_t", 15)
case("vit_tiny_16", "image", lambda: t.ViT(), (3, 224, 224), 17)

# Segmentation.
for _name, _opset in (("fcn_resnet50", 11), ("deeplabv3_mobilenet_v3_large", 12),
                      ("lraspp_mobilenet_v3_large", 13)) if zoo else ():
    case(_name, "segmentation",
         lambda name=_name: Fn(lambda s, x: s.net(x)["out"],
                               net=getattr(zoo.segmentation, name)(weights=None, weights_backbone=None)),
         (3, 224, 224), _opset)

# Video and volumes.
for _name, _opset in (("r3d_18", 11), ("r2plus1d_18", 13)) if zoo else ():
    case(_name, "3-D", lambda name=_name: getattr(zoo.video, name)(weights=None), (3, 8, 64, 64), _opset)
case("unet3d", "3-D", lambda: Fn(
    lambda s, x: s.out(torch.cat([x0 := s.a(x), s.up(s.b(F.max_pool3d(x0, 2)))], 1)),
    a=nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU()),
    b=nn.Sequential(nn.Conv3d(8, 16, 3, padding=1), nn.InstanceNorm3d(16), nn.LeakyReLU(0.1)),
    up=nn.ConvTranspose3d(16, 8, 2, 2), out=nn.Conv3d(16, 2, 1)), (1, 16, 16, 16), 11)

# Transformers.
case("gpt2_small", "transformer", t.GPT2, {"tokens": tokens(128, 50257)}, 13, axes={"tokens": {1: "length"}})
case("bert_base", "transformer", t.BERT, {"tokens": tokens(128, 30522)}, 11)
case("bert_base_masked", "transformer", t.BERT,
     {"tokens": tokens(128, 30522), "mask": padding_mask(128)}, 14,
     axes={"tokens": {1: "length"}, "mask": {1: "length"}})
case("bert_fixed_batch", "transformer", lambda: t.BERT(500, 64, 64, 2, 4),
     {"tokens": tokens(24, 500), "mask": padding_mask(24)}, 13, fixed=True)
case("llama", "transformer", t.Llama, {"tokens": tokens(32, 1000)}, 16)
case("t5_encoder", "transformer", t.T5Encoder, {"tokens": tokens(24, 500)}, 12)
case("encoder", "transformer",
     lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2), (20, 64), 14)
case("encoder_masked", "transformer", lambda: Fn(
    lambda s, x, mask: s.net(x, src_key_padding_mask=mask),
    net=nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)),
     {"x": (20, 64), "mask": padding_mask(20, torch.bool, True)}, 13)
case("decoder", "transformer", lambda: Fn(
    lambda s, x, memory: s.net(x, memory, tgt_mask=torch.full((12, 12), float("-inf")).triu(1)),
    net=nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4, 128, batch_first=True), 2)),
     {"x": (12, 64), "memory": (20, 64)}, 15)
# Masks and keys of zeros with the heads merged into the batch: [heads * batch, 1, keys].
case("attention_masked", "transformer", lambda: Fn(
    lambda s, x, mask: s.net(x, x, x, key_padding_mask=mask)[0], net=nn.MultiheadAttention(64, 4, batch_first=True)),
     {"x": (20, 64), "mask": padding_mask(20, torch.bool, True)}, 14)
case("attention_zero_key", "transformer", lambda: Fn(
    lambda s, x: s.net(x, x, x)[0], net=nn.MultiheadAttention(64, 4, batch_first=True, add_zero_attn=True)),
     (20, 64), 12)
case("multihead_attention", "transformer", lambda: Fn(
    lambda s, x: s.net(x, x, x, need_weights=False)[0], net=nn.MultiheadAttention(64, 4, batch_first=True)),
     (20, 64), 12, fixed=True)
case("mixer", "transformer", lambda: Fn(
    lambda s, x: s.head((lambda y: y + s.channel(s.norm2(y)))(
        (lambda y: y + s.token(s.norm1(y).transpose(1, 2)).transpose(1, 2))(s.patch(x).flatten(2).transpose(1, 2))).mean(1)),
    patch=nn.Conv2d(3, 48, 8, 8), norm1=nn.LayerNorm(48), norm2=nn.LayerNorm(48), head=nn.Linear(48, 10),
    token=nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)),
    channel=nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48))), (3, 32, 32), 11)
case("clip_text", "transformer", lambda: Fn(
    lambda s, x: s.out(s.blocks(s.table(x))[torch.arange(x.shape[0]), x.argmax(-1)]),
    table=nn.Embedding(200, 32), blocks=t.Block(32, 4, 64), out=nn.Linear(32, 16)), {"x": tokens(12, 200)}, 14)

# Recurrent.
case("lstm", "recurrent", lambda: Fn(lambda s, x: s.out(s.rnn(x)[0]), rnn=nn.LSTM(16, 32, batch_first=True),
                                     out=nn.Linear(32, 5)), (24, 16), 9)
case("lstm_bidirectional", "recurrent", lambda: Fn(
    lambda s, x: s.rnn(x)[0], rnn=nn.LSTM(16, 32, 2, batch_first=True, bidirectional=True)), (24, 16), 13)
case("lstm_text", "recurrent", lambda: Fn(
    lambda s, x: s.out(s.rnn(s.table(x))[1][0][-1]), table=nn.Embedding(100, 16),
    rnn=nn.LSTM(16, 32, 2, batch_first=True), out=nn.Linear(32, 3)), {"x": tokens(24, 100)}, 11)
case("gru", "recurrent", lambda: Fn(lambda s, x: s.rnn(x)[0], rnn=nn.GRU(16, 32, batch_first=True)), (24, 16), 14)
case("gru_bidirectional", "recurrent", lambda: Fn(
    lambda s, x: s.rnn(x)[0], rnn=nn.GRU(16, 32, 2, batch_first=True, bidirectional=True)), (24, 16), 12)
case("lstm_time_first", "recurrent", lambda: Fn(
    lambda s, x: s.rnn(x.transpose(0, 1))[0][-1], rnn=nn.LSTM(16, 32)), (24, 16), 15)
case("lstm_batch_second", "recurrent", lambda: Fn(lambda s, x: s.out(s.rnn(x)[0]), rnn=nn.LSTM(16, 32), out=nn.Linear(32, 4)),
     {"x": lambda n: torch.randn(24, n, 16)}, 15, batch_axis=1)
case("gru_batch_second", "recurrent", lambda: Fn(lambda s, x: s.rnn(x)[0], rnn=nn.GRU(16, 32, 2, bidirectional=True)),
     {"x": lambda n: torch.randn(24, n, 16)}, 12, batch_axis=1, axes={"x": {0: "time"}})
case("lstm_cells", "recurrent", lambda: Unrolled(), (6, 16), 11)
case("crnn", "recurrent", lambda: Fn(
    lambda s, x: s.out(s.rnn(s.net(x).mean(2).transpose(1, 2))[0]).log_softmax(-1),
    net=nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()),
    rnn=nn.GRU(32, 24, batch_first=True, bidirectional=True), out=nn.Linear(48, 11)), (1, 16, 40), 13)


class Unrolled(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(16, 24)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 24)
        for step in range(6):
            h, c = self.cell(x[:, step], (h, c))
        return h


# One axis: sound, time series, points.
case("tcn", "1-D", lambda: nn.Sequential(
    nn.ConstantPad1d((2, 0), 0), nn.Conv1d(4, 16, 3), nn.ReLU(), nn.ConstantPad1d((4, 0), 0),
    nn.Conv1d(16, 16, 3, dilation=2), nn.ReLU(), nn.Conv1d(16, 3, 1)), (4, 50), 11)
case("m5_audio", "1-D", lambda: nn.Sequential(
    nn.Conv1d(1, 32, 80, 4), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(4), nn.Conv1d(32, 64, 3), nn.BatchNorm1d(64),
    nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 10)), (1, 2000), 9)
case("wavenet", "1-D", lambda: Fn(
    lambda s, x: s.out(x + s.mix(torch.tanh(s.filter(x)) * torch.sigmoid(s.gate(x)))),
    filter=nn.Conv1d(8, 8, 3, padding=2, dilation=2), gate=nn.Conv1d(8, 8, 3, padding=2, dilation=2),
    mix=nn.Conv1d(8, 8, 1), out=nn.Conv1d(8, 16, 1)), (8, 64), 13)
case("wav2vec_encoder", "1-D", lambda: nn.Sequential(
    nn.Conv1d(1, 32, 10, 5, bias=False), nn.GroupNorm(32, 32), nn.GELU(), nn.Conv1d(32, 32, 3, 2, bias=False), nn.GELU(),
    nn.utils.weight_norm(nn.Conv1d(32, 32, 4, padding=2, groups=4))), (1, 800), 14)
case("conformer_convolution", "1-D", lambda: Fn(
    lambda s, x: x + s.net(s.norm(x).transpose(1, 2)).transpose(1, 2), norm=nn.LayerNorm(32),
    net=nn.Sequential(nn.Conv1d(32, 64, 1), nn.GLU(1), nn.Conv1d(32, 32, 7, padding=3, groups=32), nn.BatchNorm1d(32),
                      nn.SiLU(), nn.Conv1d(32, 32, 1))), (40, 32), 15)
case("pointnet", "1-D", lambda: Fn(
    lambda s, x: s.head(s.net(x).max(2)[0]), head=nn.Linear(64, 10),
    net=nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 64, 1))), (3, 100), 10)
case("vocoder", "1-D", lambda: nn.Sequential(
    nn.ConvTranspose1d(20, 16, 8, 4, 2), nn.LeakyReLU(0.1), nn.ConvTranspose1d(16, 8, 4, 2, 1), nn.LeakyReLU(0.1),
    nn.ReflectionPad1d(3), nn.Conv1d(8, 1, 7), nn.Tanh()), (20, 16), 13)

# Generation and resizing.
case("dcgan", "generation", lambda: nn.Sequential(
    Fn(lambda _, x: x[:, :, None, None]), nn.ConvTranspose2d(32, 64, 4), nn.BatchNorm2d(64), nn.ReLU(),
    nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.ConvTranspose2d(32, 3, 3, 2, 1, output_padding=1), nn.Tanh()), (32,), 10)
for _mode, _opset in (("transposed", 9), ("nearest", 11), ("bilinear", 13), ("corners", 16)):
    case(f"unet_{_mode}", "generation", lambda mode=_mode: UNet(mode), (3, 64, 64), _opset)
case("pixel_shuffle", "generation", lambda: nn.Sequential(
    nn.Conv2d(1, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3)), (1, 32, 32), 11)
case("pixel_unshuffle", "generation", lambda: nn.Sequential(
    nn.PixelUnshuffle(2), nn.Conv2d(12, 8, 3, padding=1), nn.Upsample(size=(20, 28), mode="nearest")), (3, 16, 16), 13)
case("bicubic", "generation", lambda: nn.Sequential(
    nn.Upsample(scale_factor=2, mode="bicubic", align_corners=False), nn.Conv2d(3, 3, 3)), (3, 16, 16), 14)
case("style_transfer", "generation", lambda: nn.Sequential(
    nn.ReflectionPad2d(4), nn.Conv2d(3, 16, 9), nn.InstanceNorm2d(16, affine=True), nn.ReLU(),
    nn.Upsample(scale_factor=2, mode="nearest"), nn.ReplicationPad2d(1), nn.Conv2d(16, 3, 3)), (3, 32, 32), 12)
case("diffusion_unet", "generation", lambda: Diffusion(), {"x": (3, 16, 16), "time": lambda n: torch.arange(n) * 17 + 3}, 15)


class UNet(nn.Module):
    def __init__(self, mode):
        super().__init__()
        two = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
                                         nn.Conv2d(o, o, 3, padding=1), nn.ReLU())
        self.down1, self.down2, self.last, self.out = two(3, 16), two(16, 32), two(48, 16), nn.Conv2d(16, 2, 1)
        self.up = {"transposed": lambda: nn.ConvTranspose2d(32, 32, 2, 2), "nearest": lambda: nn.Upsample(scale_factor=2),
                   "bilinear": lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
                   "corners": lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)}[mode]()

    def forward(self, x):
        a = self.down1(x)
        return self.out(self.last(torch.cat([a, self.up(self.down2(F.max_pool2d(a, 2)))], 1)))


class Diffusion(nn.Module):
    """One level of a diffusion model's U-Net: GroupNorm, SiLU, attention over pixels, the time as sines."""

    def __init__(self, width=32):
        super().__init__()
        self.first, self.out = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.norm1, self.norm2, self.norm3 = (nn.GroupNorm(8, width) for _ in range(3))
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.time, self.attention = nn.Linear(width, width), t.Attention(width, 4)
        self.register_buffer("frequency", torch.exp(-torch.arange(width // 2) * 0.5))

    def forward(self, x, time):
        angle = time[:, None].float() * self.frequency[None]
        embedded = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        x = self.first(x)
        y = self.conv1(F.silu(self.norm1(x))) + embedded[:, :, None, None]
        x = x + self.conv2(F.silu(self.norm2(y)))
        n, c, h, w = x.shape
        y = self.attention(self.norm3(x).view(n, c, h * w).transpose(1, 2)).transpose(1, 2)
        return self.out(x + y.reshape(n, c, h, w))


# Single operators and rare combinations.
ACTIVATIONS = (nn.ELU(), nn.SELU(), nn.CELU(0.7), nn.Softplus(), nn.Mish(), nn.Hardswish(), nn.Hardsigmoid(), nn.Hardtanh(),
               nn.GELU(), nn.LeakyReLU(0.2), nn.PReLU(8), nn.PReLU(), nn.LogSigmoid(), nn.Softsign(), nn.Tanhshrink(),
               nn.Hardshrink(), nn.Softshrink(), nn.ReLU6(), nn.Threshold(0.0, 0.0), nn.GLU(1))
case("activations", "operators", lambda: Fn(
    lambda s, x: torch.cat([a(x) for a in s.net], 1), net=nn.ModuleList(ACTIVATIONS)), (8, 6, 6), 16)
case("norms", "operators", lambda: Fn(
    lambda s, x: s.c(s.b(s.a(x))) + F.normalize(x, dim=1), a=nn.GroupNorm(4, 16), b=nn.InstanceNorm2d(16, affine=True),
    c=nn.LayerNorm((16, 8, 8))), (16, 8, 8), 17)
case("local_response", "operators", lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.LocalResponseNorm(5)), (3, 12, 12), 13)
case("pads", "operators", lambda: nn.Sequential(
    nn.ReflectionPad2d((1, 2, 3, 0)), nn.ReplicationPad2d(2), nn.ZeroPad2d((1, -1, 0, 2)), nn.ConstantPad2d(1, 0.5)),
     (3, 8, 8), 11)
case("reductions", "operators", lambda: Fn(
    lambda s, x: torch.stack([x.amax(-1), x.amin(-1), x.sum(-1), x.prod(-1), x.norm(dim=-1), x.logsumexp(-1),
                              x.std(-1), x.abs().sum(-1), x.mean(-1), x.var(-1, unbiased=False)], -1)), (5, 6), 13)
case("trigonometry", "operators", lambda: Fn(
    lambda s, x: torch.cat([x.sin(), x.cos(), x.atan(), torch.erf(x), x.sign(), x.floor(), x.ceil(), x.round(),
                            torch.exp(-x * x), (1 + x.abs()).log(), (x.abs() + 1).rsqrt()], -1)), (7,), 12)
case("comparisons", "operators", lambda: Fn(
    lambda s, x, y: torch.where((x > y) & ~(x.abs() < 0.2) | (y == 0), x, y * 2).clamp(min=-1) + (x >= y).float()
    + torch.maximum(x, y) - torch.minimum(x, y)), {"x": (9,), "y": (9,)}, 13)
case("masked", "operators", lambda: Fn(
    lambda s, x, m: (s.a(x) @ s.b(x).transpose(1, 2)).masked_fill(m[:, None, :] == 0, -1e4).softmax(-1) @ x,
    a=nn.Linear(12, 12), b=nn.Linear(12, 12)), {"x": (10, 12), "m": padding_mask(10)}, 11)
case("einsum", "operators", lambda: Fn(
    lambda s, x: torch.einsum("bhqk,bhkd->bqhd", torch.einsum("bqhd,bkhd->bhqk", x, x).softmax(-1), x.transpose(1, 2))
    + torch.einsum("bqhd,de->bqhe", x, s.w), w=torch.randn(8, 8)), (6, 4, 8), 12)
case("selection", "operators", lambda: Fn(
    lambda s, x: torch.cat([x.topk(3, -1)[0], x.argmax(-1, keepdim=True).float(), x.cumsum(-1), x[..., :2]], -1)), (4, 9), 13)
case("experts", "operators", lambda: Fn(
    lambda s, x: (F.one_hot(s.gate(x).argmax(-1), 4)[..., None].float() * torch.stack([e(x) for e in s.net], 1)).sum(1),
    gate=nn.Linear(8, 4), net=nn.ModuleList(nn.Linear(8, 6) for _ in range(4))), (8,), 11)
case("spatial_transformer", "operators", lambda: Fn(
    lambda s, x: F.grid_sample(x, s.grid(x), align_corners=False),
    grid=nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(2, 2, 3, padding=1), nn.Tanh(), Permute(0, 2, 3, 1))), (2, 12, 12), 16)
case("scatter", "operators", lambda: Fn(scatter), (6, 5), 13)
case("tile", "operators", lambda: Fn(lambda s, x: x.repeat(1, 2, 3) + x.repeat_interleave(2, 1).repeat(1, 1, 3)), (3, 4), 13)
case("dropout_groups", "operators", lambda: nn.Sequential(
    nn.Conv2d(8, 16, 3, groups=4), nn.Dropout2d(), nn.AdaptiveAvgPool2d((3, 3)),
    nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, 4)), (8, 8, 8), 10)
case("fake_quantized", "operators", lambda: quantized(), (3, 16, 16), 13)
case("dlrm", "operators", lambda: Fn(
    lambda s, dense, ids: torch.sigmoid(s.top(torch.cat([d := s.bottom(dense), pairs(
        torch.cat([d[:, None], s.table(ids)], 1))], 1))),
    bottom=nn.Sequential(nn.Linear(13, 16), nn.ReLU()), table=nn.Embedding(100, 16), top=nn.Linear(16 + 10, 1)),
     {"dense": (13,), "ids": tokens(4, 100)}, 11)
case("detection_head", "operators", lambda: Fn(detect, net=nn.Conv2d(8, 3 * 7, 1), grid=torch.randn(1, 3, 6, 6, 2)),
     (8, 6, 6), 12)
case("graph_convolution", "operators", lambda: Fn(
    lambda s, x, a: s.second(a @ torch.relu(s.first(a @ x))), first=nn.Linear(7, 16), second=nn.Linear(16, 3)),
     {"x": (10, 7), "a": (10, 10)}, 13)
case("siamese", "operators", lambda: Fn(
    lambda s, x, y: F.cosine_similarity(s.net(x), s.net(y)), net=nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 8))),
     {"x": (20,), "y": (20,)}, 14)


class Permute(nn.Module):
    def __init__(self, *order):
        super().__init__()
        self.order = order

    def forward(self, x):
        return x.permute(*self.order)


def scatter(_, x):
    y = x.clone()
    y[:, 1:3, ::2] = 0.5
    return y + x


def pairs(x):
    """The products of every two of five vectors."""
    products = x @ x.transpose(1, 2)
    row, column = zip(*((i, j) for i in range(5) for j in range(i)))
    return products[:, row, column]


def detect(s, x):
    n, _, h, w = x.shape
    y = s.net(x).view(n, 3, 7, h, w).permute(0, 1, 3, 4, 2).sigmoid()
    return torch.cat([(y[..., :2] * 2 - 0.5 + s.grid) * 8, (y[..., 2:4] * 2) ** 2, y[..., 4:]], -1).view(n, -1, 7)


def quantized():
    """Quantization-aware: the exporter writes QuantizeLinear and DequantizeLinear."""
    from torch.ao.quantization import FakeQuantize, MinMaxObserver, PerChannelMinMaxObserver
    act = lambda: FakeQuantize(MinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8)
    wgt = FakeQuantize(PerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=torch.qint8,
                       qscheme=torch.per_channel_symmetric, ch_axis=0)
    net = Fn(lambda s, x: s.after(torch.relu(F.conv2d(s.before(x), s.weights(s.conv.weight), s.conv.bias))),
             before=act(), after=act(), weights=wgt, conv=nn.Conv2d(3, 8, 3))
    net(torch.randn(4, 3, 16, 16))
    net.apply(torch.ao.quantization.disable_observer)
    return net


# Small networks of the kinds that people quantize.
def residual(i, o, stride):
    return Fn(lambda s, x: F.relu(s.net(x) + s.short(x)),
              net=nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
                                nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)),
              short=nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)))


def inverted(i, o, stride, act):
    """MobileNet's block with squeeze and excitation."""
    w = 2 * i
    return Fn(lambda s, x: s.out((y := s.wide(x)) * s.gate(y.mean((2, 3), keepdim=True))),
              wide=nn.Sequential(nn.Conv2d(i, w, 1, bias=False), nn.BatchNorm2d(w), act(),
                                 nn.Conv2d(w, w, 3, stride, 1, groups=w, bias=False), nn.BatchNorm2d(w), act()),
              gate=nn.Sequential(nn.Conv2d(w, 8, 1), nn.ReLU(), nn.Conv2d(8, w, 1), nn.Hardsigmoid()),
              out=nn.Sequential(nn.Conv2d(w, o, 1, bias=False), nn.BatchNorm2d(o)))


def grouped_attention(s, x):
    """Four heads of queries over two of keys and values, rotated by their positions."""
    n, length, _ = x.shape
    heads = lambda y, count: y.view(n, length, count, 8).transpose(1, 2)
    turn = lambda y: torch.cat([y[..., :4] * s.cos - y[..., 4:] * s.sin, y[..., :4] * s.sin + y[..., 4:] * s.cos], -1)
    shared = lambda y: y[:, :, None].expand(n, 2, 2, length, 8).reshape(n, 4, length, 8)
    q, k, v = turn(heads(s.q(x), 4)), shared(turn(heads(s.k(x), 2))), shared(heads(s.v(x), 2))
    scores = (q @ k.transpose(2, 3)) * 8**-0.5 + torch.full((length, length), float("-inf")).triu(1)
    return s.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, 32))


def pooled(s, x, edges):
    """A graph network whose nodes gather their neighbours' sums by a list of edges."""
    for layer in (s.first, s.second):
        gathered = torch.zeros_like(x).scatter_add(0, edges[1][:, None].expand(-1, 8), x[edges[0]])
        x = torch.relu(layer(x + gathered))
    return s.head(x)


def queries(s, x):
    """DETR's: learned queries read what a convolution saw."""
    seen = s.stem(x).flatten(2).transpose(1, 2)
    found = s.decoder(s.table.weight[None].expand(x.shape[0], -1, -1), seen)
    return s.classes(found), s.boxes(found).sigmoid()


_ANGLES = torch.arange(12)[:, None] * torch.exp(-torch.arange(4) * 1.5)[None]
case("mlp", "small", lambda: nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 5)),
     (20,), 13)
case("lenet", "small", lambda: nn.Sequential(
    nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
    nn.Linear(400, 84), nn.ReLU(), nn.Linear(84, 10), nn.LogSoftmax(-1)), (1, 28, 28), 9)
case("resnet_small", "small", lambda: nn.Sequential(
    nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), residual(16, 16, 1), residual(16, 32, 2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)), (3, 32, 32), 13)
case("mobilenet_small", "small", lambda: nn.Sequential(
    nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(), inverted(16, 24, 2, nn.Hardswish),
    inverted(24, 24, 1, nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(24, 10)), (3, 32, 32), 14)
case("convnext_small", "small", lambda: Fn(
    lambda s, x: s.head((lambda y: y + s.scale[:, None, None] * s.two(F.gelu(s.one(s.norm(s.depth(y).permute(0, 2, 3, 1)))))
                         .permute(0, 3, 1, 2))(s.stem(x)).mean((2, 3))),
    stem=nn.Conv2d(3, 24, 4, 4), depth=nn.Conv2d(24, 24, 7, padding=3, groups=24), norm=nn.LayerNorm(24),
    one=nn.Linear(24, 96), two=nn.Linear(96, 24), scale=torch.full((24,), 0.5), head=nn.Linear(24, 10)), (3, 32, 32), 16)
case("dense_small", "small", lambda: Fn(
    lambda s, x: s.head(torch.cat([x := s.stem(x), y := s.a(x), s.b(torch.cat([x, y], 1))], 1).mean((2, 3))),
    stem=nn.Conv2d(3, 12, 3, 1, 1), a=nn.Sequential(nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 8, 3, 1, 1)),
    b=nn.Sequential(nn.BatchNorm2d(20), nn.ReLU(), nn.Conv2d(20, 8, 3, 1, 1)), head=nn.Linear(28, 10)), (3, 16, 16), 10)
case("gpt_small", "small", lambda: t.GPT2(200, 32, 32, 2, 4), {"tokens": tokens(16, 200)}, 13, axes={"tokens": {1: "length"}})
case("bert_small", "small", lambda: t.BERT(200, 32, 32, 2, 4), {"tokens": tokens(16, 200), "mask": padding_mask(16)}, 14,
     axes={"tokens": {1: "length"}, "mask": {1: "length"}})
case("grouped_query", "small", lambda: Fn(
    grouped_attention, q=nn.Linear(32, 32, bias=False), k=nn.Linear(32, 16, bias=False), v=nn.Linear(32, 16, bias=False),
    o=nn.Linear(32, 32, bias=False), cos=_ANGLES.cos(), sin=_ANGLES.sin()), (12, 32), 14)
case("class_token", "small", lambda: Fn(
    lambda s, x: s.head(s.block(torch.cat([s.token.expand(x.shape[0], -1, -1), s.patch(x).flatten(2).transpose(1, 2)], 1)
                                + s.place)[:, 0]),
    token=torch.randn(1, 1, 32), place=torch.randn(1, 17, 32), patch=nn.Conv2d(3, 32, 8, 8), block=t.Block(32, 4, 64),
    head=nn.Linear(32, 10)), (3, 32, 32), 13)
case("detr_queries", "small", lambda: Fn(
    queries, stem=nn.Conv2d(3, 32, 8, 8), table=nn.Embedding(5, 32), classes=nn.Linear(32, 4), boxes=nn.Linear(32, 4),
    decoder=nn.TransformerDecoder(nn.TransformerDecoderLayer(32, 4, 64, batch_first=True), 1)), (3, 32, 32), 14)
case("autoencoder", "small", lambda: Fn(
    lambda s, x, noise: (lambda mean, spread: (s.decoder(mean + noise * (0.5 * spread).exp()), mean, spread))(
        *s.encoder(x.flatten(1)).chunk(2, -1)),
    encoder=nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16)),
    decoder=nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())), {"x": (1, 8, 8), "noise": (8,)}, 13)
case("embedding_bag", "small", lambda: Fn(
    lambda s, x: s.head(s.table(x)), table=nn.EmbeddingBag(50, 16, mode="mean"), head=nn.Linear(16, 4)),
     {"x": tokens(6, 50)}, 13, fixed=True)
case("edge_list", "small", lambda: Fn(pooled, first=nn.Linear(8, 8), second=nn.Linear(8, 8), head=nn.Linear(8, 3)),
     {"x": lambda n: torch.randn(10, 8), "edges": lambda n: torch.randint(0, 10, (2, 24))}, 16, fixed=True)
case("text_cnn", "small", lambda: Fn(
    lambda s, x: s.head(torch.cat([F.relu(c(s.table(x).transpose(1, 2))).amax(-1) for c in s.net], -1)),
    table=nn.Embedding(100, 16), net=nn.ModuleList(nn.Conv1d(16, 12, k) for k in (3, 4, 5)), head=nn.Linear(36, 4)),
     {"x": tokens(20, 100)}, 13)
case("squeeze_1d", "small", lambda: Fn(
    lambda s, x: s.head(((y := s.net(x)) * s.gate(y.mean(-1)).unsqueeze(-1)).mean(-1)),
    net=nn.Sequential(nn.Conv1d(4, 16, 5, 2), nn.BatchNorm1d(16), nn.SiLU(), nn.Conv1d(16, 16, 3, groups=16)),
    gate=nn.Sequential(nn.Linear(16, 4), nn.SiLU(), nn.Linear(4, 16), nn.Sigmoid()), head=nn.Linear(16, 3)), (4, 64), 12)
