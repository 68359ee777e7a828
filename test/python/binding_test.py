"""Recorded graphs are lowered, compiled and trained by way of the Python package, without torch.

Runs in the build's Python environment, which has NumPy; python/CMakeLists.txt leaves it out where there is none.
"""

import html
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy
from recording import INPUTS, Recording

import gpuc
from gpuc import _compiler


class Training(unittest.TestCase):
    def check(self, name):
        """Eager's losses, which the recording holds, to 1e-8."""
        recording = Recording(name)
        plan = recording.plan()
        losses = [plan.step(*recording.batch) for _ in recording.losses]
        for loss, eager in zip(losses, recording.losses):
            self.assertAlmostEqual(loss, eager, delta=1e-8)
        self.assertNotAlmostEqual(losses[0], losses[-1], delta=1e-3)

    def test_mlp(self):
        self.check("mlp")

    def test_resnet(self):
        self.check("resnet")

    def test_gpt(self):
        self.check("gpt")

    def test_recurrent(self):
        self.check("recurrent")

    def test_odd(self):
        self.check("odd")

    def test_losses(self):
        self.check("losses")

    def test_by_hand(self):
        self.check("by_hand")

    def test_derived(self):
        self.check("derived")

    def test_contrastive(self):
        self.check("contrastive")

    def test_unpooled(self):
        self.check("unpooled")


HOLDING = """
import sys, threading, time, gpuc
plan = gpuc.load(sys.argv[1], state="initial")
threading.Thread(target=lambda held: time.sleep(100), args=(plan,), daemon=True).start()
"""


