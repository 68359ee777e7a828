"""Modules that are broken, one way each: what live_broken.py compiles, and steps. `# here` marks the line that has to be named."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import gpuc

BROKEN = {}  # By a name: a module's class, or a function that makes and uses one; and what the error says, culprit and cure.


def broken(*texts):
    def add(made):
        BROKEN[made.__name__] = made, texts
        return made

    return add


def batch():
    return torch.ones(4, 6), torch.zeros(4, dtype=torch.int64)


def compiled(net, optimizer="sgd:lr=0.1", loss=None, **options):
    return gpuc.compile(net, loss or nn.CrossEntropyLoss(), optimizer, batch(), **options)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(self.change(x))))

    def change(self, x):
        return x


#
# Values that Python asks for
#


@broken("x.sum() > 0: which way is taken hangs on a tensor's value", "compute both and choose, torch.where(…, a, b)")
class Branch(Mlp):
    def change(self, x):
        if x.sum() > 0:  # here
            x = -x
        return x


@broken("x.norm() > 1: which way is taken hangs", "loop as often as is always enough, and let torch.where keep what is done")
class Loop(Mlp):
    def change(self, x):
        while x.norm() > 1:  # here
            x = x / 2
        return x


@broken("is a number that hangs on a tensor's value (.item()", "keep it a tensor where it is calculated with")
class Item(Mlp):
    def change(self, x):
        scale = x.abs().max().item()  # here
        return x / scale


@broken("int(x[0, 0]): this number hangs on a tensor's value", "take a number that is always enough, and leave out by a mask what is beyond")
class Count(Mlp):
    def change(self, x):
        length = int(x[0, 0])  # here
        return x.repeat(length, 1)


@broken("range(x[0, 0].long()): how often this loops hangs on a tensor's value", "let torch.where keep what is done")
class Repeats(Mlp):
    def change(self, x):
        for _ in range(x[0, 0].long()):  # here
            x = x / 2
        return x


@broken("a text asks for a tensor's value: write it behind the step")
class Prints(Mlp):
    def change(self, x):
        print(f"norm {x.norm():.3f}")  # here
        return x


@broken("NumPy gets no values within a step: write it by torch's ops")
class Numpy(Mlp):
    def change(self, x):
        return torch.from_numpy(x.detach().numpy())  # here


#
# Shapes that hang on values
#


@broken("sort of rows that a mask chooses, whose number hangs on values", "use torch.where, or multiply by the mask")
class Positive(Mlp):
    def change(self, x):
        return x + x[x > 0].sort().values.mean()  # here


@broken("takes some of the rows that a mask chooses", "use torch.where, or multiply by the mask")
class Nonzero(Mlp):
    def change(self, x):
        rows = torch.nonzero(x[:, 0] > 0)[:2]  # here
        return x + rows.sum()


@broken("has a shape that hangs on a tensor's value", "number the groups, of which there are k, and sum rows by them")
class Groups(Mlp):
    def change(self, x):
        _, groups = torch.unique(x[:, 0], return_inverse=True)  # here
        return x + groups[:, None]


@broken("asks for the number of rows that a mask chooses", "count them by mask.sum()")
class Mean(Mlp):
    def change(self, x):
        rows = x[x[:, 0] > 0]
        return x + rows.sum(0) / len(rows)  # here


@broken("looks into a packed sequence, whose data have as many rows as sequences have steps")
class Packed(Mlp):
    def change(self, x):
        return nn.utils.rnn.pack_padded_sequence(x[:, None], torch.tensor([4])).data  # here


#
# Ops and types that are not there
#


@broken("ctc_loss has the targets of all rows behind one another, and where each begins hangs on lengths: give it padded ones")
class Ctc(Mlp):
    def change(self, x):
        return x + F.ctc_loss(x[None].log_softmax(2), torch.ones(4).long(), torch.ones(4).long(), torch.ones(4).long())  # here


@broken("i0.default is not supported: write it by ops that are there")
class Bessel(Mlp):
    def change(self, x):
        return torch.special.i0(x)  # here


@broken("a Fourier transform of 5000 numbers, and those of a compiled step are products with matrices, of up to 4096")
class Fourier(Mlp):
    def change(self, x):
        return torch.fft.fft(x, 5000).real[:, :6]  # here


@broken("tan of complex numbers is not supported: write it by their real and imaginary parts")
class Complex(Mlp):
    def change(self, x):
        return (x * 1j).tan().imag  # here


@broken("torch.int16 is an element type that gpuc does not have: cast it, .to(torch.int32)")
class Short(Mlp):
    def change(self, x):
        return x * torch.ones(6, dtype=torch.int16)  # here


@broken("fractional_max_pool2d.default is not supported: write it by ops that are there")
class Fractions(Mlp):
    def change(self, x):
        return x + F.fractional_max_pool2d(x[None], 2, output_size=2).sum()  # here


@broken("_linalg_svd.default is not supported: its steps hang on values: compute it outside")
class Svd(Mlp):
    def change(self, x):
        return x * torch.linalg.svd(x)[1].sum()  # here


@broken("_to_sparse.default is not supported: tensors are dense: leave it out, or .to_dense()")
class Sparse(Mlp):
    def change(self, x):
        return x.to_sparse().to_dense()  # here


@broken("poisson.default is not supported: draw it outside of the module")
class Poisson(Mlp):
    def change(self, x):
        return torch.poisson(x.abs())  # here


#
# What a module may not do
#


@broken("an input is changed in place, which would be the loader's batch: clone it first")
class InPlace(Mlp):
    def change(self, x):
        return x.mul_(2)  # here


@broken("gives a tensor's .data another shape or type", "make it a new tensor")
class Data(Mlp):
    def change(self, x):
        made = torch.zeros(2)
        made.data = x.detach()  # here
        return x + made


@broken("is changed in the forward pass, and it is the optimizer that changes parameters: do that behind the step, under torch.no_grad()")
class Clamps(Mlp):
    def change(self, x):
        with torch.no_grad():
            self.fc1.weight.clamp_(-1, 1)  # here
        return x


@broken("backward() is not supported within a module", "torch.autograd.grad")
class Backward(Mlp):
    def change(self, x):
        self.fc1(x).sum().backward()  # here
        return x


@broken("a and b must have same reduction dim, but got [4, 5] X [6, 6]")
class Shapes(Mlp):
    def change(self, x):
        return self.fc1(x[:, :5])  # here


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-1, 1)


@broken("Clipped.backward() is not linear in the gradient that it is given", "write it with detach()")
class OwnGradient(Mlp):
    def change(self, x):
        return Clipped.apply(self.fc1(x))  # here


@broken("is computed otherwise in the second pass than in the first (self.seen)", "make what it counts a buffer or an input")
class Counter(Mlp):
    seen = 0

    def change(self, x):
        self.seen += 1
        return x * self.seen  # here


@broken("forward() gives None: let it return a tensor")
class Forgets(Mlp):
    def forward(self, x):  # here
        self.fc2(self.fc1(x))


@broken("'Forgotten' object has no attribute 'fc3'")
class Forgotten(Mlp):
    def change(self, x):
        return self.fc3(x)  # here


#
# Losses
#


@broken("the loss is no single floating-point number: reduce it")
def a_loss_for_each_row():
    compiled(Mlp(), loss=lambda out, target: F.cross_entropy(out, target, reduction="none"))  # here


@broken("forward() gives a dict, and CrossEntropyLoss takes a tensor: let the loss be a function that takes one out")
class GivesDict(Mlp):
    def forward(self, x):  # here
        return {"scores": super().forward(x)}


@broken("cannot capture the loss, CrossEntropyLoss,", "labels are whole numbers, .long(), or one probability for each class")
def labels_that_are_fractions():
    gpuc.compile(Mlp(), nn.CrossEntropyLoss(), "sgd:lr=0.1", (batch()[0], torch.zeros(4)))  # here


#
# Hooks
#


@broken("fc2: has a backward hook, which a compiled step does not call: remove it")
def a_backward_hook():
    net = Mlp()
    net.fc2.register_full_backward_hook(lambda layer, into, out: (2 * into[0],))  # here
    compiled(net)


@broken("fc1.weight: has a gradient hook, which a compiled step does not call: remove it")
def a_hook_on_a_parameter():
    net = Mlp()
    net.fc1.weight.register_hook(lambda gradient: gradient.clamp(-1, 1))  # here
    compiled(net)


@broken("a hook on a tensor, which a compiled step does not call: ")
class HookWithin(Mlp):
    def change(self, x):
        x = self.fc1(x)
        x.register_hook(lambda gradient: 2 * gradient)  # here
        return x


@broken("a hook on a tensor, which a compiled step does not call: ")
class HookOnANode(Mlp):
    def change(self, x):
        x = self.fc1(x)
        x.grad_fn.register_hook(lambda into, _: tuple(None if each is None else 2 * each for each in into))  # here
        return x


@broken("saved_tensors_hooks, which a compiled step does not call: leave them out")
class HooksOfWhatIsSaved(Mlp):
    def change(self, x):
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x.bfloat16(), lambda x: x.float()):  # here
            return self.fc1(x)


#
# Gradients that parameters have, or not
#


@broken("freezes or unfreezes a parameter", "do that before, or read weight.detach(), or the layer under torch.no_grad()")
class FrozenWithin(Mlp):
    def change(self, x):
        self.fc1.requires_grad_(False)  # here
        return x


@broken("freezes or unfreezes a parameter", "do that before")
class FrozenForAWhile(Mlp):
    def change(self, x):
        for parameter in self.fc1.parameters():
            parameter.requires_grad = False  # here
        x = self.fc1(x)
        for parameter in self.fc1.parameters():
            parameter.requires_grad = True
        return x


@broken("reads the .grad of a parameter", "torch.autograd.grad(loss, weights) gives a gradient within a step")
class ByTheLastGradient(Mlp):
    def change(self, x):
        last = self.fc1.weight.grad  # here
        return x if last is None else x * last.norm()


@broken("'fc1.weight' and 'fc2.weight' share memory", "layer.weight = other.weight", "or give one memory of its own, .clone()")
def tied_by_data():
    net = Mlp()
    net.fc2.weight.data = net.fc1.weight.data[:3]
    compiled(net)  # here


@broken("'fc1.weight' and 'copy' share memory")
def a_buffer_of_a_parameter():
    net = Mlp()
    net.register_buffer("copy", net.fc1.weight.detach().t())
    compiled(net)  # here


#
# Optimizers
#


@broken("the optimizer LBFGS calls the loss as often as its search takes, and a compiled step computes it once: step an LBFGS in eager mode")
def lbfgs():
    net = Mlp()
    compiled(net, torch.optim.LBFGS(net.parameters()))  # here


@broken("the optimizer has 4 parameters that are not the module's, the first of shape [6, 6]: make it of net.parameters()")
def an_optimizer_of_another_module():
    compiled(Mlp(), torch.optim.SGD(Mlp().parameters()))  # here


@broken("is a class of its own, which may step otherwise than torch.optim.SGD, of which it is made: give that one")
def an_optimizer_of_ones_own():
    class Mine(torch.optim.SGD):
        pass

    net = Mlp()
    compiled(net, Mine(net.parameters()))  # here


@broken("the optimizer has a step hook", "remove it, and do that behind the step")
def a_hook_of_the_optimizer():
    net = Mlp()
    optimizer = torch.optim.SGD(net.parameters())
    optimizer.register_step_post_hook(lambda *_: None)  # here
    compiled(net, optimizer)


#
# Draws, views and layers that a pass makes
#


@broken("seeds what is drawn, or sets it back, and so draws the same in each pass", "draw it once, into a buffer")
class Seeded(Mlp):
    def forward(self, x):
        torch.manual_seed(3)  # here
        return super().forward(x) + torch.randn(3)


@broken("seeds what is drawn, or sets it back, and so draws the same in each pass")
class Forked(Mlp):
    def forward(self, x):
        with torch.random.fork_rng():  # here
            noise = torch.randn(3)
        return super().forward(x) + noise


@broken("a view was taken before t_(), transpose_() and the like: write x = x.t()")
class ViewedBeforeItIsTurned(Mlp):
    def forward(self, x):
        out = super().forward(x)
        seen = out.view(-1)
        out.t_()
        return out.t() * seen.sum()  # here


@broken("two buffers share memory, and one is changed: make one buffer of them")
def buffers_that_share_memory():
    class Shared(Mlp):
        def forward(self, x):
            self.whole.mul_(0.5)
            return super().forward(x) * self.row

    net, both = Shared(), torch.ones(2, 3)
    net.register_buffer("whole", both)
    net.register_buffer("row", both[1])
    compiled(net)  # here


@broken("where forward makes a layer, call the module once, then compile it")
def a_layer_that_forward_makes():
    class Late(Mlp):
        def forward(self, x):
            if self.late is None:
                self.late = nn.Linear(3, 3)
            return self.late(super().forward(x))

    net = Late()
    net.late = None
    compiled(net)  # here


#
# Modes, and layers that cannot be trained
#


@broken("nothing would be trained: no parameter that has requires_grad, and that the optimizer has", "call net.requires_grad_(True)")
def all_that_is_frozen():
    compiled(Mlp().requires_grad_(False))  # here


@broken("nothing would be trained: ", "a checkpoint with use_reentrant=True around all of it")
def a_checkpoint_that_has_no_gradients():
    class Kept(Mlp):
        def forward(self, x):
            return checkpoint(super().forward, x, use_reentrant=True)

    compiled(Kept())  # here


@broken("net is in eval mode, and would be trained so: call net.train()")
def eval_mode():
    compiled(Mlp().eval())  # here


@broken("norm: has momentum=None, a mean over all batches so far, which is not supported: give it a momentum (0.1)")
def momentum_of_none():
    net = Mlp()
    net.norm = nn.BatchNorm1d(6, momentum=None)
    compiled(net)  # here


@broken("'fc2.weight' has no shape before the first forward pass: call the module once")
def a_lazy_layer():
    net = Mlp()
    net.fc2 = nn.LazyLinear(3)
    compiled(net)  # here


#
# Batches, and what happens to a module after it was compiled
#


@broken("f32 [4, 7] where f32 [4, 6] was compiled: shapes are fixed when a step is compiled; pad to them, or compile another step")
def another_length():
    step = compiled(Mlp())
    step(torch.ones(4, 7), batch()[1])  # here


@broken("f64 [4, 6] where f32 [4, 6] was compiled; cast it, .to(torch.float32)")
def another_type():
    step = compiled(Mlp())
    step(batch()[0].double(), batch()[1])  # here


@broken("no contiguous tensor")
def columns_first():
    step = compiled(Mlp())
    step(torch.ones(6, 4).T, batch()[1])  # here


@broken("2 rows where 4 were compiled: a ragged last batch, which cannot be padded", "DataLoader(drop_last=True) leaves it out")
def a_ragged_batch_of_a_batch_norm():
    step = gpuc.compile(nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3)), nn.CrossEntropyLoss(), "sgd:lr=0.1", batch())
    step(*(each[:2] for each in batch()))  # here


@broken("'target': element 1 is 3, outside its range [0, 3)")
def a_label_out_of_range():
    step = compiled(Mlp())
    step(batch()[0], torch.tensor([0, 3, 0, 0]))  # here


@broken("outside its range [0, 5)")
def a_token_out_of_range():
    step = gpuc.compile(nn.Sequential(nn.Embedding(5, 3), nn.Flatten()), F.mse_loss, "sgd:lr=0.1", (torch.zeros(4, 2).long(), torch.zeros(4, 6)))
    step(torch.full((4, 2), 5), torch.zeros(4, 6))  # here


@broken("'fc1.weight' has other memory than when the step was compiled (p.data = …, net.to(…)): write into it, p.copy_(…), or compile again")
def a_parameter_that_was_rebound():
    net = Mlp()
    step = compiled(net)
    net.fc1.weight.data = torch.zeros(6, 6)
    step(*batch())  # here


@broken("requires_grad of 'fc1.weight' is False, and was True when the step was compiled: compile again, or set it back")
def a_parameter_that_was_frozen():
    net = Mlp()
    step = compiled(net)
    net.fc1.weight.requires_grad_(False)
    step(*batch())  # here


@broken("net is in eval mode, and the step was compiled in training mode: call net.train() before it")
def a_module_that_was_left_in_eval_mode():
    net = Mlp()
    step = compiled(net)
    net.eval()
    step(*batch())  # here


@broken("the optimizer's nesterov is True, and was False when the step was compiled, which goes on with that: compile again")
def an_optimizer_that_was_changed():
    net = Mlp()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    step = compiled(net, optimizer)
    optimizer.param_groups[0]["nesterov"] = True
    step(*batch())  # here
