"""What is wrong with a module, a loss, an optimizer or a call of a step is told with the user's line and the cure; run by torch_test.py with a
Python that has torch."""

import contextlib
import copy
import functools
import io
import os
import pathlib
import re
import sys
import tempfile
import traceback
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpuc  # noqa: E402
from gpuc.batches import checksum_of  # noqa: E402
from gpuc.formulas.cures import cured  # noqa: E402
from gpuc.lines import user_line  # noqa: E402
from modules import Mlp  # noqa: E402


class Twice(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        out = super().__torch_function__(function, types, args, kwargs or {})
        return out * 2 if function is F.linear else out


class Lines(unittest.TestCase):
    """Each error names the user's line, and the cure."""

    def error(self, *, net=None, make=None, optimizer=None):
        net = net or Mlp()
        batch = torch.randn(4, 6), torch.randint(0, 3, (4,))
        make = make or (lambda net: torch.optim.SGD(net.parameters(), lr=0.1))
        with self.assertRaises(gpuc.Error) as raised:
            gpuc.compile(net, nn.CrossEntropyLoss(), optimizer or make(net), batch)
        return str(raised.exception)

    def at(self, body, *texts):
        """A module whose forward pass is `body`, in line 7 of its file, gives these errors, each there."""
        source = ("import torch\nfrom torch import nn\nfrom torch.nn import functional as F\nclass Broken(nn.Module):\n"
                  "    def __init__(self): super().__init__(); self.fc = nn.Linear(6, 3)\n"
                  f"    def forward(self, x):\n        return {body}\n")  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "broken.py"
            path.write_text(source)
            names = {}
            exec(compile(source, str(path), "exec"), names)
            error = self.error(net=names["Broken"]())
        lines = error.splitlines()
        for text in texts:
            self.assertTrue(any(f"{path}:7: " in line and text in line for line in lines), error)

    def test_ops_that_are_not_there(self):
        self.at("self.fc(torch.fft.fft(x, 5000).real[:, :6])", "a Fourier transform of 5000 numbers, and those of a compiled step are products")
        self.at("self.fc(torch.special.i0(x))", "i0.default is not supported")
        self.at("self.fc(x) + torch.nextafter(self.fc(x), x[:, :3])", "nextafter.default is not supported")

    def test_many_that_are_not_there(self):
        """A line each, and what is wrong in it."""
        for body, text in {
            "self.fc(x + F.fractional_max_pool2d(x[None], 2, output_size=2).sum())": "fractional_max_pool2d.default is not supported: write it by ops",
            "self.fc((x * 1j).tan().imag)": "tan of complex numbers is not supported: write it by their real and imaginary parts",
            "self.fc(x) * torch.ones(3, dtype=torch.int16)": "torch.int16 is an element type that gpuc does not have: cast it, .to(torch.int32)",
            "self.fc(x) * torch.linalg.svd(x)[1].sum()": "_linalg_svd.default is not supported: its steps hang on values: compute it outside",
            "self.fc(x.to_sparse().to_dense())": "_to_sparse.default is not supported: tensors are dense",
            "torch.linalg.lstsq(self.fc(x), x).solution[:, :3]": "linalg_lstsq.default is not supported: of full rank torch.linalg.solve(a.mT @ a",
            "self.fc(x) * torch.linalg.pinv(x).sum()": "linalg_pinv.atol_rtol_tensor is not supported: of full rank torch.linalg.inv(",
            "torch.frexp(self.fc(x))[0]": "frexp.Tensor is not supported: write it by ops that are there",
            "self.fc(x) * torch.poisson(x.abs()).sum()": "poisson.default is not supported: draw it outside of the module",
        }.items():
            with self.subTest(body):
                self.at(body, text)

    def test_packages_beside_torch(self):
        """Whose names begin as torch's: their lines are the user's, and their ops have cures."""
        beside = os.path.dirname(torch.__file__) + "vision/ops/misc.py"
        trace = "".join(f'  File "{file}", line {line}, in forward\n' for file, line in ((beside, 7), (nn.__file__, 9)))
        self.assertEqual(user_line(trace), (beside, 7))
        self.assertIn("torchvision.roi_align.default is not supported: F.grid_sample(x, points)", cured("torchvision.roi_align.default is not supported"))
        self.assertIn("write it by ops that are there", cured("vendor.some_op.default is not supported"))

    def test_what_is_no_call_of_a_module(self):
        """Arguments that are none, and results that are no tensors: whose they are, and where that stands."""

        class Given(Mlp):
            def __init__(self, give):
                super().__init__()
                self.give = give

            def forward(self, x):
                return self.give(super().forward(x))

        class Two(Mlp):
            def forward(self, x, mask):
                return super().forward(x * mask)

        async def later(out):
            return out

        batch, loader = (torch.randn(4, 6), torch.randint(0, 3, (4,))), torch.utils.data.DataLoader([])
        loss, here = nn.CrossEntropyLoss(), f"{__file__}:"
        scripted = nn.Sequential(Mlp())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It is going away, and nested tensors may change.
            nested = torch.nested.nested_tensor([*batch[0]])
            scripted.append(torch.jit.script(nn.Linear(3, 3)))
        whole = lambda out, target: out.mean()  # noqa: E731
        for text, arguments in {
            "forward() gives None: let it return a tensor": (Given(lambda out: None), loss),
            "forward() gives a str, and no tensor": (Given(str), loss),
            "forward() gives a generator, and no tensor": (Given(lambda out: (each for each in out)), loss),
            "forward() gives a coroutine, and no tensor": (Given(later), loss),
            "forward() gives a dict, and CrossEntropyLoss takes a tensor": (Given(lambda out: {"logits": out}), loss),
            "the loss gives a float, and no tensor": (Mlp(), lambda out, target: 1.0),
            "Two.forward(x, mask): missing a required argument: 'mask', where the batch has 2 parts, of which the last is the loss's": (Two(), loss),
            "the loss, (out, target, weight): missing a required argument: 'weight'": (Mlp(), lambda out, target, weight: out),
        }.items():
            with self.subTest(text), warnings.catch_warnings(), self.assertRaises(gpuc.Error) as raised:
                warnings.simplefilter("ignore")  # What nobody awaits.
                gpuc.compile(*arguments, "sgd:lr=1", batch)
            self.assertIn(here, str(raised.exception))
            self.assertIn(text, str(raised.exception))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            for text, (net, its_loss, given) in {
                "the example is a DataLoader: give one batch, next(iter(loader))": (Mlp(), loss, loader),
                "the example is None": (Mlp(), loss, None),
                "the loss is 'mse': give a function": (Mlp(), "mse", batch),
                "the loss is the class CrossEntropyLoss: make one, CrossEntropyLoss()": (Mlp(), nn.CrossEntropyLoss, batch),
                "'1' is a module of TorchScript": (scripted, loss, batch),
                "'0.fc1.weight' lies in memory that processes share": (nn.Sequential(Mlp()).share_memory(), loss, batch),
                "a part of the batch, target or input, is sparse, and gpuc's tensors are dense: make it .to_dense()": (Mlp(), loss, (batch[0].to_sparse(), batch[1])),
                "a part of the batch, target or input, is nested": (Mlp(), loss, (nested, batch[1])),
                "a part of the batch, target or input, lies on meta": (Mlp(), loss, (batch[0].to("meta"), batch[1])),
                "is a Twice, which computes by functions of its own, and a compiled step by torch's": (Mlp(), loss, (batch[0].as_subclass(Twice), batch[1])),
                "cannot capture the loss, CrossEntropyLoss,: gather(): Expected dtype int32/int64 for index, but got torch.float32: labels": (
                    Mlp(), loss, (batch[0], batch[1].float())),
                "could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: torch.int64: cast": (
                    Mlp(), nn.BCEWithLogitsLoss(), (batch[0], torch.ones(4, 3).long())),
                "in eval mode: 'Mlp' object has no attribute 'aside'": (
                    Mlp(), lambda out, target: whole(out, target) if net.training else net.aside, batch),
            }.items():  # fmt: skip
                with self.subTest(text), self.assertRaisesRegex(gpuc.Error, re.escape(text)):
                    gpuc.compile(net, its_loss, "sgd:lr=1", given)
        self.assertEqual(said.getvalue(), "")
        with self.assertRaisesRegex(gpuc.Error, rf"{here}\d+: forward\(\) gives a dict of logits, and no tensor as its 'loss'"):
            gpuc.compile(Given(lambda out: {"logits": out}), None, "sgd:lr=1", batch[0])
        total = gpuc.compile(Given(lambda out: {"total": out.mean()}), None, "sgd:lr=1", batch[0])
        self.assertIsInstance(total(batch[0]), float)
        step = gpuc.compile(Mlp(), loss, "sgd:lr=1", batch, precision=torch.bfloat16)
        for text, call in {
            "other parts than the one that was compiled, 1 where it had 2: one batch is given by its parts, step(x, y)": lambda: step(batch[0]),
            "a part of the batch is a list, where f32 [4, 6] was compiled: give a tensor or an array": lambda: step(batch[0].tolist(), batch[1]),
            "a part of the batch is sparse": lambda: step(batch[0].to_sparse(), batch[1]),
            "a part of the batch is sparse, and": lambda: step.predict(batch[0].to_sparse()),
            "a part of the batch is nested": lambda: step(nested, batch[1]),
            "a part of the batch is a Twice, which computes by functions of its own": lambda: step(batch[0].as_subclass(Twice), batch[1]),
            "loader is None: give batches, a DataLoader or a list, [(x, y)]": lambda: gpuc.fit(step, None),
            "val is of type int: give batches": lambda: gpuc.fit(step, [batch], val=3),
            "loader is of type Tensor": lambda: gpuc.fit(step, batch[0]),
            "scheduler is 'cosine': give a scheduler of torch's": lambda: gpuc.fit(step, [batch], scheduler="cosine"),
            "give them one by one, step(*batch)": lambda: step(batch),
            "i64 [4] where f32 [4, 6] was compiled; is it in its place?": lambda: step(*batch[::-1]),
            "a part of the batch is None, where i64 [4] was compiled: give a tensor": lambda: step(batch[0], None),
            "evaluate got a Tensor: give batches, a loader or a list": lambda: step.evaluate(batch[0]),
            "a step is neither copied nor pickled": lambda: copy.deepcopy(step),
        }.items():
            with self.subTest(text), self.assertRaisesRegex(gpuc.Error, re.escape(text)):
                call()

    def test_what_is_around_a_call_or_a_module(self):
        batch, loss = (torch.randn(4, 6), torch.randint(0, 3, (4,))), nn.CrossEntropyLoss()
        for text, around in (("under torch.inference_mode", torch.inference_mode()), ("under torch.autocast: give it precision='bf16'", torch.autocast("cpu"))):
            with around, self.assertRaisesRegex(gpuc.Error, text):
                gpuc.compile(Mlp(), loss, "sgd:lr=1", batch)
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        try:
            self.assertIn("'0' is a DistributedDataParallel: give the module in it, .module, and data_parallel=True",
                          self.error(net=nn.Sequential(nn.parallel.DistributedDataParallel(Mlp())), optimizer="sgd:lr=1"))
        finally:
            torch.distributed.destroy_process_group()

    def test_lines_of_a_loss_that_is_a_function(self):
        def loss(out, target, scale):
            return torch.special.i0(out).mean() * scale

        class Called:
            def __call__(self, out, target):
                return loss(out, target, 1.0)

        where = loss.__code__.co_firstlineno + 1
        for given in (functools.partial(loss, scale=2.0), lambda out, target: loss(out, target, 1.0), Called()):
            with self.assertRaisesRegex(gpuc.Error, rf"{__file__}:{where}: i0.default is not supported"):
                gpuc.compile(Mlp(), given, "sgd:lr=1", (torch.randn(4, 6), torch.randint(0, 3, (4,))))

    def test_what_eager_mode_makes_by_itself(self):
        class Masked(Mlp):
            def forward(self, x, mask=None):
                if mask is None and not torch.compiler.is_compiling():
                    mask = torch.ones(6)
                return super().forward(x * mask[:6])

        self.assertIn("'NoneType' object is not subscriptable: there may be a tensor in eager mode", self.error(net=Masked(), optimizer="sgd:lr=1"))
        adjacency = torch.eye(4).to_sparse()
        net = Mlp()
        net.fc1.register_forward_pre_hook(lambda _, args: (torch.sparse.mm(adjacency, args[0]),))
        self.assertIn("SparseTensorImpl: tensors are dense: make it .to_dense()", self.error(net=net, optimizer="sgd:lr=1"))

    def test_lines_of_python_are_nobodys(self):
        trace = f'  File "/user/model.py", line 7, in forward\n  File "{contextlib.__file__}", line 105, in inner\n'
        self.assertEqual(user_line(trace), ("/user/model.py", 7))

    def test_buffers_of_a_first_pass(self):
        """Of another shape, as convit of timm has: the cure is one."""

        class Grows(Mlp):
            def __init__(self):
                super().__init__()
                self.register_buffer("places", torch.zeros(1))

            def forward(self, x):
                if self.places.shape != x.shape[1:]:
                    self.places = torch.arange(x.shape[1]).float()
                return super().forward(x + self.places)

        net = Grows()
        self.assertIn("gives the buffer 'places' another shape or type, or removes it, and variables keep theirs: if its first pass alone does, call the",
                      self.error(net=net))  # fmt: skip
        net(torch.zeros(4, 6))
        gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=1", (torch.randn(4, 6), torch.randint(0, 3, (4,))))

    def test_what_torch_said_is_left_out(self):
        """Of a traceback, unless Python is told to say all."""

        class Asks(nn.Linear):
            def forward(self, x):
                return super().forward(x) if x.sum() > 0 else x

        with self.assertRaises(gpuc.Error) as raised:
            gpuc.compile(Asks(3, 3), nn.MSELoss(), "sgd:lr=1", (torch.ones(2, 3), torch.ones(2, 3)))
        self.assertIsNotNone(raised.exception.__context__)
        self.assertEqual("During handling of" in "".join(traceback.format_exception(raised.exception)), sys.flags.dev_mode)

    def test_what_hangs_on_values(self):
        """Shapes and numbers that are known when the step runs, and not before."""
        shape, known = "has a shape that hangs on a tensor's value", "hangs on a tensor's value, which a compiled step does not know: "
        for body, text in {
            "self.fc(x)[torch.nonzero(x[:, 0])[1:, 0]].sum() + self.fc(x)": "takes some of the rows that a mask chooses",
            "torch.masked_select(self.fc(x), self.fc(x) > 0).sort()[0].sum() + self.fc(x)": "sort of rows that a mask chooses",
            "self.fc(x) * torch.unique(x).sum()": f"{shape}, and a compiled step has fixed shapes: number the groups",
            "self.fc(x) * torch.bincount(x[:, 0].long().abs())[0]": f"{shape}, and a compiled step has fixed shapes: of k classes",
            "self.fc(x * int(x.sum()))": f"int(x.sum()): this number {known}keep it a tensor where it is calculated with",
            "[self.fc(x) for _ in range(10) if x.norm() < 3][0]": f"x.norm() < 3: which way is taken {known}compute both and choose, torch.where",
            "[self.fc(x) for _ in range(x[0, 0].long())][0]": f"range(x[0, 0].long()): how often this loops {known}loop as often as is always enough",
            "self.fc(x) * F.one_hot(x[:, :1].long())": f"F.one_hot(x[:, :1].long()): how many classes there are {known}say how many",
            "self.fc(x) if torch.allclose(x, -x) else x": f"torch.allclose(x, -x): its answer {known}keep it a tensor, torch.isclose",
            "self.fc(x * x[0].tolist()[0])": "is a number that hangs on a tensor's value",
        }.items():
            with self.subTest(body):
                self.at(body, text)

    def test_what_no_module_may_do(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            for body, text in {
                "self.fc(x.add_(1))": "an input is changed in place, which would be the loader's batch: clone it first",
                "self.fc(x[:, :5])": "must have same reduction dim, but got [4, 5] X [6, 3]",
                "self.fc(x.view(3, 9))": "shape '[3, 9]' is invalid for input of size 24",
                "self.fc(x.double())": "differ in element type",
                "self.fc(x.to('meta'))": "Expected all tensors to be on the same device",
                "self.fc(torch.from_numpy(x.detach().numpy()))": "NumPy gets no values within a step",
                "self.fc({'a': x}['b'])": "KeyError: 'b'",
                "self.fc(x) * len(f'{x.sum():.1f}')": "a text asks for a tensor's value: write it behind the step",
                "self.fc2(x)": "'Broken' object has no attribute 'fc2'",
                "setattr(self.fc.weight, 'data', x) or self.fc(x)": "gives a tensor's .data another shape or type",
                "(self.fc(x).sum().backward(), self.fc(x))[1]": "backward() is not supported within a module",
            }.items():
                with self.subTest(body):
                    self.at(body, text)
        self.assertEqual(said.getvalue(), "")  # Torch's own account of it is in the error.

    def test_a_problem_is_said_once(self):
        class Twice(Mlp):
            def forward(self, x):
                return super().forward((x * 1j).tan().imag)

        self.assertEqual(self.error(net=Twice()).count("tan of complex"), 1)

    def test_ops_that_check_values(self):
        self.at("self.fc(x * torch.linalg.eigvalsh(x[:, :4])[:, None])", "_linalg_eigh.default is not supported")

    def test_all_of_them_at_once(self):
        self.at("self.fc(torch.special.i1(torch.special.i0(x)))", "i0.default is", "special_i1.default is")

    def test_arguments_that_are_not_known(self):
        self.at("self.fc(x) / x.norm(-3)", "the norm of order -3")

    def test_branches_on_values(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.at("self.fc(x) if x.sum() > 0 else self.fc(-x)", "x.sum() > 0: which way is taken hangs on a tensor's value")
        self.assertEqual(said.getvalue(), "")  # The error says it all: no graph.
        self.at("self.fc(x) * x.sum().item()", ".item()")

    def test_buffers_that_the_forward_pass_makes(self):
        class Makes(Mlp):
            def forward(self, x):
                if not hasattr(self, "made"):
                    self.register_buffer("made", torch.ones(6), persistent=False)
                return super().forward(x * self.made)

        self.assertIn("'made' is made by the first forward pass: call the module once", self.error(net=Makes()))
        net = Makes()
        net(torch.randn(4, 6))
        gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=1", (torch.randn(4, 6), torch.randint(0, 3, (4,))))

    def test_norms_over_all_batches_so_far(self):
        net = Mlp()
        net.norm = nn.BatchNorm1d(6, momentum=None)
        self.assertIn("norm: has momentum=None, a mean over all batches so far, which is not supported", self.error(net=net))
        net.norm.eval()
        gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=1", (torch.randn(4, 6), torch.randint(0, 3, (4,))))

    def test_hooks(self):
        net = Mlp()
        net.fc2.register_full_backward_hook(lambda *_: None)
        self.assertIn("fc2: has a backward hook", self.error(net=net))
        net = Mlp()
        net.fc1.weight.register_hook(lambda gradient: gradient)
        self.assertIn("fc1.weight: has a gradient hook", self.error(net=net))

    def test_optimizers(self):
        weights = [nn.Parameter(torch.zeros(3))]
        self.assertIn("LBFGS calls the loss as often as its search takes", self.error(optimizer=torch.optim.LBFGS(weights)))
        self.assertIn("1 parameters that are not the module's", self.error(optimizer=torch.optim.SGD(weights)))

        def newer(net):
            optimizer = torch.optim.SGD(net.parameters())
            optimizer.defaults["lookahead"] = optimizer.param_groups[0]["lookahead"] = True
            return optimizer

        self.assertIn("SGD(lookahead=True) is not supported", self.error(make=newer))
        self.assertIn("unknown optimizer 'adamm'", self.error(optimizer="adamm"))

    def test_options(self):
        with self.assertRaisesRegex(gpuc.Error, "'accumulates' is no option of gpuc.compile: there are clip_norm, "):
            gpuc.compile(Mlp(), None, "sgd:lr=1", torch.zeros(4, 6), accumulates=2)

        for option, wrong in (("memory_budget", "4GiB"), ("memory_budget", 0), ("threads", -1), ("seed", 0.5), ("accumulate", 0)):
            with self.assertRaisesRegex(gpuc.Error, f"{option} is {wrong!r}: give a whole number"):
                gpuc.compile(Mlp(), None, "sgd:lr=1", torch.zeros(4, 6), **{option: wrong})
        batch = torch.randn(4, 6), torch.randint(0, 3, (4,))
        for option, wrong, text in (("ema", 2, "ema is 2: give the decay of a running mean, at least 0 and below 1"), ("precision", 16, "precision is 16: give a type's name")):
            with self.assertRaisesRegex(gpuc.Error, text):
                gpuc.compile(Mlp(), nn.CrossEntropyLoss(), "sgd:lr=1", batch, **{option: wrong})
        means = [gpuc.compile(Mlp(), nn.CrossEntropyLoss(), "sgd:lr=1", batch, ema=ema) for ema in (0.5, "ema:decay=0.5")]
        self.assertEqual(*[[each for each in step.variables if each[0].endswith("/ema")] for step in means])
        with self.assertRaisesRegex(gpuc.Error, "clip_norm: must be above 0, but is -1"):
            gpuc.compile(Mlp(), lambda out, _: out.sum(), "sgd:lr=1", (torch.zeros(4, 6), torch.zeros(4)), clip_norm=-1)

    def test_a_precision_of_what_is_not_there(self):
        batch = torch.randn(4, 6), torch.randint(0, 3, (4,))
        gpuc.compile(Mlp(), nn.CrossEntropyLoss(), "sgd:lr=1", batch, precision="bf16")
        with self.assertRaisesRegex(gpuc.Error, "precision is bf16, .* the module has f64 alone: make it f32, net.float"):
            gpuc.compile(Mlp().double(), nn.CrossEntropyLoss(), "sgd:lr=1", (batch[0].double(), batch[1]), precision="bf16")

    def test_predict_is_left_out(self):
        net = Mlp()
        batch = torch.randn(4, 6), torch.randint(0, 3, (4,))
        step = gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=0.1", batch, predict=False)
        step(*batch)
        with self.assertRaisesRegex(gpuc.Error, "the plan was compiled with predict=False: leave that out"):
            step.predict(batch[0])

    def test_numbers_that_are_none(self):
        net = Mlp()
        batch = torch.randn(4, 6), torch.randint(0, 3, (4,))
        step = gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=0.1", batch, check_numerics=True)
        step(*batch)
        batch[0][0, 0] = float("inf")
        with self.assertRaisesRegex(gpuc.Error, "step 2: input .x. holds 1 value that is NaN or infinite"):
            step(*batch)

    def test_modules(self):
        self.assertIn("net is in eval mode", self.error(net=Mlp().eval()))
        self.assertIn("no torch.nn.Module", self.error(net=len, optimizer="sgd:lr=1"))
        net = Mlp()
        batch = torch.randn(4, 6), torch.zeros(4)
        with self.assertRaisesRegex(gpuc.Error, "the loss is no single floating-point number: reduce it"):
            gpuc.compile(net, lambda out, _: out, "sgd:lr=1", batch)
        with self.assertRaisesRegex(gpuc.Error, "target.* is no tensor: 3"):
            gpuc.compile(net, lambda out, _: out.sum(), "sgd:lr=1", (batch[0], 3))

    def test_tensors_of_other_kinds(self):
        with self.assertRaisesRegex(gpuc.Error, r"input 'x' is torch.int16, an element type that gpuc does not have: cast it, .to\(torch.int32\)"):
            gpuc.compile(Mlp(), lambda out, _: out.sum(), "sgd:lr=1", (torch.zeros(4, 6, dtype=torch.int16), torch.zeros(4)))
        net = Mlp()
        net.fc1.weight = nn.Parameter(net.fc1.weight.detach().to_sparse())
        self.assertIn("'fc1.weight' is sparse, and gpuc's tensors are dense: make it .to_dense()", self.error(net=net, optimizer="sgd:lr=1"))

    def test_an_input_that_nothing_reads(self):
        net = Mlp()
        step = gpuc.compile(net, lambda out, _: out.sum(), "sgd:lr=0", (torch.ones(4, 6), torch.zeros(4)))
        self.assertAlmostEqual(step(torch.ones(4, 6), torch.zeros(4)), net(torch.ones(4, 6)).sum().item(), delta=1e-5)

    def test_batches(self):
        net, batch = Mlp(), (torch.randn(4, 6), torch.randint(0, 3, (4,)))
        step = gpuc.compile(net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1), batch)
        x, y = batch

        def error(*given):
            with self.assertRaises(gpuc.Error) as raised:
                step(*given)
            return str(raised.exception)

        self.assertIn("f32 [3, 6] where f32 [4, 6] was compiled: shapes are fixed when a step is compiled; pad", error(x[:3], y))
        self.assertIn("f64 [4, 6] where f32 [4, 6] was compiled; cast it", error(x.double(), y))
        self.assertIn("pad to them", error(torch.randn(4, 7), y))
        self.assertIn("no contiguous tensor", error(torch.randn(6, 4).T, y))
        self.assertIn("other parts", error(x))
        with self.assertRaisesRegex(IndexError, r"'target': element 1 is 3, outside its range \[0, 3\)"):
            step(x, torch.tensor([0, 3, 0, 0]))
        net.fc1.weight.data = torch.zeros(8, 6)
        with self.assertRaisesRegex(gpuc.Error, "'fc1.weight' has other memory"):
            for _ in range(8 * len(step._watched) + 8):
                step(*batch)

    def test_a_tensor_elsewhere_is_found_at_every_access_to_state(self):
        net, batch = Mlp(), (torch.randn(4, 6), torch.randint(0, 3, (4,)))
        step = gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=0.1", batch)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "net.plan"
            step.save(path)
            net.fc2.bias.data = torch.zeros(3)
            for access in (lambda: step.save(path), lambda: step.restore(path.with_suffix(".safetensors")), lambda: step.variable("step"),
                           lambda: step.evaluate([batch]), lambda: step.eval_step(*batch), lambda: step.predict(batch[0]),
                           lambda: step.run("eval_step", *batch), lambda: gpuc.fit(step, [batch], progress=False)):  # fmt: skip
                with self.assertRaisesRegex(gpuc.Error, "'fc2.bias' has other memory"):
                    access()

    def test_another_step_takes_tensors(self):
        """The next call of the one that had them takes them back; memory that is no step's is told."""
        net, batch = Mlp(), (torch.randn(4, 6), torch.randint(0, 3, (4,)))
        first = gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=0.1", batch)
        second = gpuc.compile(nn.Sequential(net.fc2), nn.CrossEntropyLoss(), "sgd:lr=0.1", (torch.randn(4, 8), batch[1]))
        second(torch.randn(4, 8), batch[1])
        net.fc2.weight.data = net.fc2.weight.data.clone()
        for _ in range(2):
            with self.assertRaisesRegex(gpuc.Error, "'fc2.weight' has other memory"):
                first(*batch)

    def test_inputs_that_want_gradients(self):
        """They get none, which is said when the step is compiled, and of its first batch, once."""
        (x, y), net = (torch.randn(4, 6), torch.randint(0, 3, (4,))), Mlp()
        text = "1 input with requires_grad=True, and a step gives gradients to parameters alone"
        with self.assertWarnsRegex(UserWarning, f"the example has {text}") as said:
            gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=0.1", (x.clone().requires_grad_(), y))
        self.assertEqual(said.filename, __file__)
        step = gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=0.1", (x, y))
        with self.assertWarnsRegex(UserWarning, f"the first batch has {text}") as said:
            step(x.clone().requires_grad_(), y)
        self.assertEqual(said.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            step(x.clone().requires_grad_(), y)

    def test_negation_that_torch_has_put_off(self):
        """A bit of a tensor, which DLPack does not tell: wherever a step reads one, it is negated."""
        x, y = torch.randn(4, 6).double(), torch.randint(0, 3, (4,))
        negated = torch._neg_view(x)

        def results(x, make=lambda values: nn.Parameter(values)):
            torch.manual_seed(0)
            net = Mlp().double()
            net.fc1.weight = make(net.fc1.weight.detach())
            step = gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=0.1", (x, y))
            losses = [step(x, y) for _ in range(3)]
            with tempfile.TemporaryDirectory() as folder:
                step.save(f"{folder}/net.plan")
                losses.append(gpuc.load(f"{folder}/net.plan")(x, y))
            return [*losses, step(x[:3], y[:3]), step.eval_step(x, y), step.predict(x).tolist(), step.predict(x[:3]).tolist(),
                    checksum_of((x, y), {})]  # fmt: skip

        self.assertTrue(negated.is_neg() and negated.is_contiguous())
        expected = results(-x)
        self.assertEqual(results(negated), expected)
        self.assertEqual(results(-x, lambda values: nn.Parameter(torch._neg_view(-values))), expected)

    def test_negated_batches_among_others(self):
        """Those are asked for at the second step and at each eighth, and at all once one was found; one number always."""
        x, y = torch.randn(4, 6).double(), torch.randint(0, 3, (4,))

        def losses(negated, first):
            torch.manual_seed(0)
            step = gpuc.compile(net := Mlp().double(), nn.CrossEntropyLoss(), "sgd:lr=0.1", (x, y))
            turns = [step(negated if turn % 4 == first % 4 and turn >= first else x, y) for turn in range(20)]
            return turns, [each.tolist() for each in net.parameters()]

        for first in (0, 1, 8):
            self.assertEqual(losses(torch._neg_view(x), first), losses(-x, first))

        def of_one(x):
            torch.manual_seed(0)
            step = gpuc.compile(nn.Linear(1, 1), F.mse_loss, "sgd:lr=0.1", (torch.ones(1, 1), torch.ones(1, 1)))
            return [step(x if turn == 6 else torch.ones(1, 1), torch.ones(1, 1)) for turn in range(8)]

        imaginary = torch.full((1, 1), 2j).conj().imag
        self.assertTrue(imaginary.is_neg() and imaginary.is_contiguous())
        self.assertEqual(of_one(imaginary), of_one(torch.full((1, 1), -2.0)))

    def test_tensors_and_layers_are_looked_at_in_turns(self):
        """None waits longer than 4000 steps: of many some are looked at each eighth one."""
        net, batch = nn.Sequential(*[nn.Linear(1, 1) for _ in range(170)]), (torch.ones(1, 1), torch.ones(1, 1))
        step = gpuc.compile(net, F.mse_loss, "sgd:lr=0", batch, predict=False)
        self.assertEqual((len(step._watched), step._each_time), (4 * 170 + 1, 2))
        for call in (step, lambda *given: step._update(given, {})):
            net[100].weight.data = net[100].weight.data.clone()
            with self.assertRaisesRegex(gpuc.Error, "'100.weight' has other memory"):
                for _ in range(2800):
                    call(*batch)


if __name__ == "__main__":
    unittest.main()
