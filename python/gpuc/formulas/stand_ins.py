"""What stands for a tensor that a compiled step cannot have: no tensor of torch's, but taken by its functions, methods and operators."""

import torch


class StandIn:
    """A subclass has `applied(function, args, kwargs)`, static: what becomes of a call that it is an argument of."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return cls.applied(function, args, kwargs or {})

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(torch.Tensor, name):
            raise AttributeError(name)
        own = getattr(torch.Tensor, name)
        if not callable(own):  # A property.
            return self.applied(own.__get__, (self,), {})
        return lambda *args, **kwargs: self.applied(own, (self, *args), kwargs)

    @classmethod
    def add_operators(cls, names):
        """Which Python looks up in the class."""
        for name in names:
            if method := getattr(torch.Tensor, f"__{name}__", None):
                setattr(cls, f"__{name}__", lambda self, *args, method=method: cls.applied(method, (self, *args), {}))
