"""A LightningModule whose training_step is a compiled step, by Lightning's manual optimisation.

    PYTHONPATH=build/python PYTHON-WITH-LIGHTNING examples/python/lightning_module.py [--epochs N]

Lightning has the loop, the loaders, the logging and the checkpoints; forward pass, backward pass and update are gpuc's.
"""

import argparse

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gpuc

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
arguments = parser.parse_args()


class Classifier(lightning.LightningModule):
    def __init__(self, example):
        super().__init__()
        self.automatic_optimization = False  # Lightning calls neither backward() nor optimizer.step().
        self.net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
        self.example = example

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)]

    def on_fit_start(self):
        # Where Lightning has put the module to its place: a compiled step holds its parameters from here on.
        self.step = gpuc.compile(self.net, nn.CrossEntropyLoss(), self.optimizers().optimizer, self.example)

    def training_step(self, batch, _):
        self.log("loss", self.step(*batch), prog_bar=True)

    def on_train_epoch_end(self):
        self.lr_schedulers().step()

    def validation_step(self, batch, _):
        self.log("val_loss", self.step.eval_step(*batch), batch_size=len(batch[0]))


torch.manual_seed(1)
x = torch.randn(520, 2)
data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
loader = DataLoader(data, 16, shuffle=True)
module = Classifier(next(iter(loader)))
trainer = lightning.Trainer(max_epochs=arguments.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, num_sanity_val_steps=0)  # fmt: skip
trainer.fit(module, loader, DataLoader(data, 16))
print(f"validation loss {trainer.callback_metrics['val_loss']:.4f}")
