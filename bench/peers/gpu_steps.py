"""What steps of PyTorch take on a GPU: GPT-2 124M, ResNet-50 and an MLP, beside gpuc-run of the same models.

  python3 bench/peers/gpu_steps.py RESULTS.json [--models=gpt2,resnet50,mlp] [--modes=eager,compile] [--device=cuda]

gpt2: T=1024, batch 8, bf16, fused attention, fused AdamW. resnet50: batch 64, bf16, channels last, SGD. mlp: 784-128-10, batch
32, f32, Adam; compiled with its optimizer as CUDA graphs (reduce-overhead). Needs torch and, for resnet50, torchvision."""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

WARMUP, STEPS = 5, 30


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.c_attn, self.c_proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln_2, self.c_fc, self.mlp_proj = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for y in self.c_attn(self.ln_1(x)).split(width, 2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.c_proj(attended)
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, vocabulary=50257, length=1024, width=768, heads=12, layers=12):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks, self.ln_f = nn.ModuleList(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width)
        nn.init.normal_(self.wte.weight, 0, 0.02)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.t()


def case_of(name, mode, device):
    """Model, optimizer, x, y, and whether products are of bf16."""
    if name == "gpt2":
        torch.set_float32_matmul_precision("high")
        model = Gpt2().to(device)
        x, y = (torch.randint(0, 50257, (8, 1024), device=device) for _ in range(2))
        return model, torch.optim.AdamW(model.parameters(), 1e-3, (0.9, 0.99), weight_decay=0.1, fused=True), x, y, True
    if name == "resnet50":
        import torchvision
        model = torchvision.models.resnet50().to(device, memory_format=torch.channels_last)
        x = torch.randn(64, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
        y = torch.randint(0, 1000, (64,), device=device)
        return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, fused=True), x, y, True
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    x, y = torch.randn(32, 784, device=device), torch.randint(0, 10, (32,), device=device)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True, capturable=mode == "compile" and device == "cuda")
    return model, optimizer, x, y, False


def step_of(name, mode, device):
    model, optimizer, x, y, is_mixed = case_of(name, mode, device)
    forward = torch.compile(model) if mode == "compile" and name != "mlp" else model

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=is_mixed):
            logits = forward(x)
            loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss

    return torch.compile(step, mode="reduce-overhead") if mode == "compile" and name == "mlp" else step


def measure(name, mode, device):
    """Microseconds of a step that is waited for, and of one in a row; bytes at the peak."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    step, begin = step_of(name, mode, device), time.perf_counter()
    for _ in range(WARMUP):
        step()
    wait()
    row = {"name": f"{name} {mode}", "warmup_s": time.perf_counter() - begin}
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        step()
        wait()
        times.append((time.perf_counter() - begin) * 1e6)
    begin = time.perf_counter()
    for _ in range(STEPS):
        step()
    wait()
    row.update(median_us=statistics.median(times), min_us=min(times),
               streamed_us=(time.perf_counter() - begin) / STEPS * 1e6)
    if device == "cuda":
        row["peak"] = torch.cuda.max_memory_allocated()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--models", default="gpt2,resnet50,mlp")
    parser.add_argument("--modes", default="eager,compile")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    rows = []
    for mode in options.modes.split(","):
        for name in options.models.split(","):
            torch.manual_seed(0)
            torch.compiler.reset()
            rows.append(measure(name, mode, options.device))
            print(rows[-1], flush=True)
    with open(options.results, "w") as file:
        json.dump({"pytorch": torch.__version__, "steps": rows}, file, indent=1)


main()
