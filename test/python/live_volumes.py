"""Layers of three dimensions (gpuc/formulas/volumes.py) next to eager PyTorch's. By a Python with torch."""

import copy
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import gpuc
from live_formulas import Case
from modules import eager_losses


def seen(parts):
    """Each number by a weight of its own."""
    return sum((part * torch.arange(1, part.numel() + 1).double().cos().view(part.shape)).sum() for part in parts) / 9


class Volumes(Case):
    def test_convolutions(self):
        """Of several taps along the depth, by strides, gaps, padding, groups and words; with a batch and without."""
        taps = torch.randn(6, 2, 3, 2, 3).double() / 3

        def body(net, h):
            volumes = h.view(2, 2, 4, 2, 2)
            parts = [
                F.conv3d(volumes, taps, h[0, :6], padding=(1, 1, 1)),
                F.conv3d(volumes, taps[:, :1], padding=(2, 1, 1), stride=(2, 1, 3), groups=2),
                F.conv3d(volumes, h.reshape(-1)[:32].view(2, 2, 2, 2, 2), padding=(0, 1, 1), dilation=(3, 2, 1)),
                F.conv3d(volumes, taps, padding="same", dilation=(1, 2, 1)),
                F.conv3d(F.pad(volumes, (1, 1)), taps[..., :2, :2, :1], padding="valid"),
                F.conv3d(volumes[0], taps, h[0, :6], padding=1),
            ]
            return seen(parts)

        self.trains(body)

    def test_transposed_convolutions(self):
        taps = torch.randn(4, 2, 3, 2, 3).double() / 3

        def body(net, h):
            volumes = h.view(2, 4, 4, 2, 1)
            parts = [
                F.conv_transpose3d(volumes, taps, h[0, :2]),
                F.conv_transpose3d(volumes, h.reshape(-1)[:32].view(4, 1, 2, 2, 2), stride=2),
                F.conv_transpose3d(volumes, taps, stride=(2, 1, 3), padding=(2, 1, 1), output_padding=(1, 0, 2)),
                F.conv_transpose3d(volumes, taps, h[0, :4], stride=(3, 2, 1), groups=2, output_padding=(2, 0, 0)),
                F.conv_transpose3d(volumes, taps, dilation=(3, 1, 2), padding=(3, 0, 1)),
                F.conv_transpose3d(volumes[1], taps[:, :, :2], h[0, :2], stride=(2, 1, 1), padding=(1, 0, 0), output_padding=(1, 0, 0)),
            ]
            return seen(parts)

        self.trains(body)

    def test_pools(self):
        """Of the largest, and where that lies, where several are as large, too; and of the mean."""

        def body(net, h):
            volumes = h.repeat(1, 3).view(2, 2, 6, 4, 2)
            parts = [
                F.max_pool3d(volumes, 2),
                F.max_pool3d(volumes.relu(), (3, 2, 1), stride=(2, 1, 1), padding=(1, 1, 0)),
                F.max_pool3d(volumes, (2, 1, 2), stride=(4, 2, 2), dilation=(2, 1, 1), ceil_mode=True),
                F.max_pool3d(volumes[0], (2, 3, 1)),
                F.adaptive_max_pool3d(volumes, (4, 3, 1)),
                F.avg_pool3d(volumes, 2),
                F.avg_pool3d(volumes, (3, 2, 1), stride=(2, 1, 1), padding=(1, 1, 0)),
                F.avg_pool3d(volumes, (3, 2, 1), stride=(2, 3, 1), padding=(1, 1, 0), count_include_pad=False, ceil_mode=True),
                F.avg_pool3d(volumes, (4, 3, 2), stride=3, padding=(1, 0, 1), ceil_mode=True),
                F.avg_pool3d(volumes[0], (2, 3, 1), divisor_override=5),
                F.adaptive_avg_pool3d(volumes, (4, 3, 1)),
                F.adaptive_avg_pool3d(volumes, 1),
            ]
            values, places = F.max_pool3d(volumes, (3, 2, 2), return_indices=True)
            _, others = F.adaptive_max_pool3d(volumes, (4, 3, 2), return_indices=True)
            return seen([*parts, values, F.max_unpool3d(values, places, (3, 2, 2)), places, others])

        self.trains(body)

    def test_samples(self):
        """Between elements, at them, and beyond the border, by each way to go on there."""

        def body(net, h):
            volumes = h.view(2, 2, 4, 2, 2)
            points = (h.reshape(-1)[:54].view(2, 3, 1, 3, 3) * 3).sin() * 1.6
            theta = h.reshape(-1)[:24].view(2, 3, 4)
            parts = [F.grid_sample(volumes, points, mode, beyond, aligned)
                     for mode in ("bilinear", "nearest") for beyond in ("zeros", "border", "reflection") for aligned in (False, True)]  # fmt: skip
            return seen([*parts, F.grid_sample(volumes, F.affine_grid(theta, (2, 2, 3, 2, 2), align_corners=False), align_corners=False)])

        self.trains(body)

    def test_a_network(self):
        """What segments volumes: down, up again, and what stands beside."""

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.down = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1, bias=False), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2))
                self.up = nn.ConvTranspose3d(4, 4, 2, stride=2)
                self.norm, self.out = nn.InstanceNorm3d(4, affine=True), nn.Conv3d(5, 3, 1)

            def forward(self, x):
                low = self.down(x)
                high = F.leaky_relu(self.norm(self.up(low))) + F.interpolate(low, scale_factor=2, mode="trilinear") + F.interpolate(low, scale_factor=2)
                return self.out(F.dropout3d(torch.cat([high, x], 1), 0.0, self.training))

        torch.manual_seed(0)
        net = Net().double()
        eager, batch = copy.deepcopy(net), (torch.randn(2, 1, 6, 4, 4).double(), torch.randint(0, 3, (2, 6, 4, 4)))
        step = gpuc.compile(net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1), batch)
        expected = eager_losses(eager, nn.CrossEntropyLoss(), torch.optim.SGD(eager.parameters(), lr=0.1), batch, 3)
        for ours, theirs in zip([step(*batch) for _ in range(3)], expected):
            self.assertAlmostEqual(ours, theirs, delta=1e-10)
        self.assertTrue(torch.allclose(step.predict(batch[0]), eager.eval()(batch[0]), rtol=0, atol=1e-10))


if __name__ == "__main__":
    unittest.main()
