"""Complex numbers as pairs, and Fourier transforms (gpuc/formulas/complex_numbers.py) next to eager PyTorch. By a Python with torch."""

import unittest

import torch
from torch import nn
from torch.nn import functional as F

import gpuc
from live_formulas import Case
from live_volumes import seen


class Turned(nn.Module):
    def forward(self, x):
        return x, x * (1 + 2j)


class Complex(Case):
    def test_transforms(self):
        """Of even and odd lengths, cut and padded, along each dimension and several, by each norm."""

        def body(net, h):
            z = torch.complex(h, h.flip(0))
            found = [torch.fft.fft(z), torch.fft.ifft(z, dim=0, norm="ortho"), torch.fft.fft(h, 5, norm="forward"), torch.fft.rfft(h, 11), torch.fft.rfft(h, 7, 0, "ortho")]
            found += [torch.fft.fft2(z), torch.fft.rfft2(h, (6, 5)), torch.fft.ifftn(z, norm="forward"), torch.fft.rfftn(h.view(2, 4, 8), dim=(0, 2))]
            found += [torch.fft.fftshift(z, dim=1), torch.fft.ifftshift(z)]
            real = [torch.fft.irfft(z), torch.fft.irfft(z, 9, 0), torch.fft.irfft2(z, norm="ortho"), torch.fft.irfftn(z.view(2, 4, 8), (4, 5), (0, 2))]
            return seen([torch.view_as_real(each) for each in found] + real)

        self.trains(body)

    def test_spectrograms_and_back(self):
        def body(net, h):
            sound, window = h.view(2, 32), torch.hann_window(8, dtype=h.dtype)
            ways = [torch.stft(sound, 8, 2, window=window, return_complex=True), torch.stft(sound[0], 9, 4, 6, center=False, onesided=False, return_complex=True)]
            ways += [torch.stft(sound, 8, 3, window=window, normalized=True, pad_mode="constant", return_complex=True)]
            back = [torch.istft(ways[0] * 1.5, 8, 2, window=window), torch.istft(ways[0][0], 8, 2, window=window, length=29)]
            return seen([each.abs() for each in ways] + [each.angle() for each in ways[2:]] + back) + ways[0].abs().pow(2).mean()

        self.trains(body)

    def test_arithmetic(self):
        def body(net, h):
            z, w = torch.complex(h[:4], h[4:]), torch.polar(h[:4].exp(), h[4:])
            numbers = [z + w, z - 2, 3 - w, z * w, h[:4] * w, z * 1j + (2 - 1j), w / z, 1 / w, z / 2, -z, z.conj(), z**3, w.log(), (z * 0.1).exp(), z.sqrt(), z @ w.T]
            numbers += [torch.einsum("ij,kj->ik", z, h[:3].to(z.dtype)), torch.einsum("ij,ij,ik->k", z, w, z), torch.sgn(z), w.square(), z.mean(0), z.sum(), z.mH]
            whole = torch.zeros(4, 10, dtype=z.dtype)
            whole[:, 1:9] = z * w
            whole[:, 0] += 1
            numbers += [whole, torch.cat([z, w], 1), torch.stack([z, w]).transpose(0, 1).reshape(4, -1), z.view(2, 2, 8)[:, 1], torch.where(h[:4] > 0, z, w), z.roll(1, 0)]
            sizes = [z.abs(), z.norm(dim=1), z.real, w.imag, torch.view_as_real(z * w), torch.linalg.vector_norm(z), F.l1_loss(z, w), (z * 0).abs()]
            return seen([part for each in numbers for part in (each.real, each.imag)] + sizes) / 99

        self.trains(body)

    def test_rotated_positions(self):
        """As LLaMA's own code has them: of a table that the module keeps."""

        class Rotated(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(6, 8)
                self.table = torch.polar(torch.ones(4, 2), torch.outer(torch.arange(4.0), torch.tensor([1.0, 0.1]))).to(torch.complex128)

            def forward(self, x):
                pairs = torch.view_as_complex(self.fc(x).view(2, 4, 2, 2, 2))
                return torch.view_as_real(pairs * self.table.view(1, 4, 1, 2)).flatten(2)

        torch.manual_seed(0)
        net, batch = Rotated().double(), (torch.randn(8, 6).double(), torch.randn(2, 4, 8).double())
        expected = F.mse_loss(net(batch[0]), batch[1]).item()
        self.assertAlmostEqual(gpuc.compile(net, F.mse_loss, "sgd:lr=0.1", batch)(*batch), expected, delta=1e-12)

    def test_what_a_module_gives(self):
        """A loss takes it; predict says that it does not."""
        torch.manual_seed(0)
        net, batch = nn.Sequential(nn.Linear(6, 8), Turned()).double(), (torch.randn(4, 6).double(), torch.randn(4, 8).double())
        expected = (net(batch[0])[1].abs() - batch[1]).square().mean().item()
        step = gpuc.compile(net, lambda out, target: (out[1].abs() - target).square().mean(), "sgd:lr=0", batch)
        self.assertAlmostEqual(step(*batch), expected, delta=1e-12)
        self.assertAlmostEqual(step.eval_step(*batch), expected, delta=1e-12)
        with self.assertRaisesRegex(gpuc.Error, "forward.. gives complex numbers, .* which predict does not: call the module in eager mode"):
            step.predict(batch[0])

    def test_what_is_not_there(self):
        with self.assertRaisesRegex(gpuc.Error, r"live_complex.py:\d+: tan of complex numbers is not supported: write it by their real and imaginary parts"):
            self.trains(lambda net, h: torch.complex(h, h).tan().abs().sum())  # here
        with self.assertRaisesRegex(gpuc.Error, r"live_complex.py:\d+: a Fourier transform of 5000 numbers, .* of up to 4096"):
            self.trains(lambda net, h: torch.fft.rfft(h, 5000).abs().sum())  # here


if __name__ == "__main__":
    unittest.main()
