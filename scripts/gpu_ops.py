"""Random ops for scripts/check-gpu: modules of one function, whose results a GPU and the host must agree on."""
import random

ELEMENTS = ("f32", "f64", "f16", "bf16")


class Function:
    """@f: its inputs, one for each tensor that is asked for, and whatever is put out."""

    def __init__(self):
        self.inputs, self.body, self.outputs, self.values = [], [], [], 0

    def input(self, shape, element):
        tensor = type_of(shape, element)
        self.inputs.append(f"%a{len(self.inputs)}: {tensor}")
        return f"%a{len(self.inputs) - 1}", tensor

    def op(self, text, operands, results):
        """Appends `%n = gpuc.TEXT : types`; the names of the results."""
        name = f"%v{self.values}"
        self.values += 1
        listed = results[0] if len(results) == 1 else f"({', '.join(results)})"
        self.body.append(f"  {name}{':' + str(len(results)) if len(results) > 1 else ''} = gpuc.{text} : "
                         f"({', '.join(operands)}) -> {listed}")
        return [name] if len(results) == 1 else [f"{name}#{i}" for i in range(len(results))]

    def line(self, text):
        name = f"%v{self.values}"
        self.values += 1
        self.body.append(f"  {name} = gpuc.{text}")
        return name

    def put_out(self, name, tensor):
        self.outputs.append((name, tensor))

    def text(self):
        results = ", ".join(f'{tensor} {{gpuc.name = "y{i}"}}' for i, (_, tensor) in enumerate(self.outputs))
        names = ", ".join(name for name, _ in self.outputs)
        types = ", ".join(tensor for _, tensor in self.outputs)
        return "\n".join([f"func.func @f({', '.join(self.inputs)}) -> ({results}) {{", *self.body,
                          f"  return {names} : {types}", "}", ""])


def type_of(shape, element):
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


def convolutions(element, draw):
    """Each with both of its gradients."""
    function = Function()
    for _ in range(10):
        groups, kernel, stride = draw.choice((1, 1, 1, 2, 4)), draw.choice((1, 3, 5)), draw.choice((1, 1, 2))
        padding, batch = draw.choice((0, 1, 2)), draw.choice((1, 2, 5, 16))
        channels, filters = groups * draw.choice((1, 3, 8, 16, 32)), groups * draw.choice((1, 4, 8, 24, 64))
        height, width = draw.choice((7, 8, 14, 17, 28)), draw.choice((7, 8, 14, 28))
        rows, columns = ((extent + 2 * padding - kernel) // stride + 1 for extent in (height, width))
        x, x_type = function.input((batch, channels, height, width), element)
        w, w_type = function.input((filters, channels // groups, kernel, kernel), element)
        dy, y_type = function.input((batch, filters, rows, columns), element)
        how = f"strides [{stride}, {stride}] padding [{padding}, {padding}, {padding}, {padding}] groups {groups}"
        for op, a, b, operands, result in (("conv2d", x, w, (x_type, w_type), y_type),
                                           ("conv2d_input_gradient", dy, w, (y_type, w_type), x_type),
                                           ("conv2d_filter_gradient", dy, x, (y_type, x_type), w_type)):
            function.put_out(function.op(f"{op} {a}, {b} {how}", operands, (result,))[0], result)
    return function


def products(element, draw):
    function = Function()
    for _ in range(16):
        m, n, k = (draw.choice((1, 5, 16, 33, 64, 128, 200)) for _ in range(3))
        batch = draw.choice(((), (), (3,), (2, 4)))
        left, right = draw.choice((True, False)), draw.choice((True, False))
        a, a_type = function.input((*batch, k, m) if left else (*batch, m, k), element)
        b, b_type = function.input((*batch, n, k) if right else (*batch, k, n), element)
        result = type_of((*batch, m, n), element)
        text = f"matmul {'transpose ' if left else ''}{a}, {'transpose ' if right else ''}{b}"
        function.put_out(function.op(text, (a_type, b_type), (result,))[0], result)
    return function


def attentions(element, draw):
    """Each with its gradient."""
    function = Function()
    for width in (8, 16, 24, 32, 64, 64, 80, 96, 128):
        batch, groups, repeats = draw.choice((1, 2)), draw.choice((1, 2)), draw.choice((1, 2))
        queries, keys = draw.choice((1, 17, 64, 100, 129)), draw.choice((5, 64, 65, 128, 200))
        causal = draw.choice((True, False))
        if causal:
            keys = queries
        q, q_type = function.input((batch, groups * repeats, queries, width), element)
        k, k_type = function.input((batch, groups, keys, width), element)
        v, _ = function.input((batch, groups, keys, width), element)
        d, _ = function.input((batch, groups * repeats, queries, width), element)
        how = f"scale {width ** -0.5:.6e}{' causal' if causal else ''}"
        logarithms = type_of((batch, groups * repeats, queries), "f64" if element == "f64" else "f32")
        result, sums = function.op(f"attention {q}, {k}, {v} {how}", (q_type, k_type, k_type), (q_type, logarithms))
        gradients = function.op(f"attention_gradient {d} of {result}, {sums} query {q} key {k} value {v} {how}",
                                (q_type, q_type, logarithms, q_type, k_type, k_type), (q_type, k_type, k_type))
        for name, tensor in zip((result, *gradients), (q_type, q_type, k_type, k_type)):
            function.put_out(name, tensor)
    return function


def kernels(element, draw):
    """Large enough that threads compute several elements each, and sums of every kind of rows."""
    function = Function()
    for rows, columns in ((1024, 1028), (1024, 1026), (1025, 1027), (8192, 96), (40, 30011), (30011, 40)):
        x, tensor = function.input((rows, columns), element)
        y, _ = function.input((rows, columns), element)
        row, row_type = function.input((columns,), element)
        column, column_type = function.input((rows,), element)
        wide = function.line(f"broadcast {row} dims [1] : {row_type} to {tensor}")
        high = function.line(f"broadcast {column} dims [0] : {column_type} to {tensor}")
        product = function.line(f"mul {x}, {wide} : {tensor}")
        total = function.line(f"add {product}, {high} : {tensor}")
        function.put_out(function.line(f"tanh {total} : {tensor}"), tensor)
        squares = function.line(f"mul {x}, {y} : {tensor}")
        for dim, result in ((0, row_type), (1, column_type)):
            function.put_out(function.op(f"sum {squares} dims [{dim}]", (tensor,), (result,))[0], result)
            function.put_out(function.op(f"reduce_max {total} dims [{dim}]", (tensor,), (result,))[0], result)
    return function


def modules():
    """(name, element, text) of each; always the same, and of the same shapes in each type."""
    for make in (convolutions, products, attentions, kernels):
        for element in ELEMENTS:
            function = make(element, random.Random(make.__name__))
            yield make.__name__, element, function.text()
