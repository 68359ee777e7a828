"""What ranks share out (shard=) lies whole nowhere: the module's tensors hold copies, brought up to date when someone looks."""

import weakref

import torch

from gpuc.errors import Error


class Copies:
    """Of one step. All ranks make the same calls, since each gives its share, or has the others know its writes."""

    def __init__(self, session, tensors):
        self.session = session
        self.names = frozenset(session.shares())
        self.tensors = {name: tensor for name, tensor in tensors.items() if name in self.names}
        self.versions = {}  # Of what the plan and the tensors had alike.
        self.are_stale = False

    def begin(self):
        """The plan takes what the first rank's tensors have, whose memory is their own: a second step of the module has others."""
        for name, tensor in self.tensors.items():
            tensor.data = tensor.detach().clone(memory_format=torch.contiguous_format)
            self.session.write_of_first(name, tensor.detach())
            self.versions[name] = tensor._version

    def read(self, name):
        return torch.from_dlpack(self.session.read(name))

    def write(self, name, values):
        self.session.write(name, values.detach().contiguous())

    def bring(self):
        """The tensors get what the last step has left."""
        if not self.are_stale:
            return
        self.take()
        for name, tensor in self.tensors.items():
            tensor.data.copy_(self.read(name))
        self.are_stale = False

    def take(self):
        """The plan gets what someone has written into the tensors."""
        for name, tensor in self.tensors.items():
            if tensor._version == self.versions[name]:
                continue
            if self.are_stale:
                raise Error(f"'{name}' was written where it was not what the last step had left, as ranks share it out: call step.sync() "
                            "before it is read or written")  # fmt: skip
            self.write(name, tensor)
            self.versions[name] = tensor._version


class Look:
    """A hook of modules that has their tensors brought up to date. Copied or pickled with them, it belongs to no step."""

    def __init__(self, step=None):
        self.step = None if step is None else weakref.ref(step)

    def __call__(self, *_):
        step = self.step and self.step()
        if step is not None and not torch.compiler.is_compiling():
            step.sync()

    def __reduce__(self):
        return Look, ()

    def join(self, module):
        for each in module.modules():
            each.register_state_dict_pre_hook(self)
            each.register_load_state_dict_pre_hook(self)
            each.register_forward_pre_hook(self)
