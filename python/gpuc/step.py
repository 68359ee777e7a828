"""gpuc.compile: from a module, a loss and an optimizer to a step that trains them."""

import contextlib
import functools
import gc
import inspect
import json
import warnings
import weakref
import zlib
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.nn.modules.module import (
    register_module_buffer_registration_hook, register_module_module_registration_hook, register_module_parameter_registration_hook,
)  # fmt: skip
from torch.utils import _pytree as pytree

from gpuc import _compiler, _runtime, ranks
from gpuc.batches import bytes_of, checksum_of, cut, first_part, split_batch, twice
from gpuc.beside import STEPS, Beside
from gpuc.capture.forward_state import Attributes, same_random
from gpuc.capture.recorder import Recorder
from gpuc.capture.specs import TYPES
from gpuc.capture.whole import CAPTURES, Whole, check_call, check_layers, in_eval_mode
from gpuc.contents import PLACES, is_array, is_placed, why_not_plain
from gpuc.copies import Copies, Look
from gpuc.errors import Error, Problem, refuse
from gpuc.formulas.cures import cured
from gpuc.kept import Kept, Lent
from gpuc.optimizers import Optimizer, State
from gpuc.padding import Eager, Padding
from gpuc.pages import Report
from gpuc.plan import Plan, mean_of
from gpuc.prediction import Prediction


def compile_step(net, loss, optimizer, example, *, clip_norm=None, clip_value=None, precision=None, ema=None, accumulate=1,
                 data_parallel=False, shard=None, sync_batch_norm=False, check_numerics=False, memory_budget=None, checkpoint=None,
                 predict=True, target="auto", device="auto", threads=0, seed=None):  # fmt: skip
    """Compiles the training of `net` for batches like `example`.

    `loss` is called with what `net` gives of all but the last tensor of a batch, and that last one; None: the first
    output of `net`, or its `loss`, is the loss. `optimizer` is a torch.optim object, which is read and never stepped,
    or the text of a recipe's, "adamw:lr=3e-4". The other arguments are the recipe's, and gpuc-compile's.
    """
    if not isinstance(net, torch.nn.Module):
        raise Error(f"net is {type(net).__name__}, and no torch.nn.Module")
    for name, layer in net.named_modules():
        if isinstance(layer, torch.jit.ScriptModule):
            what = f"'{name}'" if name else "net"
            raise Error(f"{what} is a module of TorchScript, which torch.export does not read: give the nn.Module that it was made of")
    check_loss(loss)
    if not net.training:
        raise Error("net is in eval mode, and would be trained so: call net.train() (layers of it may stay in eval mode)")
    for name, value, least in (("threads", threads, 0), ("memory_budget", memory_budget, 1), ("seed", seed, 0),
                               ("accumulate", accumulate, 1)):  # fmt: skip
        if value is not None and (not isinstance(value, int) or value < least):
            raise Error(f"{name} is {value!r}: give a whole number of at least {least}")
    if shard not in (None, "optimizer", "gradients"):
        raise Error(f"shard is {shard!r}: give 'optimizer' or 'gradients', or leave it out")
    if shard and not data_parallel:
        raise Error(f"shard={shard!r} is what ranks do that train together: give data_parallel=True, or leave it out")
    if sync_batch_norm and not data_parallel:
        raise Error("sync_batch_norm=True is what ranks do that train together: give data_parallel=True, or leave it out")
    if data_parallel and not sync_batch_norm:
        for name, layer in net.named_modules():
            if isinstance(layer, torch.nn.SyncBatchNorm):
                raise Error(f"'{name}' is a SyncBatchNorm, and ranks would each have statistics of their own: give sync_batch_norm=True")
    ranks.check_launched(data_parallel)
    for owner in owners_of(net, loss):
        check_layers(owner)
    check_modes(net)
    check_example(example)
    args, kwargs = split_batch(example)
    if loss is not None and len(args) < 2:
        raise Error("a loss takes a target, the last of a batch: give (inputs…, target), or loss=None")
    check_batch(args, kwargs)
    parts = f"the batch has {len(args)} part{'s' if len(args) != 1 else ''}" + (", of which the last is the loss's" if loss is not None else "")
    check_call(net, f"{type(net).__name__}.forward", len(args) - (loss is not None), kwargs, parts)
    if loss is not None:
        check_call(loss, "the loss, ", 2, {}, "it is called with the output and the target")
    args, kwargs = each_its_own((args, kwargs), [*net.parameters(), *net.buffers()])
    warn_of_gradients((args, kwargs), "the example has")
    reader = None if isinstance(optimizer, str) else Optimizer(optimizer)
    recorder = Recorder(net, loss, trained_of(net, loss, reader))
    if reader:
        check_parameters(recorder, reader)
    check_precision(precision, recorder.tensors.values())
    part = first_part(args, kwargs, accumulate)
    recorder.record_training(*part)
    recorder.record_evaluation(*part)
    if accumulate > 1 or data_parallel:
        recorder.look_at_rows(part, (args, kwargs) if accumulate > 1 else twice(args, kwargs))
    text = lower(recorder.graph(type(net).__name__))
    for line in dict.fromkeys(map(str, recorder.unchecked)):
        ranks.warn(line, stacklevel=4)
    entries = reader.recipe(recorder.names, recorder.variables_read()) if reader else [("optimizer", optimizer)]
    for key, value in (("clip_norm", clip_norm), ("clip_value", clip_value), ("precision", precision), ("ema", text_of_mean(ema))):
        if value is not None:
            entries.append((key, TYPES.get(value, str(value)) if isinstance(value, torch.dtype) else str(value)))
    if accumulate > 1:
        entries.append(("accumulate", str(accumulate)))
    if data_parallel:
        entries.append(("data_parallel", "true"))
    if sync_batch_norm:
        entries.append(("sync_batch_norm", "true"))
    if shard and ranks.world_size() > 1:
        entries += [("shard", shard), ("world_size", str(ranks.world_size()))]
    with ThreadPoolExecutor(1) as beside:  # The compiler leaves the global lock to the passes here.
        compiled = beside.submit(_compiler.compile, text, type(net).__name__, entries, target=target, seed=seed,
                                 memory_budget=memory_budget, checkpoint=checkpoint or "",
                                 check_numerics=check_numerics, predict=predict or loss is None)  # fmt: skip
        recorder.look_at_passes(*part)
    plan, report, warned = result_of(compiled)
    for problem in warned:
        warnings.warn(str(Problem(*problem)), stacklevel=3)
    step = Step(plan, json.loads(report), recorder, reader, (args, kwargs), part, device=device, threads=threads, seed=seed)
    step._made_of = functools.partial(made_of, recorder, reader, entries)
    if accumulate > 1:
        warn_of_parts(step, Whole(net, loss), args, kwargs, accumulate)
    return step