class Binding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recording = Recording("mlp")
        cls.plan = cls.recording.plan()

    def error(self, *batch):
        with self.assertRaises(gpuc.Error) as raised:
            self.plan.step(*batch)
        return str(raised.exception)

    def test_nothing_is_said_of_what_a_thread_holds_to_the_end(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "net.plan"
            self.plan.save(path)
            done = subprocess.run([sys.executable, "-c", HOLDING, path], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_threads_wait_for_one_another(self):
        """They make as many updates together as one makes by itself, to the bit."""
        recording, losses = Recording("resnet"), []
        together, alone, batch = recording.plan(), recording.plan(), recording.batch
        threads = [threading.Thread(target=lambda: [losses.append(together.step(*batch)) for _ in range(10)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(losses), sorted(alone.step(*batch) for _ in range(40)))
        for name, *_ in alone.variables:
            numpy.testing.assert_array_equal(numpy.from_dlpack(together.variable(name)), numpy.from_dlpack(alone.variable(name)), name)

    def test_a_rate_that_is_written_holds_from_the_next_step_on(self):
        plan = self.recording.plan()
        numpy.from_dlpack(plan.variable("lr"))[...] = 0
        before = numpy.from_dlpack(plan.variable("fc1.weight")).copy()
        plan.step(*self.recording.batch)
        numpy.testing.assert_array_equal(before, numpy.from_dlpack(plan.variable("fc1.weight")))

    def test_a_notebook_shows_the_arena(self):
        memory = self.plan.memory
        self.assertEqual(repr(memory), f"Memory({self.plan.arena_bytes} bytes)")
        self.assertIn("train_step", memory.html)
        frame = memory._repr_html_()
        self.assertTrue(frame.startswith('<iframe srcdoc="') and frame.count('"') == 4, frame[:80])  # All quotes within are escaped.
        self.assertEqual(html.unescape(frame.split('"')[1]), memory.html)

    def test_views_outlive_the_plan(self):
        view = numpy.from_dlpack(self.recording.plan().variable("fc2.bias"))
        self.assertEqual(view.shape, (3,))
        view[...] = 7

    def test_saved_and_loaded_it_goes_on_with_the_same_bits(self):
        plan = self.recording.plan()
        plan.step(*self.recording.batch)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mlp.plan"
            plan.save(path)
            loaded = gpuc.load(path)
            self.assertEqual(loaded.step(*self.recording.batch), plan.step(*self.recording.batch))
            self.assertEqual(loaded.origin, path.with_suffix(".safetensors"))
            with self.assertRaisesRegex(gpuc.Error, "where the variables go"):
                plan.save(path.with_suffix(".safetensors"))
            self.assertEqual({each.name for each in path.parent.iterdir()}, {"mlp.plan", "mlp.safetensors"})
            with self.assertRaisesRegex(gpuc.Error, "cannot write .*: Is a directory"):
                plan.save(path.parent)
            self.assertFalse(path.parent.with_suffix(".safetensors").exists())
            cut = path.with_name("cut.plan")
            cut.write_bytes(path.read_bytes()[:500])
            with self.assertRaisesRegex(gpuc.Error, "cut.plan: plan cut short"):
                gpuc.load(cut)
            with self.assertRaisesRegex(gpuc.Error, "cannot write .*nowhere/mlp.plan: No such file"):
                plan.save(path.parent / "nowhere" / "mlp.plan")
        with self.assertRaisesRegex(gpuc.Error, "cannot read .*mlp.plan: No such file"):
            gpuc.load(path)

    def test_variables_of_another_plan_are_taken_if_they_are_named(self):
        one, other = self.recording.plan(), self.recording.plan(seed=7)
        with tempfile.TemporaryDirectory() as folder:
            path, there = pathlib.Path(folder) / "one.plan", pathlib.Path(folder) / "other.plan"
            one.save(path)
            other.save(there)
            beside = there.with_suffix(".safetensors")
            beside.replace(path.with_suffix(".safetensors"))
            with self.assertRaisesRegex(gpuc.Error, "one.safetensors lies beside one.plan, and was not saved with it: give state="):
                gpuc.load(path)
            self.assertIsNone(gpuc.load(path, state="initial").origin)
            self.assertIsNone(gpuc.load(there).origin)
            taken = gpuc.load(path, state=path.with_suffix(".safetensors"))
            self.assertEqual(taken.step(*self.recording.batch), other.step(*self.recording.batch))
            with self.assertRaisesRegex(gpuc.Error, "no.safetensors: "):
                gpuc.load(path, state="no.safetensors")

    def test_what_is_wrong_with_a_batch(self):
        x, y = self.recording.batch
        self.assertIn("input 'x': got 3x6xf64, expected 4x6xf64", self.error(x[:3].copy(), y))
        self.assertIn("input 'x': got 4x6xf32, expected 4x6xf64", self.error(x.astype(numpy.float32), y))
        self.assertIn("input 'x' is no contiguous tensor in the host's memory", self.error(x.T.copy().T, y))
        self.assertIn("input 'x' is no contiguous tensor", self.error("x", y))
        self.assertIn("input 'x' has an element type that gpuc does not have", self.error(x.astype(complex), y))
        self.assertIn("1 inputs given, it takes 2", self.error(x))

    def test_a_label_that_is_none_is_an_index_error(self):
        x, y = self.recording.batch
        with self.assertRaisesRegex(IndexError, r"element 2 is 3, outside its range \[0, 3\)"):
            self.plan.step(x, numpy.array([0, 1, 3, 0]))

    def test_numbers_that_are_none_are_an_error_where_they_are_looked_for(self):
        recording = Recording("mlp")
        plan = recording.plan(check_numerics=True)
        plan.step(*recording.batch)
        recording.batch[0][0, 0] = numpy.inf
        with self.assertRaisesRegex(gpuc.Error, "^step 2: input .* holds 1 value that is NaN or infinite"):
            plan.step(*recording.batch)

    def test_predict_can_be_left_out(self):
        self.assertNotIn("predict", gpuc.Plan(Recording("mlp").file(predict=False)).programs)

    def test_no_torch_is_loaded(self):
        self.assertNotIn("torch", sys.modules)

    def test_other_threads_go_on_while_a_step_runs(self):
        done, count = threading.Event(), [0]

        def counting():
            while not done.is_set():
                count[0] += 1

        thread = threading.Thread(target=counting)
        thread.start()
        for _ in range(50):
            self.plan.step(*self.recording.batch)
        done.set()
        thread.join()
        self.assertGreater(count[0], 0)


class Lowering(unittest.TestCase):
    """Everything that is wrong, each with the line of the user's code."""

    def test_batch_norms_are_of_rows(self):
        """Nothing else tells sync_batch_norm which ones to synchronise, as the batch is known."""
        text, problems = _compiler.lower(json.dumps(Recording("resnet").graph))[:2]
        loss = text[text.index("func.func @loss(") :]
        norms = [line for line in loss[: loss.index("\n  }")].splitlines() if "gpuc.batch_norm" in line]
        self.assertEqual(problems, [])
        self.assertGreater(len(norms), 0)
        self.assertEqual([line for line in norms if "gpuc.has_rows" not in line], [])

    def test_what_is_drawn_for_rows(self):
        """Wherever these lie where it meets them; and not what all of them get alike."""
        for draws, order, has_rows in (
            ([4, 8], None, True), ([16, 2], [16, 2], True), ([8, 4], "turned", True), ([8, 1], "turned", False), ([1, 8], None, False),
            ([1, 2], [16, 2], False), ([16, 1], [16, 2], True), ([8], None, False),
        ):  # fmt: skip
            with self.subTest(draws=draws, order=order):
                graph = Recording("mlp").graph
                nodes = graph["functions"][0]["nodes"]

                def node(name, op, shape, **arguments):
                    result = {"type": "f64", "shape": shape}
                    return {"name": name, "op": op, "arguments": arguments, "results": [result], "layer": "noise", "file": "net.py", "line": 1}

                turned = {"dim0": 0, "dim1": 1}
                shape = [8, 4] if order == "turned" else order or [4, 8]
                there, back = (("transpose.int", turned), ("transpose.int", turned)) if order == "turned" else (
                    ("view.default", {"size": shape}), ("view.default", {"size": [4, 8]}))  # fmt: skip
                linear = {"node": nodes[0]["name"]}
                nodes[1:1] = [
                    node("there", there[0], shape, self=linear, **there[1]), node("noise", "rand.default", draws, size=draws),
                    node("noised", "add.Tensor", shape, self={"node": "there"}, other={"node": "noise"}),
                    node("back", back[0], [4, 8], self={"node": "noised"}, **back[1]),
                ]  # fmt: skip
                nodes[5]["arguments"]["self"] = {"node": "back"}
                text, problems = _compiler.lower(json.dumps(graph))[:2]
                self.assertEqual(problems, [])
                (line,) = (line for line in text.splitlines() if "gpuc.random_uniform" in line)
                self.assertEqual("gpuc.has_rows" in line, has_rows)

    def test_what_is_known_of_rows(self):
        """Where graphs of two batches have said it, no extent is asked."""
        for known in True, False:
            graph = Recording("mlp").graph
            loss = graph["functions"][0]
            first, rest = loss["nodes"][0]["name"], loss["nodes"][1:]
            shape = loss["nodes"][0]["results"][0]["shape"]
            place = {"layer": "noise", "file": "net.py", "line": 1}
            result = [{"type": "f64", "shape": shape}]
            noise = {"name": "noise", "op": "rand.default", "arguments": {"size": shape}, "results": result, "for_rows": known, **place}
            added = {"name": "noised", "op": "add.Tensor", "arguments": {"self": {"node": first}, "other": {"node": "noise"}}, "results": result, **place}
            rest[0]["arguments"]["self"] = {"node": "noised"}
            loss["nodes"][1:] = [noise, added, *rest]
            loss["inputs"][1]["alike"] = not known
            text, problems = _compiler.lower(json.dumps(graph))[:2]
            self.assertEqual(problems, [])
            (drawn,) = (line for line in text.splitlines() if "gpuc.random_uniform" in line)
            self.assertEqual("gpuc.has_rows" in drawn, known)
            head = next(line for line in text.splitlines() if "func.func @loss(" in line)
            self.assertEqual(head.count("gpuc.has_rows"), 1 + known)

    def test_a_sum_over_the_batch_counts_once(self):
        """However the batch is cut: parts of it add up to the sum, and not to the mean of theirs."""
        graph = Recording("mlp").graph
        for reduction, is_sum in ((1, False), (2, True)):
            (loss,) = (node for node in graph["functions"][0]["nodes"] if node["op"].startswith("cross_entropy"))
            loss["arguments"]["reduction"] = reduction
            text, problems = _compiler.lower(json.dumps(graph))[:2]
            self.assertEqual(problems, [])
            self.assertEqual("gpuc.counts_once" in text, is_sum)

    def problems(self, change):
        graph = Recording("mlp").graph
        change(graph["functions"][0]["nodes"])
        return _compiler.lower(json.dumps(graph))[1]

    def test_an_op_that_is_not_there(self):
        def change(nodes):
            nodes[0].update(op="fft_fft.default", layer="fc1", file="net.py", line=7)
            nodes[1].update(op="special_i0.default", layer="", file="net.py", line=8)

        self.assertEqual(self.problems(change), [("fft_fft.default is not supported", "fc1", "net.py", 7),
                                                 ("special_i0.default is not supported", "", "net.py", 8)])  # fmt: skip

    def test_an_argument_that_is_not_known(self):
        (problem,) = self.problems(lambda nodes: nodes[0]["arguments"].update(mode="fast"))
        self.assertEqual(problem[0], "linear.default: argument 'mode' is not supported")

    def test_a_type_that_pytorch_does_not_have(self):
        (problem,) = self.problems(lambda nodes: nodes[0]["results"][0].update(shape=[4, 9]))
        self.assertEqual(problem[0], "linear.default: gives [4, 8] of f64 where PyTorch has [4, 9] of f64")

    def test_what_the_compiler_says_has_its_place(self):
        """As gpuc-compile says it, and as data."""
        text = """func.func @predict(%x: tensor<?x3xf32>) -> tensor<?x2xf32> {
  %y = gpuc.neg %x : tensor<?x3xf32> loc("fc1"("net.py":7:0))
  return %y : tensor<?x2xf32>
}
"""
        with self.assertRaises(gpuc.Error) as raised:
            _compiler.compile(text, "net", [])
        (problem,) = raised.exception.problems
        self.assertRegex(str(raised.exception), r"^net:3:10: .*tensor<\?x2xf32>")
        self.assertEqual((problem.file, problem.line, problem.layer), ("net", 3, ""))
        self.assertIn("tensor<?x2xf32>", problem.text)
        fine = text.replace("-> tensor<?x2xf32>", "-> tensor<?x3xf32>").replace("y : tensor<?x2xf32>", "y : tensor<?x3xf32>")
        fine = fine.replace("?", "4") + "func.func private @left(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n"
        ((warning, _, file, line),) = _compiler.compile(fine, "net", [])[2]
        self.assertIn("left", warning)
        self.assertEqual((file, line), ("net", 5))

    def test_a_derivative_of_nothing(self):
        graph = json.loads((INPUTS / "derived.json").read_text())["graph"]
        derivatives = [node for node in graph["functions"][0]["nodes"] if node["op"] == "gpuc.gradient.default"]
        for changed in ({"outputs": [], "seeds": []}, {"seeds": []}):
            derivatives[0]["arguments"].update(changed)
            _, problems = _compiler.lower(json.dumps(graph))
            self.assertIn("gpuc.gradient.default: takes outputs, and for each of them a seed or None", str(problems))

    def test_a_recording_that_is_none(self):
        for text, error in (("{", "parse error"), ("{}", "'name' is missing")):
            with self.assertRaisesRegex(gpuc.Error, error):
                _compiler.lower(text)


class Documented(unittest.TestCase):
    def test_the_table_of_ops(self):
        """docs/python.md lists the ops that are lowered, and says how many."""
        page = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text()
        known = sorted({name.split(".")[0] for name, _ in _compiler.known_ops() if not name.startswith("gpuc.")})
        rows = page.split("## Which ops")[1].split("\n## ")[0]
        listed = sorted(word.strip("`") for word in rows.replace(",", " ").split() if word.startswith("`"))
        self.assertEqual(listed, known)
        self.assertIn(f"{len(known)} ops of PyTorch", rows)


if __name__ == "__main__":
    unittest.main()
