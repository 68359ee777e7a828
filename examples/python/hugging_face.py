"""A model of the transformers library, which computes its loss by itself: GPT-2, small, on the letters of a text.

    PYTHONPATH=build/python PYTHON-WITH-TRANSFORMERS examples/python/hugging_face.py [--text FILE] [--epochs N]
"""

import argparse
import pathlib
import tempfile

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

import gpuc

parser = argparse.ArgumentParser()
parser.add_argument("--text", default=__file__, help="what is learnt")
parser.add_argument("--epochs", type=int, default=3)
arguments = parser.parse_args()

LENGTH = 32
tokens = torch.tensor(list(pathlib.Path(arguments.text).read_bytes()))
samples = tokens[: len(tokens) // LENGTH * LENGTH].reshape(-1, LENGTH)
# Labels are the tokens themselves: the model shifts them.
data = [{"input_ids": each, "labels": each} for each in samples]

torch.manual_seed(1)
config = GPT2Config(vocab_size=256, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, use_cache=False,
                    bos_token_id=None, eos_token_id=None)  # fmt: skip
net = GPT2LMHeadModel(config).train()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
loader = DataLoader(data, batch_size=8, shuffle=True, drop_last=True)

# A loss of None: the `.loss` of what the module gives. A batch that is a dict is passed by its keys.
step = gpuc.compile(net, None, optimizer, next(iter(loader)))
with tempfile.TemporaryDirectory() as folder:
    fit = gpuc.fit(step, loader, epochs=arguments.epochs, checkpoint_dir=f"{folder}/run")
    net.save_pretrained(f"{folder}/gpt2")  # The module has the trained weights at all times.
for epoch in fit.epochs:
    print(f"epoch {epoch.epoch}: loss {epoch.loss:.4f}")