def result_of(compiled):
    try:
        return compiled.result()
    except Error as error:
        if "has nothing to train" not in str(error):
            raise
        raise Error("nothing would be trained: no parameter that has requires_grad, and that the optimizer has, has a gradient of the loss: call "
                    "net.requires_grad_(True), make the optimizer of what is to be trained, and leave out torch.no_grad(), detach() or a "
                    "checkpoint with use_reentrant=True around all of it") from None  # fmt: skip


def made_of(recorder, reader, entries):
    """What a run that goes on has to have as it was, by a name: the model, options, and the optimizer's numbers but those that may change."""
    found = {"model": recorder.digest_of_model()}
    if reader is None:
        return {**found, **dict(entries)}
    found.update((key, value) for key, value in entries if key not in ("optimizer", "groups", "schedule"))
    found["optimizer"] = type(reader.torch).__name__
    for number, (_, numbers) in enumerate(reader.compiled_numbers()):
        found.update((f"the optimizer's {key}" + (f" of group {number}" if number else ""), text_of_number(value)) for key, value in numbers)
    return found


def text_of_number(value):
    return value if isinstance(value, (bool, str, type(None))) else [*map(float, value)] if isinstance(value, (list, tuple)) else float(value)


def warn_of_parts(step, whole, args, kwargs, count):
    """What a part cannot know, of its loss or of its rows, is not that of the whole batch: whether it is, is tried, on the example."""
    leaves, structure = pytree.tree_flatten((args, kwargs))
    shapes, rows = [each.shape for each in leaves], len(leaves[0]) // count
    parts = [cut(leaves, shapes, number * rows, (number + 1) * rows) for number in range(count)]
    with in_eval_mode(whole), torch.no_grad(), Attributes(whole), same_random(), torch.random.fork_rng(devices=[]):
        try:
            batch, again, *own = (float(whole(*given, **named)) for given, named in map(structure.unflatten, (leaves, leaves, *parts)))
        except Exception:
            return  # Of what is compiled for parts alone.

    rounding = 1e-4 * max(1, abs(batch))
    if batch != again or abs(sum(own) / count - batch) <= rounding:  # What draws is never the same.
        return
    mean = step._mean_of_parts(parts, own)
    if mean is not None and abs(mean - batch) > rounding:
        ranks.warn(f"accumulate={count} trains the mean of its parts' losses, which is {mean:.6g} of the example, where that of the whole is "
                   f"{batch:.6g}: what the loss divides by, weighs or compares is that of a part, and so are rows that know one another, and an input "
                   "that is cut as rows are and is none; let the loss be one mean, F.cross_entropy(…, weight) say, and such an input a buffer, or "
                   "leave accumulate out", stacklevel=4)  # fmt: skip


def check_modes(net):
    """What is around the call, or around the module, and would be captured with it."""
    if torch.is_inference_mode_enabled():
        raise Error("gpuc.compile is called under torch.inference_mode(), whose tensors cannot be trained: call it outside of that")
    if torch.is_autocast_enabled("cpu"):
        raise Error("gpuc.compile is called under torch.autocast: give it precision='bf16', and call it and its step outside of autocast")
    for name, layer in net.named_modules():
        if isinstance(layer, torch.nn.parallel.DistributedDataParallel):
            what = f"'{name}'" if name else "net"
            raise Error(f"{what} is a DistributedDataParallel: give the module in it, .module, and data_parallel=True")


def check_loss(loss):
    if isinstance(loss, type):
        raise Error(f"the loss is the class {loss.__name__}: make one, {loss.__name__}()")
    if loss is not None and not callable(loss):
        raise Error(f"the loss is {loss!r}: give a function of output and target, or a module, nn.MSELoss(); None if the module computes it")


def check_example(example):
    if example is None or isinstance(example, torch.utils.data.DataLoader) or hasattr(example, "__next__"):
        raise Error(f"the example is {'None' if example is None else f'a {type(example).__name__}'}: give one batch, next(iter(loader))")


