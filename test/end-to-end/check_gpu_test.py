"""scripts/check-gpu, tried where there is no GPU: --dry puts the host in its place, and what is wrong is found."""

import json
import os
import stat
import unittest
import unittest.mock

from gpuc_tools import BIN, HERE, ToolTest

SCRIPT = os.path.join(HERE, "..", "..", "scripts", "check-gpu")
BUILD = os.path.dirname(os.path.abspath(BIN))


class CheckGpuTest(ToolTest):
    def script(self, *arguments):
        """Exit status, stdout and stderr."""
        return self.run_tool(SCRIPT, self.path("check"), f"--build={BUILD}", *arguments)

    def prepared(self, models="mlp,linear-regression"):
        result = self.script("--dry", f"--only={models}")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def report(self):
        with open(self.path("check/check-gpu.json")) as file:
            return json.load(file)

    def test_same_plans_agree(self):
        said = self.prepared()
        self.assertIn("27 passed, 0 failed (dry: on the host)", said)
        report = self.report()
        self.assertTrue(report["passed"])
        self.assertEqual([case["model"] for case in report["cases"]], 2 * ["linear-regression"] + 25 * ["mlp"])
        self.assertEqual([(case["ranks"], case["shard"]) for case in report["cases"][7:]],
                         [(ranks, shard) for ranks in (1, 2, 4, 8) for shard in (None, None, "optimizer", "optimizer", "gradients")])
        for case in report["cases"]:
            self.assertEqual(len(case["losses"]), 4)
            self.assertTrue(case["ranks"] or case["arena_bytes"] > 0)

    def test_random_ops_agree(self):
        self.assertIn("4 passed, 0 failed (dry: on the host)", self.prepared("products"))
        # Of other types, that is of other numbers.
        os.replace(self.path("check/ops-products-bf16.gpu.plan.gz"), self.path("check/ops-products-f16.gpu.plan.gz"))
        result = self.script("--run")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"random products +f16 .* of 16 results differ by more than 2e-03")

    def test_failed_tests_are_named(self):
        self.prepared("linear-regression")
        program = self.path("check/bin/failing_test")
        with open(program, "w") as file:
            file.write("#!/bin/sh\necho 'Running main()'\necho '[  FAILED  ] Session.Repeats (3 ms)'\nexit 1\n")
        os.chmod(program, 0o755)
        with open(self.path("check/manifest.json")) as file:
            manifest = json.load(file)
        manifest["tests"] = [{"name": "failing", "command": ["failing_test"], "environment": []}]
        with open(self.path("check/manifest.json"), "w") as file:
            json.dump(manifest, file)
        result = self.script("--run")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"test failing: Session\.Repeats: see .*failing\.log")

    def test_more_ranks_than_gpus_are_skipped(self):
        self.prepared("mlp")
        manifest = self.path("check/manifest.json")
        with open(manifest) as file:
            text = file.read()
        with open(manifest, "w") as file:
            file.write(text.replace('"target": "host"', '"target": "cuda:sm_90"'))
        with unittest.mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES=""):
            result = self.script("--run")
        self.assertEqual(result.returncode, 1)
        self.assertIn("0 passed, 5 failed, 20 skipped", result.stdout)
        self.assertRegex(result.stdout, r"4 ranks: mlp .* skipped: 4 ranks, 0 GPUs")
        self.assertRegex(result.stdout, r"2 ranks, gradients shared: mlp .* skipped: 2 ranks, 0 GPUs")
        self.assertIn("no CUDA device", result.stdout)

    def test_what_is_wrong_is_found(self):
        self.prepared()
        with open(self.path("check/manifest.json")) as file:
            manifest = json.load(file)
        cases = {case["name"]: case for case in manifest["cases"]}
        cases["mlp-f32"]["losses"][2] *= 1.001  # beyond 1e-4
        cases["mlp-fp16"]["losses"][2] *= 1.001  # within 2e-2
        os.remove(self.path("check/linear-regression-f32.plan.gz"))
        os.remove(self.path("check/linear-regression-f32.plan"))
        # A test that fails, and one that finds no GPU.
        for name, text in (("broken", "echo 1 FAILED TEST; exit 1"), ("gpuless", "echo no CUDA device: none")):
            with open(self.path(f"check/bin/{name}"), "w") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(self.path(f"check/bin/{name}"), stat.S_IRWXU)
            manifest["tests"].append({"name": name, "command": [name], "environment": []})
        with open(self.path("check/manifest.json"), "w") as file:
            json.dump(manifest, file)
        result = self.script("--run")
        self.assertEqual(result.returncode, 1)
        report = self.report()
        self.assertFalse(report["passed"])
        errors = {entry["name"]: entry["error"] for entry in report["cases"] + report["tests"] if entry["error"]}
        self.assertEqual(set(errors), {"mlp-f32", "linear-regression-f32", "broken", "gpuless"})
        self.assertIn("losses differ by 1.0e-03, at most 1e-04", errors["mlp-f32"])
        self.assertIn("linear-regression-f32.plan", errors["linear-regression-f32"])
        self.assertEqual(errors["gpuless"], "skipped: no CUDA device")

    def test_runs_that_differ_are_found(self):
        self.prepared("linear-regression")
        # The tool in its place adds a byte to what it saves, now and then.
        trainer = self.path("check/bin/gpuc-train")
        os.rename(trainer, trainer + "-real")
        with open(trainer, "w") as file:
            file.write(f"""#!/bin/sh
{trainer}-real "$@" || exit 1
for argument; do
  case $argument in --save-variables=*again*) echo >> "${{argument#*=}}" ;; esac
done
""")
        os.chmod(trainer, stat.S_IRWXU)
        self.assertEqual(self.script("--run").returncode, 1)
        self.assertEqual({case["error"] for case in self.report()["cases"]}, {"two runs end in different bits"})

    def test_steps_that_are_no_graphs_are_found(self):
        self.prepared("linear-regression")
        runner = self.path("check/bin/gpuc-run")
        os.rename(runner, runner + "-real")
        with open(runner, "w") as file:
            file.write(f"""#!/bin/sh
case "$*" in *--entry=*)
  echo "warning: program 'train_step' is launched command by command, not as CUDA graphs: cuStreamEndCapture: why" >&2 ;;
esac
{runner}-real "$@"
""")
        os.chmod(runner, stat.S_IRWXU)
        self.assertEqual(self.script("--run").returncode, 1)
        self.assertRegex(self.report()["cases"][0]["error"], r"gpuc-run: warning: .* not as CUDA graphs: cuStreamEndCapture: why")

    def test_bad_input(self):
        for arguments, wanted in ((["--run"], "check/manifest.json: make it with --prepare"),
                                  (["--only=lenet"], "error: --only=lenet names no model of the zoo and no random ops: linear-regression"),
                                  (["--build=nowhere"], "error: no nowhere/bin/gpuc-model: build first")):
            result = self.script(*arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn(wanted, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)


if __name__ == "__main__":
    unittest.main()
