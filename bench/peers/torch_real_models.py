"""The models of scripts/bench --real as a PyTorch user writes them; parameters are called as gpuc's variables."""

import torch
from torch import nn
from torch.nn import functional


class ConvNet(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(64 * 7 * 7, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x.float() * (1 / 255))), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


class ConvNorm(nn.Module):
    def __init__(self, inside, outside, kernel, stride, groups, linear=False):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.norm, self.linear = nn.BatchNorm2d(outside), linear

    def forward(self, x):
        y = self.norm(self.conv(x))
        return y if self.linear else functional.relu6(y)


class InvertedResidual(nn.Module):
    def __init__(self, inside, outside, stride, expansion):
        super().__init__()
        wide = inside * expansion
        self.adds = stride == 1 and inside == outside
        self.expand = ConvNorm(inside, wide, 1, 1, 1) if expansion != 1 else nn.Identity()
        self.depthwise = ConvNorm(wide, wide, 3, stride, wide)
        self.project = ConvNorm(wide, outside, 1, 1, 1, linear=True)

    def forward(self, x):
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.adds else y


class MobileNet(nn.Module):
    """MobileNetV2."""

    STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self, model):
        super().__init__()
        blocks, inside = [], 32
        for expansion, channels, count, stride in self.STAGES:
            for index in range(count):
                blocks.append(InvertedResidual(inside, channels, stride if index == 0 else 1, expansion))
                inside = channels
        self.stem, self.blocks = ConvNorm(3, 32, 3, 2, 1), nn.Sequential(*blocks)
        self.last, self.head = ConvNorm(320, 1280, 1, 1, 1), nn.Linear(1280, 1000)

    def forward(self, x):
        return self.head(self.last(self.blocks(self.stem(x))).mean((2, 3)))


class DoubleConv(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.norm2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside)

    def forward(self, x):
        return functional.relu(self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(x))))))


class UNet(nn.Module):
    BASE, LEVELS, CLASSES = 32, 3, 8

    def __init__(self, model):
        super().__init__()
        for level in range(self.LEVELS + 1):
            self.add_module(f"down{level}", DoubleConv(self.BASE << (level - 1) if level else 3, self.BASE << level))
        for level in range(self.LEVELS):
            self.add_module(f"up{level}", nn.ConvTranspose2d(self.BASE << (level + 1), self.BASE << level, 2, 2))
            self.add_module(f"merge{level}", DoubleConv(self.BASE << (level + 1), self.BASE << level))
        self.head = nn.Conv2d(self.BASE, self.CLASSES, 1)

    def forward(self, x):
        part = lambda name, level: getattr(self, f"{name}{level}")
        skipped = [self.down0(x)]
        for level in range(1, self.LEVELS + 1):
            skipped.append(part("down", level)(functional.max_pool2d(skipped[-1], 2)))
        h = skipped[-1]
        for level in reversed(range(self.LEVELS)):
            h = part("merge", level)(torch.cat([skipped[level], part("up", level)(h)], 1))
        return self.head(h)


class VitAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.proj(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width))


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(width), VitAttention(width, heads), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class Vit(nn.Module):
    """ViT-Ti/16 on 224×224."""

    def __init__(self, model, width=192, heads=3, layers=12, patches=14 * 14):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.cls_token, self.pos_embed = nn.Parameter(torch.empty(1, 1, width)), nn.Parameter(torch.empty(1, patches + 1, width))
        self.blocks = nn.Sequential(*(VitBlock(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.cls_token.expand(h.shape[0], -1, -1), h], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(h))[:, 0])


class RnnClassifier(nn.Module):
    """A bidirectional GRU that reads a picture of bytes row by row."""

    def __init__(self, model):
        super().__init__()
        self.rnn = nn.GRU(model["width"], model["hidden"], model["layers"], batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * model["hidden"], 10)

    def forward(self, x):
        last = self.rnn(x.squeeze(1).float() * (1 / 255))[1][-2:]  # (directions, batch, hidden) of the last layer
        return self.fc(last.transpose(0, 1).flatten(1))


class LstmGenerator(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.embed = nn.Embedding(model["vocabulary"], model["embedding"])
        self.lstm = nn.LSTM(model["embedding"], model["hidden"], model["layers"], batch_first=True)
        self.linear = nn.Linear(model["hidden"], model["vocabulary"])

    def forward(self, x):
        return self.linear(self.lstm(self.embed(x))[0])


class Stacks(nn.Module):
    """nn.Transformer's two, called alike."""

    def __init__(self, width, heads, feedforward, layers):
        super().__init__()
        options = {"dropout": 0.0, "batch_first": True}
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, heads, feedforward, **options), layers, nn.LayerNorm(width),
                                             enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, heads, feedforward, **options), layers, nn.LayerNorm(width))


class Translator(nn.Module):
    """Token 0 pads."""

    def __init__(self, model):
        super().__init__()
        self.width, length = model["width"], model["length"]
        self.src_embedding = nn.Embedding(model["vocabulary"], self.width)
        self.tgt_embedding = nn.Embedding(model["vocabulary"], self.width)
        self.transformer = Stacks(self.width, model["heads"], model["feedforward"], model["layers"])
        self.generator = nn.Linear(self.width, model["vocabulary"])
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)
        self.places = torch.stack([angles.sin(), angles.cos()], 2).flatten(1)
        self.later = torch.ones(length, length, dtype=torch.bool).triu(1)

    def forward(self, src, tgt):
        scale, padded = self.width ** 0.5, src == 0
        memory = self.transformer.encoder(self.src_embedding(src) * scale + self.places, src_key_padding_mask=padded)
        h = self.transformer.decoder(self.tgt_embedding(tgt) * scale + self.places, memory, tgt_mask=self.later, tgt_is_causal=True,
                                     memory_key_padding_mask=padded)
        return self.generator(h)


KINDS = {"convnet": ConvNet, "mobilenet": MobileNet, "unet": UNet, "vit": Vit, "rnn-classifier": RnnClassifier,
         "lstm-generator": LstmGenerator, "transformer": Translator}
