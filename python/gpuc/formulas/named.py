"""The names by which formulas know PyTorch's functions."""


def name_of(function):
    """add of torch.add, torch.Tensor.add and Tensor.__add__; real of the property Tensor.real."""
    name = getattr(function, "__name__", "")
    if name == "__get__":
        return getattr(function.__self__, "__name__", name)
    return name.strip("_") if name.startswith("__") else name