def check_batch(args, kwargs):
    """Of tensors that have something in them."""
    for part in pytree.tree_leaves((args, kwargs)):
        if isinstance(part, (bool, int, float, str, type(None))):
            raise Error(f"a part of the batch, target or input, is no tensor: {part!r}; give the module a default for it")
        if is_array(part):
            raise Error("a part of the batch, target or input, is no tensor, but an array of NumPy: torch.from_numpy(…) makes it one")
        if not isinstance(part, torch.Tensor):
            raise Error(f"a part of the batch, target or input, is no tensor, but a {type(part).__name__}: give its tensors as a dict or a tuple")
        if why := why_not_plain(part):
            raise Error(f"a part of the batch, target or input, {why}")
        if part.device.type != "cpu":
            raise Error(f"a part of the batch, target or input, lies on {part.device}: give it on the CPU, x.cpu()")
        if not part.numel():
            raise Error(f"a part of the batch, target or input, is empty, {list(part.shape)}: give an example as the loader makes them")


def each_its_own(batch, others):
    """A tensor that an example has twice, as an autoencoder's, is two inputs: torch.export would have both be the last."""
    seen = {id(each) for each in others}
    return pytree.tree_map(lambda each: each.clone() if id(each) in seen else seen.add(id(each)) or each, batch)


OPTIONS = tuple(inspect.signature(compile_step).parameters)[4:]  # What is known by its name.


@contextlib.contextmanager
def alone():
    """One compilation at a time, since what captures a module changes torch meanwhile. And without collecting circles of objects: Python would
    look for them among all that torch has, for a tenth of the time."""
    with CAPTURES:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                gc.enable()


def warn_of_gradients(batch, who):
    """Eager mode would give inputs theirs."""
    wanting = sum(isinstance(each, torch.Tensor) and each.requires_grad for each in pytree.tree_leaves(batch))
    if wanting:
        ranks.warn(f"{who} {wanting} input{'s' if wanting > 1 else ''} with requires_grad=True, and a step gives gradients to parameters "
                   "alone: .grad stays as it is; pass x.detach(), or make it a parameter of the module", stacklevel=4)  # fmt: skip


def text_of_mean(ema):
    """The recipe's `ema`; a number is a decay."""
    if isinstance(ema, bool) or not isinstance(ema, (int, float)):
        return "ema" if ema is True else None if ema is False else ema
    if not 0 <= ema < 1:
        raise Error(f"ema is {ema}: give the decay of a running mean, at least 0 and below 1, as 0.999 is")
    return f"ema:decay={ema}"


def trained_of(net, loss, reader):
    """The identities of what is trained: what the optimizer has, or everything."""
    if reader:
        return {id(parameter) for parameter in reader.parameters()}
    return {id(parameter) for owner in owners_of(net, loss) for parameter in owner.parameters()}


def owners_of(net, loss):
    """What has layers."""
    return [owner for owner in (net, loss) if isinstance(owner, torch.nn.Module)]


def check_precision(precision, tensors):
    """It says how what is f32 is computed, and of a module in f64 it would say nothing."""
    if precision is not None and not isinstance(precision, (str, torch.dtype)):
        raise Error(f"precision is {precision!r}: give a type's name, 'bf16', 'f16', 'tf32' or 'f32'")
    types = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    if precision not in (None, "f32", torch.float32) and types and torch.float32 not in types:
        found = ", ".join(sorted(TYPES[each] for each in types))
        raise Error(f"precision is {precision}, which is how f32 is computed, and the module has {found} alone: make it f32, "
                    "net.float(), or leave precision out")  # fmt: skip


def check_parameters(recorder, reader):
    foreign = [parameter for parameter in reader.parameters() if id(parameter) not in recorder.names]
    if foreign:
        raise Error(f"the optimizer has {len(foreign)} parameters that are not the module's, the first of shape "
                    f"{list(foreign[0].shape)}: make it of net.parameters(), or make what they are of a part of the module, or of a loss that is one")  # fmt: skip


def lower(graph):
    text, problems = _compiler.lower(json.dumps(graph))
    if problems:
        refuse([Problem(cured(said), *place) for said, *place in problems])
    return text


STEPS_BETWEEN_LOOKS = 100  # Of ranks at one another.
STEPS_BETWEEN_CHECKS, MOST_STEPS_UNCHECKED = 8, 4000  # Of tensors and layers: none waits for longer.
SAMPLE = 128  # Elements of each tensor that they compare.


def look_again(module, *_):
    """A layer is given another tensor or layer, by an assignment: what steps have it look at that next."""
    if not CAPTURES._is_owned():  # Else it is what captures the module, which puts it back.
        for step in STEPS:
            if module in step._layers:
                step._look_next()


for hooks_of in (register_module_buffer_registration_hook, register_module_parameter_registration_hook, register_module_module_registration_hook):
    hooks_of(look_again)


