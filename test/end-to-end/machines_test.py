"""Two machines, which are namespaces of the network, of host names and of processes here: ranks that a launcher starts on both train to
the bits of two on one machine, and one that dies on the other machine is missed. Needs root; skipped without, with the reason."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

from gpuc_tools import BIN, ToolTest, ranks_of, sha256

TRAIN = os.path.abspath(os.path.join(BIN, "gpuc-train"))
ADDRESSES = {"alpha": "10.77.19.1", "beta": "10.77.19.2"}
OPEN_MPI = ("{} slots=1\n", ["mpirun.openmpi", "--allow-run-as-root", "--hostfile", "{hosts}", "--mca", "plm_rsh_agent", "{agent}"])
MPICH = ("{}:1\n", ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", "{agent}", "-f", "{hosts}", "-n", "2"])
FLAGS = ["--data=synthetic:size=96", "--seed=3", "--threads=1", "--log-every=0"]


def why_not():
    """Why there can be no namespaces; empty if there can be."""
    if os.geteuid() != 0:
        return "no root, who alone makes network namespaces"
    for tool in ("ip", "unshare"):
        if not shutil.which(tool):
            return f"no {tool}: scripts/setup installs it"
    probe = subprocess.run(["ip", "netns", "add", f"gpuc-{os.getpid()}"], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", f"gpuc-{os.getpid()}"], capture_output=True, check=False)
    return f"no network namespaces here: {probe.stderr.strip()}" if probe.returncode else ""


class Machines(ToolTest):
    def setUp(self):
        super().setUp()
        self.spaces = {name: f"gpuc-{name}-{os.getpid()}" for name in ADDRESSES}
        for space in self.spaces.values():
            self.ip("netns", "add", space)
            self.addCleanup(self.ip, "netns", "del", space)
        ends = {name: f"{name}{os.getpid()}" for name in ADDRESSES}
        self.ip("link", "add", ends["alpha"], "netns", self.spaces["alpha"], "type", "veth", "peer", "name", ends["beta"], "netns",
                self.spaces["beta"])
        for name, space in self.spaces.items():
            self.ip("-n", space, "addr", "add", ADDRESSES[name] + "/24", "dev", ends[name])
            for device in ("lo", ends[name]):
                self.ip("-n", space, "link", "set", device, "up")
        self.plan = self.compile_model("mlp", "hidden=16", "dropout=0.2", "batch=4", flags=["--data-parallel"])

    def ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=20)

    def on(self, machine, *command, spaces=("--uts", "--pid", "--fork", "--mount-proc", "--kill-child")):
        """A command on a machine, which has processes of its own."""
        return ["ip", "netns", "exec", self.spaces[machine], "unshare", *spaces, "sh", "-c", f'hostname {machine}; exec "$@"', "sh", *command]

    def start(self, command, environment=None):
        return subprocess.Popen(command, cwd=self.folder, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UCX_MEM_EVENTS": "no", **(environment or {})},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def own_bits(self, ranks=2):
        saved = self.path("own.safetensors")
        self.gpuc("gpuc-train", self.plan, f"--ranks={ranks}", "--steps=6", "--save-variables=" + saved, *FLAGS)
        return sha256(saved)

    def start_by_hostfile(self, line, launcher, *flags, environment=None):
        if not shutil.which(launcher[0]):
            self.skipTest(f"no {launcher[0]}: scripts/setup installs it")
        # MPICH's UCX takes processes of one kernel for the same if they have the same number.
        spaces = {"spaces": ["--uts"]} if launcher == MPICH[1] else {}
        # In place of ssh: the host, behind what MPICH adds, and a command for its shell.
        agent = self.write("agent", "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nshift\n"
                           + shlex.join(self.on("beta", "sh", "-c", **spaces)) + " \"$*\"\n")
        os.chmod(agent, 0o755)
        hosts = self.write("hosts", "".join(line.format(address) for address in ADDRESSES.values()))
        command = [word.format(hosts=hosts, agent=agent) for word in launcher]
        return self.start(self.on("alpha", *command, TRAIN, self.plan, *FLAGS, *flags, **spaces), environment)

    def check_hostfile(self, *launched, ranks=2):
        saved = self.path("two.safetensors")
        process = self.start_by_hostfile(*launched, "--steps=6", "--save-variables=" + saved)
        said, errors = process.communicate(timeout=60)
        # OpenMPI warns of a race that it has lost to its own child, and goes on.
        errors = re.sub(r"\[.*\] plm:rsh: Warning: setpgid\(.*\) failed in parent .*\n", "", errors)
        self.assertEqual((process.returncode, errors), (0, ""), said)
        self.assertEqual(said.count("done: 6 steps"), 1, said)
        self.assertEqual(sha256(saved), self.own_bits(ranks))

    def test_a_hostfile_of_two_ranks_each(self):
        self.plan = self.compile_model("mlp", "hidden=1024", "dropout=0.2", "batch=4", flags=["--data-parallel", "--bucket-size=25MB"])
        self.check_hostfile("{} slots=2\n", OPEN_MPI[1], ranks=4)

    def test_a_hostfile_of_openmpi(self):
        self.check_hostfile(*OPEN_MPI)

    def test_a_hostfile_of_mpich(self):
        self.check_hostfile(*MPICH)

    def start_by_address(self, *flags):
        """As torchrun does, one rank on each machine."""
        shared = {"WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES["alpha"], "MASTER_PORT": "29500"}
        return [self.start(self.on(machine, TRAIN, self.plan, *FLAGS, *flags), {**shared, "RANK": str(rank), "LOCAL_RANK": "0"})
                for rank, machine in enumerate(ADDRESSES)]

    def test_an_address(self):
        saved = self.path("two.safetensors")
        for rank in self.start_by_address("--steps=6", "--save-variables=" + saved):
            _, errors = rank.communicate(timeout=60)
            self.assertEqual((rank.returncode, errors), (0, ""))
        self.assertEqual(sha256(saved), self.own_bits())

    def test_a_machine_that_knows_itself_by_another_address(self):
        """As one whose name means 127.0.1.1 to itself, and what it is reached by to others."""
        saved, ours = self.path("three.safetensors"), self.path("own.safetensors")
        places = [("alpha", "127.0.0.1"), ("alpha", "127.0.0.1"), ("beta", ADDRESSES["alpha"])]
        ranks = [self.start(self.on(machine, TRAIN, self.plan, "--steps=6", "--save-variables=" + saved, *FLAGS),
                            {"WORLD_SIZE": "3", "MASTER_ADDR": address, "MASTER_PORT": "29500", "RANK": str(rank), "LOCAL_RANK": "0"})
                 for rank, (machine, address) in enumerate(places)]
        for rank in ranks:
            _, errors = rank.communicate(timeout=60)
            self.assertEqual((rank.returncode, errors), (0, ""))
        self.gpuc("gpuc-train", self.plan, "--ranks=3", "--steps=6", "--save-variables=" + ours, *FLAGS)
        self.assertEqual(sha256(saved), sha256(ours))

    def sent(self, machine):
        """What went by its end of the cable."""
        said = subprocess.run(["ip", "-n", self.spaces[machine], "-s", "-j", "link", "show", "dev", f"{machine}{os.getpid()}"],
                              check=True, capture_output=True, text=True, timeout=20).stdout
        return json.loads(said)[0]["stats64"]["tx"]["bytes"]

    def start_two_each(self, *flags, ranks=((0, 1), (2, 3))):
        """As torchrun does, two ranks on each machine."""
        shared = {"WORLD_SIZE": "4", "MASTER_ADDR": ADDRESSES["alpha"], "MASTER_PORT": "29500"}
        both = ('first=$0 second=$1; shift; RANK=$first LOCAL_RANK=0 "$@" & other=$!; RANK=$second LOCAL_RANK=1 "$@"; status=$?; '
                'wait $other || status=$?; exit $status')
        return [self.start(self.on(machine, "sh", "-c", both, *map(str, own), TRAIN, self.plan, *FLAGS, *flags), shared)
                for machine, own in zip(ADDRESSES, ranks)]

    def test_ranks_that_take_turns_on_machines_are_warned_of(self):
        saved = self.path("two.safetensors")
        first, second = self.start_two_each("--steps=6", "--save-variables=" + saved, ranks=((0, 2), (1, 3)))
        for machine, warned in ((first, "warning: ranks of one machine do not follow one another, so that each sends other machines all "
                                 "by itself: start them machine by machine (mpirun --map-by slot, srun --distribution=block)\n"), (second, "")):
            _, errors = machine.communicate(timeout=60)
            self.assertEqual((machine.returncode, errors), (0, warned))
        self.assertEqual(sha256(saved), self.own_bits(ranks=4))

    def test_two_ranks_on_each_send_what_one_would(self):
        """Each sends the totals or the sums of its ranks once, with the bits of four ranks on one machine."""
        self.plan = self.compile_model("mlp", "hidden=1024", "dropout=0.2", "batch=4", flags=["--data-parallel", "--bucket-size=25MB"])
        gradients = 4 * (784 * 1024 + 1024 + 1024 * 10 + 10)
        saved, sent = self.path("two.safetensors"), []
        for steps in (2, 6):
            before = [self.sent(machine) for machine in ADDRESSES]
            for machine in self.start_two_each(f"--steps={steps}", "--save-variables=" + saved):
                _, errors = machine.communicate(timeout=60)
                self.assertEqual((machine.returncode, errors), (0, ""))
            sent.append([self.sent(machine) - was for machine, was in zip(ADDRESSES, before)])
        for few, many in zip(*sent):
            self.assertAlmostEqual((many - few) / 4 / gradients, 1, delta=0.1)
        self.assertEqual(sha256(saved), self.own_bits(ranks=4))

    def test_one_of_two_that_dies_on_the_other_machine_is_named(self):
        folder, key = self.path("checkpoints"), str(os.getpid())
        os.environ["GPUC_TEST_LAUNCH"] = key
        self.addCleanup(os.environ.pop, "GPUC_TEST_LAUNCH")
        first, second = self.start_two_each("--steps=100000000", "--checkpoint-dir=" + folder, "--checkpoint-every=20")
        self.wait_for_checkpoint(folder, first)
        os.kill(ranks_of(key, TRAIN)[3], signal.SIGKILL)
        for process in (first, second):
            _, errors = process.communicate(timeout=30)
            self.assertNotEqual(process.returncode, 0)
            # Who waits for it says so; who is between two collectives has it from its neighbour, and what both say is said once.
            self.assertRegex(errors, r"error: step \d+: rank ")
            self.assertRegex(errors, "rank 3 has (died|ended)")

    def wait_for_checkpoint(self, folder, process):
        while not os.path.exists(os.path.join(folder, "latest")):
            self.assertIsNone(process.poll(), "ended before the first checkpoint")
            time.sleep(0.01)

    def test_one_that_dies_on_the_other_machine(self):
        folder = self.path("checkpoints")
        first, second = self.start_by_address("--steps=100000000", "--checkpoint-dir=" + folder, "--checkpoint-every=20")
        self.wait_for_checkpoint(folder, first)
        second.kill()  # and so, by unshare, all that runs on that machine
        _, errors = first.communicate(timeout=30)
        self.assertEqual(first.returncode, 1)
        self.assertRegex(errors, r"^error: step \d+: rank 0 waits in collective \d+, but rank 1 has ended\n$")
        second.communicate(timeout=30)

    @unittest.skipUnless("GPUC_ROUNDS" in os.environ, "takes half a minute: ctest -L long")
    def test_a_machine_that_vanishes(self):
        """TCP asks for half a minute whether it is there."""
        folder = self.path("checkpoints")
        ranks = self.start_by_address("--steps=100000000", "--checkpoint-dir=" + folder, "--checkpoint-every=20")
        self.wait_for_checkpoint(folder, ranks[0])
        self.ip("-n", self.spaces["beta"], "link", "set", f"beta{os.getpid()}", "down")
        for rank, process in enumerate(ranks):
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 1)
            self.assertRegex(errors, rf"^error: step \d+: rank {rank} waits in collective \d+, but rank {1 - rank} cannot be reached: .*\n$")

    def test_one_that_dies_there_under_mpirun(self):
        folder, key = self.path("checkpoints"), str(os.getpid())
        process = self.start_by_hostfile(*OPEN_MPI, "--steps=100000000", "--checkpoint-dir=" + folder, "--checkpoint-every=20",
                                         environment={"GPUC_TEST_LAUNCH": key, "OMPI_MCA_mca_base_env_list": "GPUC_TEST_LAUNCH"})
        self.wait_for_checkpoint(folder, process)
        os.kill(ranks_of(key, TRAIN)[1], signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(errors, r"process rank 1 .* on node 10.77.19.2 exited on signal 9")
        self.assertEqual(ranks_of(key, TRAIN), {})


if __name__ == "__main__":
    if why_not():
        print("skipped:", why_not())
        sys.exit(77)
    unittest.main()
