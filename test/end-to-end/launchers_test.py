"""Ranks that mpirun or torchrun has started train as those that gpuc-train starts itself: the same bits of variables, one voice, and
errors that name who is lost."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from gpuc_tools import BIN, ToolTest, ranks_of, sha256
from small_zoo import MODELS
from tensor_files import write_npy

ROUNDS = int(os.environ.get("GPUC_ROUNDS", "1"))
TRAIN = os.path.abspath(os.path.join(BIN, "gpuc-train"))
# What MPI itself never gives back is not looked for, and its UCX leaves malloc to the sanitizer.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UCX_MEM_EVENTS": "no"}


class Launched:
    """What holds for all."""

    count_flag, program_flags = "-n", ()
    patience_s = 60  # in which all end when one is lost, on a machine that has much else to do
    other_statuses = ()  # that a launcher gives if ranks fail
    mixed = "1 or 2"  # where some end with the one and some with the other
    hands_statuses_on = True
    sees_who_ends = False  # while others begin MPI: it may end them then, before they have said so
    banner = r"(?!)"  # which it may write to stdout then

    def setUp(self):
        super().setUp()
        if not shutil.which(self.launcher[0]):
            self.skipTest(f"no {self.launcher[0]}: scripts/setup installs it")

    def start(self, ranks, *arguments, environment=None, program=TRAIN):
        command = [*self.launcher, self.count_flag, ranks, *self.program_flags, program, *arguments]
        return subprocess.Popen(list(map(str, command)), cwd=self.folder, env={**ENVIRONMENT, **(environment or {})},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def launch(self, *arguments, **how):
        """Exit status, stdout and stderr."""
        process = self.start(*arguments, **how)
        said, errors = process.communicate(timeout=self.timeout_s)
        return process.returncode, said, errors

    def check_bits(self, ranks, plan, *flags, own=()):
        flags = ["--data=synthetic:size=96", "--steps=6", "--seed=3", "--log-every=0", *flags]
        ours, theirs = self.path("own.safetensors"), self.path("launched.safetensors")
        self.gpuc("gpuc-train", plan, f"--ranks={ranks}", "--save-variables=" + ours, *flags)
        status, said, errors = self.launch(ranks, plan, "--save-variables=" + theirs, *flags, *own)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(said.count("done: 6 steps"), 1, said)
        self.assertEqual(sha256(ours), sha256(theirs))

    def mlp(self, *flags):
        return self.compile_model("mlp", "hidden=16", "dropout=0.2", "batch=4", flags=flags)

    def test_bits_of_ranks_that_gpuc_train_starts(self):
        self.check_bits(3, self.mlp("--data-parallel"), "--eval-data=synthetic:size=50,seed=5", own=["--ranks=3"])
        gpt2 = self.compile_model("gpt2", *MODELS["gpt2"][0], flags=["--data-parallel", "--accumulate=2", "--clip-norm=1"])
        self.check_bits(2, gpt2, own=["--ranks=all"])

    def error(self, status, *arguments, environment=None, **how):
        """The one line that gpuc-train says, the launcher's own aside."""
        at_once = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}  # OpenMPI gives ranks a second to end, which none of these needs
        return self.one_line(status, *self.launch(*arguments, environment={**at_once, **(environment or {})}, **how))

    def one_line(self, status, found, said, errors):
        lines = [line for line in errors.splitlines() if line.startswith("error: ")]
        self.assertIn(found, (status, *self.other_statuses) if status != self.mixed else (1, 2, *self.other_statuses))
        self.assertEqual((len(lines), re.sub(self.banner, "", said)), (1, ""), errors)
        return lines[0]

    def test_what_is_refused_is_said_once(self):
        plan, data = self.mlp("--data-parallel"), "--data=synthetic:size=96"
        self.assertEqual(self.error(2, 2, plan, data, "--ranks=3"), f"error: --ranks=3, but {self.name} has started 2: leave it out")
        self.assertIn("missing argument: --data=SPEC", self.error(2, 2, plan))
        self.assertIn("compiled for one rank, and 2 would each train by themselves: compile it with --data-parallel",
                      self.error(1, 2, self.compile_model("mlp", "hidden=16", "batch=5"), data))
        self.assertIn("fewer than one global batch of 12 rows", self.error(1, 3, plan, "--data=synthetic:size=10"))

    def error_of(self, plan, others, second, status=1):
        """What is said where the second of three ranks has other flags."""
        own = f"case ${self.rank_variable} in 1) set -- {second};; *) set -- {others};; esac; exec {TRAIN} {plan} --log-every=0 $@"
        return self.error(status, 3, "-c", own, program="sh")

    def test_what_ranks_do_not_have_alike(self):
        """One would come to its end, or to its evaluation, where others still train."""
        plan, data = self.mlp("--data-parallel"), "--data=synthetic:size=96"
        for one, other, what in (("--steps=3", "--steps=5", "length of training (--steps, --epochs)"),
                                 ("--epochs=2", "--epochs=1", "length of training (--steps, --epochs)"),
                                 ("", "--eval-data=synthetic:size=24", "--eval-data"),
                                 ("", "--checkpoint-dir=checkpoints", "wish for checkpoints (--checkpoint-dir, --checkpoint-every)"),
                                 ("", "--save-variables=x", "wish to save (--save-variables, --save-trained)")):  # fmt: skip
            self.assertEqual(self.error_of(plan, f"{data} {one}", f"{data} {other}"),
                             f"error: ranks 0 and 1 have another {what}: give all of them the same")  # fmt: skip
        self.assertEqual(self.error_of(plan, data, data + " --link-bandwidth=1GB"),
                         "error: ranks 0 and 1 have another --link-bandwidth or --link-latency: give all of them the same")  # fmt: skip
        self.assertEqual(sorted(each for each in os.listdir(self.folder) if not each.endswith(("lan", "mlir"))), [])

    def test_files_that_differ_under_one_name(self):
        """As where each machine has its own copy."""
        plan = self.mlp("--data-parallel")
        for rank in range(3):
            os.mkdir(self.path(str(rank)))
            write_npy(self.path(f"{rank}/x.npy"), "ui8", (24, 1, 28, 28), [0] * (24 * 784))
            write_npy(self.path(f"{rank}/y.npy"), "i32", (24,), [rank // 2] * 24)
        own = f'cd ${self.rank_variable} && exec {TRAIN} {plan} --log-every=0 '
        data, same = "npy:x=x.npy,labels=y.npy", "npy:x=../0/x.npy,labels=../0/y.npy"
        self.assertEqual(self.error(1, 3, "-c", f"{own} --data={data}", program="sh"),
                         "error: ranks 0 and 2 have another content of --data: give all of them the same")  # fmt: skip
        self.assertEqual(self.error(1, 3, "-c", f"{own} --data={same} --eval-data={data}", program="sh"),
                         "error: ranks 0 and 2 have another content of --eval-data: give all of them the same")  # fmt: skip

    def test_who_fails_alone_says_which_rank_it_is(self):
        plan, data = self.mlp("--data-parallel"), "--data=synthetic:size=96"
        self.assertEqual(self.error_of(plan, data, data + " --variables=missing"),
                         "error: rank 1: cannot open missing: No such file or directory")  # fmt: skip
        self.assertEqual(self.error_of(plan, data + " --save-variables=missing/x", data + " --save-variables=y"),
                         "error: cannot write missing/x: missing is not a folder")  # fmt: skip
        said = self.error_of(plan, data, data + " --stepz=3", status=self.mixed)
        self.assertEqual(said, "error: rank 1: unknown flag --stepz; did you mean --steps?")

    def test_who_ends_without_having_come_is_named(self):
        """The others would wait for ten minutes, and in MPI for ever."""
        train = f"exec {TRAIN} {self.mlp('--data-parallel')} --data=synthetic:size=96 --log-every=0"
        for missing, does in ((1, f"exec {TRAIN} --help >help"), (0, f"exec {TRAIN} --version >help"), (2, "sleep 2; exit 0")):
            if missing == 2 and self.sees_who_ends:
                continue
            own = f"case ${self.rank_variable} in {missing}) {does};; *) {train};; esac"
            with self.subTest(missing=missing):
                said = self.one_line(1, *self.launch_until_one_speaks(3, "-c", own, program="sh"))
                self.assertRegex(said, f"^error: rank {missing} has ended, and has not come to the others: all ranks have to train")

    def launch_until_one_speaks(self, *arguments, **how):
        """OpenMPI's mpirun is the first of the two in one of some ten times, and then often says nothing."""
        for _ in range(20 if self.sees_who_ends else 1):
            ended = self.launch(*arguments, **how)
            if "error: " in ended[2]:
                break
        return ended

    def test_one_rank_needs_no_other(self):
        status, said, errors = self.launch(1, self.mlp(), "--data=synthetic:size=96", environment={"LD_LIBRARY_PATH": self.folder})
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("done: 24 steps", said)

    def lose(self, lost, how, more=0, then=None):
        """What is said when rank `lost` of 3 gets a signal in the middle of training, some seconds after the first checkpoint; it must end
        in time, with all its ranks."""
        folder, key = self.path("checkpoints"), f"{os.getpid()}-{how}"
        shutil.rmtree(folder, ignore_errors=True)
        # Of a second OpenMPI's mpirun gives ranks to end by a signal to it, a machine with much else to do takes more.
        patient = {"OMPI_MCA_odls_base_sigkill_timeout": "5"} if lost is None else {}
        process = self.start(3, self.mlp("--data-parallel"), "--data=synthetic:size=96", "--steps=100000000", "--log-every=0",
                             "--checkpoint-dir=" + folder, "--checkpoint-every=20", environment={"GPUC_TEST_LAUNCH": key, **patient})
        while not os.path.exists(os.path.join(folder, "latest")):
            self.assertIsNone(process.poll(), "ended before the first checkpoint")
            time.sleep(0.01)
        time.sleep(more)
        os.kill(ranks_of(key, TRAIN)[lost] if lost is not None else process.pid, how)
        if then:
            time.sleep(0.2)
            for rank, number in ranks_of(key, TRAIN).items():
                if rank != lost:
                    os.kill(number, then)
        said, errors = process.communicate(timeout=self.patience_s)
        if self.hands_statuses_on:
            self.assertNotEqual(process.returncode, 0)
        for _ in range(100):
            if not ranks_of(key, TRAIN):
                return said, errors
            time.sleep(0.05)
        self.fail("ranks outlive their launcher")

    def test_a_killed_rank_is_named(self):
        for round_ in range(ROUNDS):
            lost = random.Random(round_).randrange(3)
            self.check_killed(lost, self.lose(lost, signal.SIGKILL, more=round_ % 5 * 0.1)[1])

    def test_a_signal_to_the_launcher_ends_all(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            self.check_stopped(*self.lose(None, how))

    def test_a_signal_to_one_rank_ends_all(self):
        """As where one of several machines has to end."""
        self.check_stopped(*self.lose(2, signal.SIGTERM))

    def check_stopped(self, said, errors):
        self.assertNotIn("error: ", errors)
        step = int(re.search(r"stopped after step (\d+) of 100000000: the same command with --resume goes on from there", said)[1])
        with open(self.path("checkpoints/latest"), encoding="utf-8") as file:
            self.assertIn(f"step-{step:08}.", file.read())

    def test_a_signal_that_follows_a_loss_is_no_wish_to_stop(self):
        """Launchers end what is left with SIGTERM, be it before that has been missed."""
        said, errors = self.lose(1, signal.SIGSTOP, then=signal.SIGTERM)
        self.assertNotIn("stopped after", said)
        self.check_stopped_rank_named(errors)

    def check_stopped_rank_named(self, errors):
        self.assertRegex(errors, r"error: step \d+: rank 0 waits in collective \d+, but (rank .*)?rank 1 is stopped\n")

    def test_what_one_rank_warns_of(self):
        """The first rank says it, which has nothing to warn of itself: here of files that are not the same on each machine."""
        data = ["--data=synthetic:size=96", "--log-every=0"]
        for rank in range(3):
            os.mkdir(self.path(str(rank)))
        self.gpuc("gpuc-train", self.mlp("--optimizer=adam:lr=0.1"), "--save-variables=" + self.path("1/weights"), *data)
        shutil.copy(self.path("1/weights"), self.path("2/weights"))
        plan = self.mlp("--data-parallel", "--optimizer=sgd:lr=0.1")
        self.gpuc("gpuc-train", plan, "--ranks=3", "--save-variables=" + self.path("0/weights"), *data)
        own = f'cd ${self.rank_variable} && exec {TRAIN} {plan} {" ".join(data)} --variables=weights'
        status, _, errors = self.launch(3, "-c", own, program="sh")
        self.assertEqual(status, 0, errors)
        self.assertRegex(errors, r"^warning: rank 1 and 1 more: weights: an optimizer's state is left unused .*\n$")


class Mpi(Launched):
    name = "mpirun"

    def test_without_its_library(self):
        for name in ("libmpi.so.40", "libmpi.so.12", "libmpi.so", "libmpich.so.12"):
            self.write(name, "no library")
        said = self.error(1, 2, self.mlp("--data-parallel"), "--data=synthetic:size=96", environment={"LD_LIBRARY_PATH": self.folder})
        self.assertRegex(said, rf"^error: no {self.library}, whose launcher has started this: install its library \({self.package} on Debian\)")


class OpenMpi(Mpi, ToolTest):
    rank_variable = "OMPI_COMM_WORLD_RANK"
    sees_who_ends = True
    library, package = "OpenMPI", "libopenmpi3"
    launcher = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]

    def check_killed(self, lost, errors):
        for rank in {0, 1, 2} - {lost}:
            self.assertRegex(errors, rf"error: step \d+: rank {rank} waits in collective \d+, but (rank .*)?rank {lost} has died\n")

    def test_a_stopped_rank_is_named(self):
        for _ in range(0, ROUNDS, 4):
            said = self.lose(2, signal.SIGSTOP)[1]
            self.assertRegex(said, r"error: step \d+: rank 0 waits in collective \d+, but (rank .*)?rank 2 is stopped\n")


class Mpich(Mpi, ToolTest):
    rank_variable = "PMI_RANK"
    library, package = "MPICH", "libmpich12"
    other_statuses = range(1, 128)  # an `or` of what all ended by, if it has ended some because others had failed
    hands_statuses_on = False  # of ranks that had all ended by 130 behind a signal, once in some 500 times it gave 0
    banner = r"\n=+\n= +BAD TERMINATION(.|\n)*"
    launcher = ["mpirun.mpich"]

    def check_killed(self, lost, errors):
        """MPICH's mpirun kills the others before they can say anything, and says what it saw on stdout."""


class Torchrun(Launched, ToolTest):
    """As it starts ranks: they find one another by TCP."""

    name = "torchrun"
    rank_variable = "RANK"
    launcher = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "start_ranks.py")]

    def check_killed(self, lost, errors):
        for rank in {0, 1, 2} - {lost}:
            self.assertRegex(errors, rf"error: step \d+: rank {rank} waits in collective \d+, but (rank .*)?rank {lost} has (ended|died)\n")

    def test_who_hides_its_environment_is_not_missed(self):
        """As Python's setproctitle does, which writes a process's title over it."""
        late = ("import ctypes, os, time; begin, end = map(int, open('/proc/self/stat').read().rsplit(')', 1)[1].split()[47:49]); "
                "own = dict(os.environ); ctypes.memset(begin, 0, end - begin); time.sleep(8); os.execve(own['TRAIN'], own['ARGUMENTS'].split(), own)")
        arguments = f"{TRAIN} {self.mlp('--data-parallel')} --data=synthetic:size=96"
        own = f'[ $RANK = 1 ] && exec {sys.executable} -c "{late}"; exec {arguments}'
        status, said, errors = self.launch(2, "-c", own, program="sh", environment={"TRAIN": TRAIN, "ARGUMENTS": arguments})
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("done: 12 steps", said)

    def test_a_machine_that_is_none(self):
        """The first rank, which alone would speak, looks for nobody."""
        train = [TRAIN, self.mlp("--data-parallel"), "--data=synthetic:size=96"]
        self.assertIn("error: MASTER_ADDR=nowhere.invalid: ", self.error(1, 3, "MASTER_ADDR=nowhere.invalid", *train, program="env"))


