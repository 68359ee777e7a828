"""Tests whose tasks a launcher starts as ranks: `SCRIPT rank TASK FOLDER OPTIONS`, of which each writes what comes of it as JSON."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gpuc

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "end-to-end"))

from first_difference import first_difference  # noqa: E402

RANKS = 2
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS)]


def rank_main(tasks, task, out, options):
    """What one rank does."""
    result = {}
    try:
        result = {each.__name__: each for each in tasks}[task](**json.loads(options))
    except gpuc.Error as error:
        result = {"error": str(error)}
        raise
    finally:
        pathlib.Path(out, f"{gpuc.rank()}.json").write_text(json.dumps(result))


class Launched:
    script = None  # That has the tasks.
    launcher = ()  # The command that starts ranks of what follows.
    timeout_s = 300

    def setUp(self):
        if not shutil.which(self.launcher[0]):
            self.skipTest(f"no {self.launcher[0]}")

    def check_same(self, found, expected):
        self.assertIsNone(first_difference(found, expected))

    def launch(self, task, launcher=None, **options):
        """Its status, what each rank gave, and what was said."""
        command = [*(self.launcher if launcher is None else launcher), sys.executable, "-B", self.script, "rank", task]
        environment = {**os.environ, "OMPI_MCA_odls_base_sigkill_timeout": "0", "UCX_MEM_EVENTS": "no"}
        with tempfile.TemporaryDirectory() as out:
            run = subprocess.run([*command, out, json.dumps(options)], capture_output=True, text=True, timeout=self.timeout_s, env=environment)
            results = [json.loads(each.read_text()) for each in sorted(pathlib.Path(out).iterdir())]
        return run.returncode, results, run.stderr