class Step(Plan):
    """A compiled training step: `loss = step(x, y)`.

    The module's parameters and buffers, and what the optimizer keeps, are the plan's own memory: state_dict(),
    load_state_dict() and eager calls see the last step, and the next step sees what they write.
    """

    def __init__(self, plan, report, recorder, reader, example, part, **options):
        super().__init__(plan, **options)
        for warning in self._warnings():
            warnings.warn(warning, stacklevel=3)
        self.report = Report(report, self.memory)
        self._reader = reader
        self._has_loss = recorder.loss is not None
        self._tensors = recorder.tensors
        self._beside = Beside(self, [id(each) for each in recorder.tensors.values() if each.requires_grad and id(each) in recorder.trained])
        self._names = recorder.names
        self._plan_variables = {name for name, *_ in self.variables}
        args, kwargs = example
        self._kwargs = dict.fromkeys(kwargs)
        self._structure = pytree.tree_structure((args, kwargs))
        self._expected = {program: [(leaf.dtype, leaf.shape) for leaf in pytree.tree_leaves(batch)]
                          for program, batch in (("train_step", example), ("evaluate", part))}  # fmt: skip
        flat = pytree.tree_structure((tuple(range(len(args))), {}))
        self._is_flat = self._structure == flat
        self._check_inputs(recorder)
        whole = Whole(recorder.net, recorder.loss)
        self._padding = Padding(self._session, recorder.functions, self._expected, self._ranks.rank if self._ranks else 0,
                                bool(self._shares), Eager(whole, whole, self._structure))  # fmt: skip
        self._rows, self._rows_of_part = (self._padding.batch_of(program) for program in ("train_step", "evaluate"))
        self._of_module = Eager(whole, whole.given, pytree.tree_structure((args[:-1], kwargs)))  # Without a target.
        self._prediction, self._gives_others = None, recorder.gives_others  # Made when it is first asked for.
        self._copies = Copies(self._session, self._tensors)
        self._is_robbed, self._must_look, self._was_state_seen = False, False, False
        self._views = None  # Of own tensors, if they are ever to be taken back.
        self._owners = owners_of(recorder.net, recorder.loss)
        self._layers = {module for owner in self._owners for module in owner.modules()}
        lent = self._share()
        self._net, self._was_autocast = recorder.net, torch.is_autocast_enabled("cpu")
        self._watched = [(name, each, each.data_ptr() if name in self._plan_variables else None, "requires_grad", each.requires_grad)
                         for name, each in self._tensors.items()]  # fmt: skip
        self._watched += [(name, each, None, "training", each.training) for name, each in self._net.named_modules() if name]
        self._kept = Kept(recorder, self._structure, self._expected["evaluate"], tries=not self._shares, lent=lent)
        self._watched += self._kept.entries
        # So many of them are looked at each time, the next in turn: a small step has emptied the caches of all of them.
        self._each_time = -(-len(self._watched) * STEPS_BETWEEN_CHECKS // MOST_STEPS_UNCHECKED)
        self._steps = 0  # If there is no quick step, which counts them.
        self._numbers = reader.compiled_numbers() if reader else []
        self._rates, self._counter = self._share_rates(), self._view("step")
        if reader:
            self._share_state()
        self._quick = self._make_quick()
        self._session.share_variables()
        if self._shares:
            self._begin_copies(recorder)

    def _begin_copies(self, recorder):
        """All ranks have the first one's from now on; who looks at the module's tensors sees the last step's."""
        self._copies.are_stale = True
        self.sync()
        look = Look(self)
        for owner in self._owners:
            look.join(owner)
        for entry in self._kept.entries:  # With that look's own hooks.
            self._watch(entry, self._kept.accept(entry))

    def _call(self, *args, **kwargs):
        """What a quick step leaves to Python, or there is none."""
        if not self._ranks:
            with self._session:
                return self._update(args, kwargs)
        with self._together(), self._session:
            if self._next % STEPS_BETWEEN_LOOKS == 0:
                self._look_at_ranks(args, kwargs)
            return self._update(args, kwargs)

    @property
    def _next(self):
        return self._quick.steps if self._quick else self._steps

    @_next.setter
    def _next(self, steps):
        if self._quick:
            self._quick.steps = steps
        else:
            self._steps = steps

    def _update(self, args, kwargs):
        if self._next == 0:
            warn_of_gradients((args, kwargs), "the first batch has")
        self._check_changes()
        self._copies.take()
        self._write_numbers()
        self._copies.are_stale = bool(self._shares)
        return self._mean_of("train_step", args, kwargs)

    def _write_numbers(self):
        """What schedulers have changed: rates, and momentum and decay."""
        for entry in self._rates:
            group, key, index, last, written = entry
            now = number_of(group, key, index)
            if now == last:
                continue
            if now == 0 and key == "momentum":
                raise Error("the optimizer's momentum is 0, and was not when the step was compiled: compile again, since torch leaves its "
                            "buffers alone then")  # fmt: skip
            written.fill_(now)
            entry[3] = now

    def _look_next(self, must_look=True):
        self._must_look = must_look
        if self._quick:
            self._quick.must_look = must_look

    def __reduce__(self):
        raise Error("a step is neither copied nor pickled: step.save(path) writes its plan, for gpuc.load, and state_dict() what it has trained")

    @property
    def _steps_made(self):
        return self._next

    def _has_optimizer(self, optimizer):
        return self._reader is not None and self._reader.torch is optimizer

    def _check_hooks(self):
        """Which layers, parameters and the optimizer may have been given since, and a step would not call."""
        for owner in self._owners:
            check_layers(owner)
        if self._reader:
            self._reader.check_hooks()

    def _tell_of_autocast(self):
        if torch.is_autocast_enabled("cpu") and not self._was_autocast:
            self._was_autocast = True  # Once is enough.
            ranks.warn("autocast is on, and a compiled step computes as it was compiled: give gpuc.compile precision='bf16', and leave "
                       "autocast out", stacklevel=5)  # fmt: skip

    def _make_quick(self):
        """An update of a batch as it was compiled for, where nothing has changed since; None: it is left to _update."""
        if self._ranks or not self._is_flat or not _runtime.QuickStep.serves(torch.Tensor):
            return None
        optimizer = self._reader.torch if self._reader else None
        return _runtime.QuickStep(self._session, torch.Tensor, self._net, self._watched, self._each_time, STEPS_BETWEEN_CHECKS,
                                  self._rates, self._numbers, optimizer)  # fmt: skip

    def _warnings(self):
        """Of all ranks, for the first to say."""
        said = list(self._session.warnings)
        if not self._ranks:
            return said
        everyone = self._ranks.gather(said, "gpuc.compile")
        more = {line: number for number, lines in reversed(list(enumerate(everyone))) for line in lines if line not in said}
        return [*said, *(f"rank {number}: {line}" for line, number in more.items())] if self._is_first else []

    def _look_at_ranks(self, args, kwargs):
        """Now and then: what each has for itself, and all must have alike; the first batches, which must not be alike."""
        pieces = b"".join(bytes_of(tensor.detach().reshape(-1)[:SAMPLE]) for tensor in self._tensors.values())
        self._ranks.agree("step", rates_of_the_optimizer=[number_of(*entry[:3]) for entry in self._rates], step=int(self._counter),
                          values_of_parameters=zlib.crc32(pieces))  # fmt: skip
        batches = self._ranks.gather(checksum_of(args, kwargs), "step")
        same = next(((batches.index(batch), number) for number, batch in enumerate(batches) if batches.index(batch) < number), None)
        if same:
            ranks.warn(f"ranks {same[0]} and {same[1]} train on the same batch: give each rank rows of its own, by a "
                       "DistributedSampler(dataset, num_replicas=gpuc.world_size(), rank=gpuc.rank())", stacklevel=3)  # fmt: skip

    def _take_restored(self):
        """The plan has other rates than were written last: those of param_groups are written anew."""
        for entry in self._rates:
            entry[3] = None
        self._copies.are_stale = True

    def sync(self):
        """What ranks share out (shard=) lies whole in no memory of the plan: brings the module's tensors up to date. All ranks
        call it at once; state_dict(), load_state_dict() and eager calls of the module do, too."""
        with self._together():
            self._copies.bring()

    def predict(self, *args):
        """What the module in eval mode gives: copies, one tensor or a list."""
        if self._gives_others:
            raise Error("forward() gives complex numbers, or rows that a mask chooses, which predict does not: call the module in eager mode")
        if "predict" not in self._session.programs:
            raise Error("the plan was compiled with predict=False: leave that out, or call the module in eager mode"
                        if self._has_loss else
                        "a module that computes its loss itself has no inputs without targets: call it in eager mode")
        self._check_places()
        for part in pytree.tree_leaves(args, is_leaf=lambda each: isinstance(each, list)):
            self._check_kind(part, "tensors were compiled")
        self._prediction = self._prediction or Prediction(self._session, self._rows_of_part, self._rows, bool(self._shares),
                                                          self._of_module)  # fmt: skip
        with self._session:
            outputs = self._prediction(pytree.tree_leaves(args))
        return outputs[0] if len(outputs) == 1 else outputs

    #
    # Batches
    #

    def _check_inputs(self, recorder):
        """Programs take what the recorder has said, in its order: tensors are passed by their addresses."""
        for function, program in (("loss", "train_step"), ("evaluate", "evaluate")):
            (recorded,) = (each for each in recorder.functions if each["name"] == function)
            shapes = [list(shape) for _, shape in self._expected[program]]
            wanted = [(each["name"], each["type"], shape) for each, shape in zip(recorded["inputs"], shapes)]
            if [tuple(each) for each in self._session.inputs(program)] != wanted or len(recorded["inputs"]) != len(shapes):
                raise Error(f"the plan's {program} does not take the batch that it was compiled for")

    def _evaluate(self, args, kwargs):
        if self._rows == self._rows_of_part:
            return super()._evaluate(args, kwargs)
        tensors, whole = [torch.as_tensor(each) for each in self._flatten(args, kwargs)], self._expected["train_step"]
        rows = self._padding.rows_of("train_step", tensors)
        if rows and self._shares:
            raise Error(f"the batch has {rows} rows where {self._rows} were compiled, and ranks share something out (shard=), so that all of "
                        "them evaluate the same parts: DataLoader(drop_last=True) leaves it out")  # fmt: skip
        if not rows:
            for tensor, (dtype, shape) in zip(tensors, whole):
                self._explain(tensor, dtype, shape)
            rows = self._rows
        total, count, shapes = 0, 0, [shape for _, shape in whole]
        for begin in range(0, rows, self._rows_of_part):
            self._mean_of_tensors("evaluate", cut(tensors, shapes, begin, begin + self._rows_of_part))
            total += self._session.number("evaluate", 0)
            count += self._session.number("evaluate", 1)
        return total, 1 if self._is_sum else count

    def _mean_of_parts(self, parts, losses):
        """What an update of these parts trains of their losses, by what each part counts; None: nobody knows."""
        if not self._session.counts_rows("train_step"):
            return sum(losses) / len(losses)
        if self._is_sum:
            return sum(losses)
        if self._shares:
            return None  # It takes all ranks to evaluate.
        counts = []
        with self._session:
            for part in parts:
                self._mean_of_tensors("evaluate", part)
                counts.append(self._session.number("evaluate", 1))
        return mean_of(sum(loss * count for loss, count in zip(losses, counts) if count), sum(counts))

    def _mean_of(self, program, args, kwargs):
        return self._mean_of_tensors(program, args if self._is_flat and not kwargs else self._flatten(args, kwargs))

    def _mean_of_tensors(self, program, tensors):
        """Tensors that are as expected are passed by their addresses."""
        addresses, expected = [], self._expected[program]
        if len(tensors) != len(expected):
            tensors = self._flatten(tensors, {})
        for tensor, (dtype, shape) in zip(tensors, expected):
            if (not isinstance(tensor, torch.Tensor) or why_not_plain(tensor) or tensor.shape != shape or tensor.dtype != dtype or not tensor.is_cpu
                    or not tensor.is_contiguous() or tensor.is_neg()):  # fmt: skip
                return self._mean_of_others(program, tensors)
            addresses.append(tensor.data_ptr())
        return self._session.mean_at(program, *addresses)

    @staticmethod
    def _plain(tensor):
        return tensor.detach() if isinstance(tensor, torch.Tensor) and tensor.requires_grad else tensor

    def _flatten(self, args, kwargs):
        if kwargs.keys() == self._kwargs.keys():  # In whatever order.
            kwargs = {key: kwargs[key] for key in self._kwargs}
        leaves, structure = pytree.tree_flatten((args, kwargs))
        if structure != self._structure:
            is_dict = len(args) == 1 and not kwargs and isinstance(args[0], dict) and args[0].keys() == self._kwargs.keys()
            is_whole = len(args) == 1 and not kwargs and isinstance(args[0], (list, tuple)) and len(args[0]) > 1
            cure = ("give its keys by their names, step(**batch)" if is_dict else "give them one by one, step(*batch)" if is_whole
                    else "one batch is given by its parts, step(x, y), and several as a list of such, [(x, y)]" if len(leaves) < self._structure.num_leaves
                    else "pass the same arguments and keys")  # fmt: skip
            counts = "" if structure.num_leaves == self._structure.num_leaves else f", {structure.num_leaves} where it had {self._structure.num_leaves}"
            raise Error(f"the batch has other parts than the one that was compiled{counts}: {cure}")
        return leaves

    def _mean_of_others(self, program, tensors):
        """Of tensors that are not just as expected: a ragged batch, other strides, arrays of other libraries."""
        for tensor, (dtype, shape) in zip(tensors, self._expected[program]):
            self._check_kind(tensor, f"{TYPES.get(dtype, dtype)} {list(shape)} was compiled")
        if self._quick and any(isinstance(each, torch.Tensor) and each.is_neg() for each in tensors):
            self._quick.were_negated = True
        rows = self._padding.rows_of(program, tensors)
        if rows:
            mean, why = self._padding.mean(program, tensors, rows)
            if why:
                raise Error(f"the batch has {rows} rows where {self._padding.batch_of(program)} were compiled: a ragged last "
                            f"batch, which cannot be padded ({why}); DataLoader(drop_last=True) leaves it out")  # fmt: skip
            return mean
        for tensor, (dtype, shape) in zip(tensors, self._expected[program]):
            self._explain(tensor, dtype, shape)
        return self._mean(program, [self._plain(each) for each in tensors])

    @staticmethod
    def _check_kind(part, expected):
        """Of a batch. Arrays of other libraries are the session's to check."""
        if part is None or isinstance(part, (bool, int, float, str)):
            raise Error(f"a part of the batch is {part!r}, where {expected}: give a tensor or an array")
        if isinstance(part, (list, tuple, dict, set)):
            raise Error(f"a part of the batch is a {type(part).__name__}, where {expected}: give a tensor or an array, torch.tensor(…)")
        if isinstance(part, torch.Tensor) and (why := why_not_plain(part)):
            raise Error(f"a part of the batch {why}")
        if isinstance(part, torch.Tensor) and part.device.type not in ("cpu", "cuda"):
            raise Error(f"a part of the batch lies on {part.device}: give it on the CPU, x.cpu()")

    @staticmethod
    def _explain(leaf, dtype, shape):
        """Why a tensor is not what was compiled. Arrays of other libraries are the session's to check."""
        if not isinstance(leaf, torch.Tensor) or (leaf.dtype == dtype and leaf.shape == shape):
            return
        expected = f"{TYPES.get(dtype, dtype)} {list(shape)}"
        is_other_type = leaf.dtype != dtype and leaf.shape == shape
        cure = f"; cast it, .to({dtype})" if is_other_type else "; is it in its place?" if leaf.dtype != dtype else ": shapes are fixed when a step is compiled; pad to them, or compile another step"
        raise Error(f"the batch has {TYPES.get(leaf.dtype, leaf.dtype)} {list(leaf.shape)} where {expected} was compiled" + cure)

    #
    # State
    #

    def _view(self, name):
        return torch.from_dlpack(self._session.variable(name))

    def _share(self):
        """The plan's variables take the values of the module's tensors, and their place. Returns what others have of buffers, too, by identity."""
        lent = {}
        for name, tensor in self._own_tensors():
            if not isinstance(tensor, torch.nn.Parameter) and not name.startswith("constant.") and (made := Lent.of(tensor)):
                lent[id(tensor)] = made
            put_at(tensor, self._view(name))
        self._copies.begin()
        self._rob_others()
        STEPS.add(self)
        return lent

    def _rob_others(self):
        own = {id(tensor) for tensor in self._tensors.values()}
        for other in STEPS:
            if other is not self and not own.isdisjoint(map(id, other._tensors.values())):
                other._lose_tensors()

    def _own_tensors(self):
        """That lie in the plan's memory."""
        return [(name, tensor) for name, tensor in self._tensors.items() if name in self._plan_variables and name not in self._shares]

    def _lose_tensors(self):
        """Another step has taken some: the next call, which is left to Python, takes them back."""
        self._is_robbed = True
        if self._quick:
            self._quick.must_look = True

    def _take_back(self):
        """What another step of the same tensors has left, values, memory and the optimizer's state. Who gave a tensor memory that is no step's
        is told."""
        if self._shares:
            raise Error("another step has taken the module's tensors since, which ranks share out here (shard=): train by one step, or compile again")
        if self._views is None:
            self._views = [(name, tensor, view, view.data_ptr()) for name, tensor in self._own_tensors() for view in [self._view(name)]]
        lost = [each for each in self._views if each[1].data_ptr() != each[3]]
        for name, tensor, _, address in lost:
            if not is_placed(tensor):
                self._check_place(name, tensor, address)
        for _, tensor, view, _ in lost:
            put_at(tensor, view)
        self._is_robbed = False
        self._look_next(self._must_look)
        self._rob_others()
        if self._reader:
            self._check_state()

    def _share_rates(self):
        """[group, key, index in it or None, what was written last, variable] of each number that may change between steps."""
        self._groups_of_rates = []
        if not self._reader:
            return []
        groups = self._reader.torch.param_groups
        found = [entry for entry in self._reader.changing() if entry[-1] in self._plan_variables]
        self._groups_of_rates = [next(number for number, each in enumerate(groups) if each is group) for group, *_ in found]
        return [[group, key, index, None, self._view(variable)] for group, key, index, variable in found]

    def _share_state(self):
        """opt.state's tensors become the plan's; they and its step counts are there when someone looks."""
        optimizer = self._reader.torch
        optimizer.state_dict()  # An earlier step of this optimizer has its hook there, and gives what it has.
        self._beginnings = {name: self._view(name).flatten()[0].item() for *_, name in self._slots() if name not in self._shares}
        self._state = None
        self._steps_of = {}  # By parameter the same tensor each time: a state_dict() that somebody keeps counts on with it, as its other tensors do.
        self._take_state()
        optimizer.register_state_dict_pre_hook(lambda _: self._publish())
        optimizer.register_load_state_dict_pre_hook(lambda *_: self._publish())
        optimizer.register_step_pre_hook(lambda *_: self._publish())
        optimizer.register_step_post_hook(lambda *_: None if self._has_others_state() else self._take_state())
        optimizer.register_load_state_dict_post_hook(lambda _: self._take_groups())

    def _take_groups(self):
        """load_state_dict has made new groups; lists stay the same ones, which the quick step has, too."""
        groups = self._reader.torch.param_groups
        for entry, number in zip(self._rates, self._groups_of_rates):
            entry[0] = groups[number]
        self._numbers[:] = [(group, numbers) for group, (_, numbers) in zip(groups, self._numbers)]
        if not self._has_others_state():
            self._take_state()
            self._renew_quick()

    def _has_others_state(self):
        """Whether the optimizer has been another step's since."""
        return isinstance(self._reader.torch.state, State) and self._reader.torch.state is not self._state

    def _slots(self):
        """Parameter, slot's name and variable, of all that the optimizer keeps."""
        for name, kind in ((name, kind) for name, _, _, kind, _ in self.variables):
            owner, _, slot = name.rpartition("/")
            if kind == "optimizer" and slot != "ema" and owner in self._tensors:
                yield self._tensors[owner], slot, name

    def _take_state(self):
        """What eager steps, a state_dict or a user have left goes into the plan; what is not there begins anew, as it does in eager mode."""
        optimizer, steps, counts, slots = self._reader.torch, 0, {}, list(self._slots())
        self._was_state_seen = False  # Or what is taken here would be taken again, behind steps that it does not count.
        if optimizer.state is not self._state:
            optimizer.state = self._state = State(self, optimizer.state)
        with self._state.unwatched():
            for parameter, slot, name in slots:
                known = optimizer.state.get(parameter, {})
                held = known.get(SLOTS.get(slot, slot))
                counts[id(parameter)] = int(known.get("step", held is not None))
                if held is None:
                    self._begin_anew(name)
                    continue
                if name in self._shares:
                    self._copies.write(name, held)
                elif held.data_ptr() != (view := self._view(name)).data_ptr():
                    view.copy_(held)
                    known[SLOTS.get(slot, slot)] = view
                steps = max(steps, counts[id(parameter)])
        if slots:
            self._count_on(steps, counts)
        if self._counts_steps() and len(set(counts.values())) > 1:
            ranks.warn(f"parameters have made {min(counts.values())} to {max(counts.values())} steps of {type(optimizer).__name__}, as layers "
                       f"that were frozen have, and a compiled step corrects all by {steps}: make a new optimizer when a layer is unfrozen",
                       stacklevel=5)  # fmt: skip

    def _count_on(self, steps, counts):
        """From what the state says. SGD's says of no number, and what is drawn has one for each step: it is counted on from where it was, if
        the first update is behind all that has state, or is none of its own."""
        if self._reader.name == "sgd" and (any(counts.values()) or not self._counts_steps()):
            steps = max(steps, int(self._counter))
        self._counter.fill_(steps)

    def _counts_steps(self):
        """Whether an update is another in the first steps. SGD with dampening has the first gradient whole."""
        return self._reader.name in ("adam", "adamax", "adamw", "asgd", "nadam", "radam", "rprop") or any(
            group.get("dampening") for group in self._reader.torch.param_groups)

    def _begin_anew(self, name):
        if name in self._beginnings:
            self._view(name).fill_(self._beginnings[name])
        elif int(self._counter):
            raise Error("what the optimizer keeps was taken out of its state, and ranks share it out (shard=): compile again")

    def _publish(self):
        """What the plan has goes into opt.state, if a step was made."""
        self.sync()
        steps = int(self._counter)
        if not steps or self._reader.torch.state is not self._state:
            return
        with self._state.unwatched():
            for parameter, slot, name in self._slots():
                known = self._reader.torch.state[parameter]
                if name in self._shares:
                    known[SLOTS.get(slot, slot)] = self._copies.read(name)
                elif known.get(SLOTS.get(slot, slot)) is None:
                    known[SLOTS.get(slot, slot)] = self._view(name)
                if self._reader.name != "sgd":
                    known["step"] = self._steps_of.setdefault(parameter, torch.tensor(0.0)).fill_(steps)

    def _show_state(self):
        """Somebody looks at opt.state, and may change it."""
        if not self._was_state_seen and not self._shares:
            self._publish()
            self._was_state_seen = True
            self._look_next()

    def _check_state(self):
        """What somebody may have changed."""
        state = self._reader.torch.state
        if self._was_state_seen or state is not self._state:
            self._take_state()
            if state is not self._state:
                self._renew_quick()

    def _check_changes(self):
        """What a compiled step would not notice else: a group of the optimizer in each step, and a tensor or a layer."""
        if not self._net.training:
            raise Error("net is in eval mode, and the step was compiled in training mode: call net.train() before it (eval_step, evaluate "
                        "and predict need no net.eval())")  # fmt: skip
        if self._is_robbed:
            self._take_back()
        if self._must_look or self._next & (self._next - 1) == 0:
            self._check_everything()
        elif self._reader and self._reader.torch.state is not self._state:
            self._check_state()
        time, rest = divmod(self._next, STEPS_BETWEEN_CHECKS)
        if rest == 0 and self._watched:
            for turn in range(time * self._each_time, (time + 1) * self._each_time):
                self._check_watched(self._watched[turn % len(self._watched)])
        if self._numbers:
            self._check_group(*self._numbers[self._next % len(self._numbers)])
        self._next += 1

    def _check_everything(self):
        """In the first step, and after 1, 2, 4, 8, … of them: what a loop changes each time is found in its second step. And where a layer was
        given something: a buffer that was assigned, as a hidden state is that begins anew, goes into the plan."""
        if self._must_look:
            self._kept.take_buffers()
        for entry in self._watched:
            self._check_watched(entry)
        for numbers in self._numbers:
            self._check_group(*numbers)
        if self._reader:
            self._reader.check_parameters()
            self._check_state()
        self._check_hooks()
        self._tell_of_autocast()
        self._beside.tell_of_newer()
        self._look_next(False)

    def _check_watched(self, entry):
        name, watched, address, attribute, value = entry
        if self._kept.has(entry):
            return self._watch(entry, self._kept.check(entry))
        self._check_place(name, watched, address)
        if getattr(watched, attribute) != value:
            raise Error(f"{attribute} of '{name}' is {not value}, and was {value} when the step was compiled: compile again, or "
                        "set it back")  # fmt: skip

    def _watch(self, before, entry):
        """`entry` in the place of another one, or of itself."""
        if entry is before:
            return
        self._watched = [other if other is not before else entry for other in self._watched]
        self._renew_quick()

    def _renew_quick(self):
        quick, self._quick = self._quick, self._make_quick()
        if quick and self._quick:
            self._quick.steps, self._quick.were_negated, self._quick.must_look = quick.steps, quick.were_negated, quick.must_look

    @staticmethod
    def _check_place(name, watched, address):
        if address is not None and watched.data_ptr() != address:
            raise Error(f"'{name}' has other memory than when the step was compiled (p.data = …, net.to(…)): write into it, p.copy_(…), or "
                        "compile again")  # fmt: skip

    def _check_places(self):
        if self._is_robbed:
            self._take_back()
        if self._must_look:
            self._kept.take_buffers()
        self._copies.take()
        if not (self._quick and self._quick.is_all_where_it_was()):
            for name, watched, address, *_ in self._watched:
                self._check_place(name, watched, address)
        for entry in self._kept.entries:
            self._watch(entry, self._kept.check(entry))

    def _check_group(self, group, numbers):
        for key, value in numbers:
            if group[key] != value:
                raise Error(f"the optimizer's {key} is {group[key]}, and was {value} when the step was compiled, which "
                            "goes on with that: compile again")  # fmt: skip
        if len(self._reader.torch.param_groups) != len(self._numbers):
            raise Error("the optimizer has other groups than when the step was compiled: compile again")


Step.step = Step.__call__ = _runtime.step_call(Step)


def put_at(tensor, view):
    """Its values go to a plan's memory, and stay there."""
    view.copy_(tensor.detach())
    tensor.data = view
    PLACES[tensor] = view.data_ptr()


def number_of(group, key, index):
    value = group[key]
    return float(value if index is None else value[index])


# Where the recipe's name of a slot is not torch's.
SLOTS = {}