class TheTorchrunOfPyTorch(Torchrun):
    """Where there is one: GPUC_TORCH_PYTHON is the Python of an environment that scripts/torch-environment has made."""

    launcher = [os.path.join(os.path.dirname(os.environ.get("GPUC_TORCH_PYTHON", "")), "torchrun"), "--standalone"]
    count_flag, program_flags = "--nproc-per-node", ("--no-python",)
    other_statuses = (1,)
    patience_s = 60  # it waits for half a minute before it kills one that is stopped

    def setUp(self):
        if "GPUC_TORCH_PYTHON" not in os.environ:
            self.skipTest("no PyTorch: scripts/torch-environment installs it")
        super().setUp()

    def start(self, *arguments, environment=None, **how):
        # Or it warns that it sets this.
        return super().start(*arguments, environment={"OMP_NUM_THREADS": "1", **(environment or {})}, **how)


def side_by_side(launchers):
    """Each launcher's tests in a process of their own, since most of the time they wait; whether all passed."""
    command = [sys.executable, "-B", os.path.abspath(__file__)]
    with ThreadPoolExecutor(len(launchers)) as pool:
        ended = list(pool.map(lambda each: subprocess.run([*command, each.__name__], stderr=subprocess.PIPE, text=True), launchers))
    print(*(each.stderr for each in ended), sep="\n", file=sys.stderr)
    return all(each.returncode == 0 for each in ended)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        unittest.main()
    elif not side_by_side([OpenMpi, Mpich, Torchrun, TheTorchrunOfPyTorch]):
        sys.exit(1)
