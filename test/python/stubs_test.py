"""python/gpuc/__init__.pyi says what the modules have: names, arguments, defaults, properties and attributes.

Both are read as text, so that neither torch nor the extensions are needed. --package FOLDER: other modules.
"""

import ast
import pathlib
import sys
import unittest

PACKAGE = pathlib.Path(sys.argv.pop()) if len(sys.argv) > 2 and sys.argv[-2] == "--package" else None
if PACKAGE:
    sys.argv.pop()
PACKAGE = PACKAGE or pathlib.Path(__file__).parents[2] / "python/gpuc"
FUNCTIONS = {"compile": ("step", "compile_step")}  # Where a function's arguments are another's.
HELPERS = {"_Scheduler"}  # Of the stub alone.
INNER = {"Step", "Memory"}  # Nobody makes these by their names.


def trees():
    return {path.stem: ast.parse(path.read_text()) for path in PACKAGE.glob("*.py")}


def definitions(body):
    return {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def value_of(node, constants):
    """A default, or what the constant of its name stands for."""
    return constants.get(node.id) if isinstance(node, ast.Name) else ast.unparse(node)


def arguments(function, constants):
    """Names, kinds and defaults, without annotations."""
    given = function.args
    plain = [each.arg for each in given.posonlyargs + given.args]
    defaults = dict(zip(plain[::-1], given.defaults[::-1]))
    defaults.update((each.arg, default) for each, default in zip(given.kwonlyargs, given.kw_defaults) if default)
    return {
        "plain": plain, "named": [each.arg for each in given.kwonlyargs],
        "rest": [each and each.arg for each in (given.vararg, given.kwarg)],
        "defaults": {name: value_of(default, constants) for name, default in defaults.items()},
        "property": any(isinstance(each, ast.Name) and each.id == "property" for each in function.decorator_list),
    }  # fmt: skip


def constants_of(tree):
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, values = node.targets[0], node.value
            pairs = zip(targets.elts, values.elts) if isinstance(targets, ast.Tuple) else [(targets, values)]
            found.update((target.id, ast.unparse(value)) for target, value in pairs if isinstance(target, ast.Name))
    return found


def attributes(cls):
    """What methods and the class give to `self`, and names that a class body assigns."""
    found = set()
    for node in ast.walk(cls):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and getattr(node.value, "id", "") == "self":
            found.add(node.attr)
    return found


def is_public(name):
    return not name.startswith("_") or name in ("__init__", "__call__")


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trees = trees()
        cls.stub = definitions(ast.parse((PACKAGE / "__init__.pyi").read_text()).body)
        cls.where = {name: module for module, tree in cls.trees.items() if module != "__init__" for name in definitions(tree.body)}

    def real(self, name):
        module, inner = FUNCTIONS.get(name, (self.where.get(name), name))
        self.assertIsNotNone(module, f"{name} stands in the stub, and in no module")
        tree = self.trees[module]
        return definitions(tree.body)[inner], constants_of(tree)

    def test_everything_that_is_offered_is_there(self):
        (offered,) = (ast.literal_eval(node.value) for node in self.trees["__init__"].body
                      if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")  # fmt: skip
        self.assertEqual(set(self.stub) - HELPERS - INNER, set(offered))

    def test_functions(self):
        for name, node in self.stub.items():
            if isinstance(node, ast.FunctionDef):
                with self.subTest(name):
                    self.assertEqual(arguments(node, {}), arguments(*self.real(name)))

    def test_classes(self):
        for name, node in self.stub.items():
            if isinstance(node, ast.ClassDef) and name not in HELPERS:
                with self.subTest(name):
                    self.check_class(node, *self.real(name))

    def check_class(self, stub, real, constants):
        self.assertEqual([ast.unparse(base) for base in stub.bases], [ast.unparse(base) for base in real.bases])
        said = {name: arguments(method, {}) for name, method in definitions(stub.body).items()}
        there = {name: arguments(method, constants) for name, method in definitions(real.body).items() if is_public(name)}
        for alias, of in constants_of(real).items():  # `__call__ = step`
            if is_public(alias) and of in there:
                there[alias] = there[of]
        if real.name == "Step":  # compile_step makes it; what it has of Plan's stands there.
            there = {name: each for name, each in there.items() if name not in ("__init__", "step", "restore")}
        self.assertEqual(said, there)
        fields = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
        self.assertEqual(fields, {each for each in attributes(real) if is_public(each)})


if __name__ == "__main__":
    unittest.main()
