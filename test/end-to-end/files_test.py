"""Whatever happens to the files of a run, and to the process itself: one line on stderr and status 1, no file half written, none
lost. Outputs that are inputs, through links; stdout full, closed or gone; limits on size, memory and threads; a file that is cut
while it is read; files of another kind."""

import gzip
import itertools
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import unittest

from gpuc_tools import BIN, ToolTest, is_sanitized, sha256
from tensor_files import write_npy, write_safetensors

ROWS, PIXELS = 100, 28 * 28
IMAGES = struct.pack(">HBBIII", 0, 8, 3, ROWS, 28, 28)
LABELS = struct.pack(">HBBI", 0, 8, 1, ROWS)


def is_open_to_nobody():
    """Whether the tools can be run by someone whom limits on processes bind: not by root."""
    folders = [os.path.realpath(BIN)]
    while folders[-1] != "/":
        folders.append(os.path.dirname(folders[-1]))
    return os.getuid() != 0 or all(os.stat(folder).st_mode & 0o1 for folder in folders)


class Files(ToolTest):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.mkdtemp(prefix="gpuc-files-")
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        maker = cls("make")
        maker.folder = cls.made
        maker.make()

    def setUp(self):
        super().setUp()
        for name in os.listdir(self.made):
            shutil.copy(os.path.join(self.made, name), self.folder)
        self.write("kept", "what stood here before")

    def make(self):
        self.gpuc("gpuc-model", "mlp", "hidden=16", "-o", "model.mlir")
        self.gpuc("gpuc-compile", "model.mlir", "-o", "model.plan")
        self.gpuc("gpuc-model", "gpt2", "layers=1", "width=8", "heads=2", "vocabulary=128", "length=8", "-o", "text.mlir")
        self.gpuc("gpuc-compile", "text.mlir", "--batch=1", "-o", "text.plan")
        self.gpuc("gpuc-run", "text.plan", "--entry=init", "--save-variables=text.safetensors")
        self.write("good-images-idx3-ubyte", IMAGES + bytes(ROWS * PIXELS))
        self.write("good-labels-idx1-ubyte", LABELS + bytes(ROWS))
        self.write("buffers.csv", "id,lower,upper,size\na,0,3,4\n")
        write_npy(self.path("x.npy"), "ui8", [64, 1, 28, 28], bytes(64 * PIXELS))
        self.gpuc("gpuc-run", "model.plan", "--entry=init", "--save-variables=good.safetensors")

    def files(self):
        return {name: os.path.isdir(self.path(name)) or sha256(self.path(name)) for name in os.listdir(self.folder)}

    def start(self, *command, **keys):
        keys = {"cwd": self.folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keys}
        return subprocess.Popen([os.path.join(BIN, command[0]), *command[1:]], **keys)

    def ends_in_one_line(self, message, *command, status=1, **keys):
        """`message` is a regular expression for what follows `error: `; no file is changed or made."""
        with self.subTest(" ".join(command)):
            before = self.files()
            process = self.start(*command, **keys)
            error = process.communicate(timeout=self.timeout_s)[1].decode()
            first = "mlp on .*\n" if "--metrics=-" in command else ""  # what people read goes to stderr then
            self.assertRegex(error, f"\\A{first}error: {message}\n\\Z")
            self.assertEqual(process.returncode, status, error)
            self.assertEqual(self.files(), before)

    # What every tool prints on stdout.
    PRINTS = (["gpuc-inspect", "model.plan"], ["gpuc-inspect", "model.plan", "--json"], ["gpuc-inspect", "model.plan", "--html=-"],
              ["gpuc-run", "model.plan", "--entry=predict"], ["gpuc-run", "model.plan", "--entry=predict", "--json"],
              ["gpuc-run", "--list-devices"], ["gpuc-train", "model.plan", "--data=idx:good"],
              ["gpuc-train", "model.plan", "--data=idx:good", "--metrics=-", "--log-every=0"],
              ["gpuc-generate", "text.plan", "--variables=text.safetensors", "--prompt=a", "--tokens=3"],
              ["gpuc-compile", "model.mlir", "-o", "-"], ["gpuc-compile", "model.mlir", "--emit=plan", "-o", "-"],
              ["gpuc-compile", "model.mlir", "-o", "/dev/null", "--report=-"],
              ["gpuc-model", "mlp"], ["gpuc-model", "mlp", "--summary"], ["gpuc-model", "--list"],
              ["gpuc-place-buffers", "--input=buffers.csv", "--output=-"],
              *([tool, flag] for tool in ("gpuc-inspect", "gpuc-run", "gpuc-train", "gpuc-generate", "gpuc-compile", "gpuc-model",
                                          "gpuc-import-onnx", "gpuc-place-buffers", "gpuc-calibrate", "gpuc-simulate") for flag in ("--help", "--version")))

    def test_stdout_that_is_full(self):
        for command in self.PRINTS:
            with open("/dev/full", "wb") as full:
                self.ends_in_one_line("cannot write stdout: No space left on device", *command, stdout=full)

    def test_stdout_that_is_closed(self):
        """No file that is opened takes its number: what is printed would go into it."""
        for command in self.PRINTS:
            self.ends_in_one_line("cannot write stdout: Bad file descriptor", *command, stdout=None, preexec_fn=lambda: os.close(1))
        for command in (["gpuc-train", "model.plan", "--data=idx:good", "--save-variables=saved", "--checkpoint-dir=run"],
                        ["gpuc-run", "model.plan", "--entry=predict", "--save-variables=saved", "--output-dir=out"]):
            process = self.start(*command, stdout=None, preexec_fn=lambda: os.close(1))
            self.assertEqual(process.communicate()[1], b"error: cannot write stdout: Bad file descriptor\n")
            self.assertEqual(process.returncode, 1)
            for name in os.listdir(self.folder):
                if os.path.isfile(self.path(name)):
                    with open(self.path(name), "rb") as file:
                        self.assertFalse(re.search(rb"samples/s|arena  ", file.read()), name)
            self.gpuc("gpuc-run", "model.plan", "--entry=predict", "--variables=saved")  # it was saved all the same

    def test_all_descriptors_closed(self):
        def close():
            for number in (0, 1, 2):
                os.close(number)

        before = self.files()
        for command in self.PRINTS:
            process = self.start(*command, stdin=None, stdout=None, stderr=None, preexec_fn=close)
            self.assertEqual(process.wait(self.timeout_s), 1, command)
            self.assertEqual(self.files(), before)

    def test_readers_that_go_away(self):
        """Training goes on; any other tool ends without a word, as programs do that write into a pipe, or says so."""
        for command in self.PRINTS:
            with self.subTest(" ".join(command)):
                reader, writer = os.pipe()
                os.close(reader)
                process = self.start(*command, stdout=writer)
                os.close(writer)
                error = process.communicate()[1].decode()
                if command[0] == "gpuc-train" and "--metrics=-" not in command and len(command) > 2:
                    self.assertEqual((process.returncode, error), (0, ""))
                else:
                    first = error.split("error: ")[0] if "--metrics=-" in command else ""
                    self.assertIn((process.returncode, error),
                                  ((-signal.SIGPIPE, ""), (1, first + "error: cannot write stdout: Broken pipe\n")))

    def test_a_limit_on_the_size_of_files(self):
        """Its signal ends a process that does not mind it."""
        # In bytes: of the weights, more than the machine code takes, which is mapped from a file too.
        for file, most, *command in (
                ("new.plan|.*kernels.a", 1000, "gpuc-compile", "model.mlir", "--no-cache", "-o", "new.plan"),
                ("new", 1000, "gpuc-model", "mlp", "-o", "new"), ("new", 1000, "gpuc-inspect", "model.plan", "--html=new"),
                ("new", 60000, "gpuc-run", "model.plan", "--entry=init", "--save-variables=new"),
                ("kept", 60000, "gpuc-run", "model.plan", "--entry=init", "--save-variables=kept"),
                ("new", 60000, "gpuc-train", "model.plan", "--data=idx:good", "--log-every=0", "--save-variables=new")):
            with open(os.devnull, "wb") as null:
                self.ends_in_one_line(f".*cannot write (.*/)?({file}): File too large", *command, stdout=null,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))

    @unittest.skipIf(is_sanitized(), "a sanitizer needs more addresses than a limit leaves")
    def test_too_little_memory(self):
        """Under whatever limit: the work is done, or there is one line."""
        commands = (["gpuc-inspect", "model.plan"], ["gpuc-run", "model.plan", "--entry=train_step"],
                    ["gpuc-train", "model.plan", "--data=idx:good", "--log-every=0"], ["gpuc-compile", "model.mlir", "--no-cache", "-o", "/dev/null"],
                    ["gpuc-generate", "text.plan", "--variables=text.safetensors", "--prompt=a", "--tokens=1"], ["gpuc-model", "mlp", "-o", "/dev/null"],
                    ["gpuc-place-buffers", "--input=buffers.csv", "--output=/dev/null"])
        failed = set()
        # From 340 to 410 gpuc-compile's threads and its linker meet the limit.
        limits = (48, 80, 120, 200, 260, 300, 340, 350, 400, 405, 410, 450, 500, 600)
        for command, mebibytes in itertools.product(commands, limits):
            with self.subTest(" ".join(command), mebibytes=mebibytes):
                limit = mebibytes << 20
                process = self.start(*command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                error = process.communicate(timeout=self.timeout_s)[1].decode()
                if "error while loading shared libraries" in error:
                    continue  # it never began
                self.assertIn(process.returncode, (0, 1), error)
                if process.returncode == 1:
                    self.assertRegex(error, r"\Aerror: [^\n]+\n\Z")
                    failed.add(command[0])
        self.assertTrue(failed, "no limit was too small: the test proves nothing")

    @unittest.skipIf(is_sanitized(), "a sanitizer's frames are larger")
    def test_a_stack_that_is_small(self):
        for kibibytes in (64, 256):
            limit = (kibibytes << 10,) * 2
            for command in (["gpuc-run", "model.plan", "--entry=train_step"], ["gpuc-train", "model.plan", "--data=idx:good", "--log-every=0"],
                            ["gpuc-generate", "text.plan", "--variables=text.safetensors", "--prompt=a", "--tokens=1"]):
                self.ends_in_one_line("(.*: )?this thread has a stack of [0-9]+ KiB, and .* up to 512: give it more .*", *command,
                                      preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_STACK, limit))

    @unittest.skipUnless(is_open_to_nobody(), "nobody but root may run the tools where they lie")
    def test_threads_that_cannot_be_made(self):
        def few():
            if os.getuid() == 0:  # whom the limit does not bind
                os.setgid(65534)
                os.setuid(65534)
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

        os.chmod(self.folder, 0o777)
        for command in (["gpuc-run", "model.plan", "--entry=predict", "--threads=3"],
                        ["gpuc-train", "model.plan", "--data=idx:good", "--threads=1", "--workers=2"],
                        ["gpuc-train", "model.plan", "--data=idx:good", "--threads=3", "--workers=0"],
                        ["gpuc-generate", "text.plan", "--variables=text.safetensors", "--prompt=a", "--tokens=1", "--threads=2"],
                        ["gpuc-compile", "model.mlir", "--no-cache", "--threads=3", "-o", "new.plan"]):
            self.ends_in_one_line("(.*: )?cannot start (a thread|loader worker 0): .*; lower --(threads|workers).*", *command, preexec_fn=few,
                                  # LeakSanitizer looks from a process of its own, which it cannot make either.
                                  env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})

    def test_a_signal_while_files_are_read(self):
        """Nothing is there to be finished: a pipe that nobody writes into is no reason to go on waiting."""
        os.mkfifo(self.path("pipe"))
        for flags in (["pipe", "--data=synthetic:size=64"], ["model.plan", "--data=synthetic:size=64", "--variables=pipe"]):
            for sent in (signal.SIGINT, signal.SIGTERM):
                process = subprocess.Popen([os.path.join(BIN, "gpuc-train"), *flags], cwd=self.folder)
                self.addCleanup(process.kill)
                with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                    while not any(line.startswith("SigCgt:") and int(line.split()[1], 16) >> (sent - 1) & 1 for line in status):
                        status.seek(0)
                process.send_signal(sent)
                self.assertEqual(process.wait(timeout=60), 130)

    def test_files_that_are_cut_while_they_are_read(self):
        """A mapped file's bytes behind its new end are no longer there."""
        write_npy(self.path("x.npy"), "ui8", [64000, PIXELS], bytes(64000 * PIXELS))
        write_npy(self.path("labels.npy"), "i32", [64000], [0] * 64000)
        self.write("long.txt", b"some text " * 500000)
        for name, *command in (
                ("x.npy", "gpuc-train", "model.plan", "--data=npy:x=x.npy,labels=labels.npy", "--epochs=1000000"),
                ("long.txt", "gpuc-train", "text.plan", "--data=text:long.txt", "--epochs=1000000")):
            process = self.start(*command, "--log-every=1")
            for _ in range(3):
                process.stdout.readline()
            os.truncate(self.path(name), 100)
            process.stdout.close()
            error = process.stderr.read().decode()
            process.stderr.close()
            self.assertEqual((process.wait(self.timeout_s), error), (1, f"error: {name}: cut short while it was read\n"))

    @unittest.skipIf(is_sanitized(), "a sanitizer needs more addresses than a limit leaves")
    def test_a_packed_file_is_read_as_far_as_its_header_says(self):
        def low():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        zeros = gzip.compress(bytes(1 << 24), 9)
        for name, begin in (("images-idx3-ubyte", IMAGES + bytes(ROWS * PIXELS)), ("labels-idx1-ubyte", LABELS + bytes(ROWS))):
            for good in ("images-idx3-ubyte", "labels-idx1-ubyte"):
                shutil.copy(self.path("good-" + good), self.path("bomb-" + good))
            os.remove(self.path("bomb-" + name))
            self.write(f"bomb-{name}.gz", gzip.compress(begin) + zeros * 200)  # 3.1 GiB in members
            self.ends_in_one_line(rf"bomb-{name}\.gz: too long: its header says .*, which makes \d+ bytes, but more follow",
                                  "gpuc-train", "model.plan", "--data=idx:bomb", preexec_fn=low)
            os.remove(self.path(f"bomb-{name}.gz"))

    def test_outputs_that_are_inputs(self):
        """By their name, another spelling, a link of either kind."""
        os.mkdir(self.path("folder"))
        for name in ("x.npy", "good.safetensors", "model.plan", "model.mlir", "buffers.csv", "good-images-idx3-ubyte"):
            os.link(self.path(name), self.path("folder/hard-" + name))
            os.symlink("../" + name, self.path("folder/soft-" + name))
        os.link(self.path("x.npy"), self.path("folder/logits.npy"))
        run = ["gpuc-run", "model.plan", "--entry=predict", "--variables=good.safetensors", "--input=x=x.npy"]
        train = ["gpuc-train", "model.plan", "--data=idx:good", "--variables=good.safetensors", "--log-every=0"]
        cases = [(name, [*run, flag]) for name in ("x.npy", "good.safetensors", "model.plan")
                 for flag in ("--json=", "--profile=", "--save-variables=")]
        cases += [(name, [*train, flag]) for name in ("good-images-idx3-ubyte", "good.safetensors", "model.plan")
                  for flag in ("--profile=", "--save-variables=", "--save-trained=", "--metrics=")]
        cases += [("model.mlir", ["gpuc-compile", "model.mlir", flag]) for flag in ("--output=", "--report=")]
        cases += [("model.plan", ["gpuc-inspect", "model.plan", "--html="]),
                  ("buffers.csv", ["gpuc-place-buffers", "--input=buffers.csv", "--output="])]
        for name, command in cases:
            for spelling in (name, "./" + name, "folder/../" + name, self.path(name), "folder/hard-" + name, "folder/soft-" + name):
                self.ends_in_one_line(re.escape(f"cannot write {spelling}: it is read, too; give the output another name"),
                                      *command[:-1], command[-1] + spelling)
        self.ends_in_one_line("cannot write folder/logits.npy: it is read, too; .*", *run, "--output-dir=folder")
        self.ends_in_one_line("cannot write folder/logits.npy: two outputs go there; .*", *run[:-1], "--output-dir=folder",
                              "--json=folder/logits.npy")
        self.ends_in_one_line("cannot write folder/new: two outputs go there; .*", *train, "--profile=folder/new", "--metrics=folder/new")

    def test_files_of_another_kind(self):
        with gzip.open(self.path("packed.gz"), "wb") as file:
            file.write(b"some text " * 1000)
        zip_entry = b"PK\3\4" + bytes(22) + struct.pack("<HH", 16, 0) + b"archive/data.pkl" + bytes(200)
        self.write("torch.pt", zip_entry)
        self.write("numpy.npz", zip_entry.replace(struct.pack("<HH", 16, 0) + b"archive/data.pkl", struct.pack("<HH", 5, 0) + b"x.npy"))
        others = {"torch.pt": r"a file of PyTorch \(\.pt\): ", "numpy.npz": r"a zip of NumPy arrays \(\.npz\): ", "packed.gz": "packed by gzip: ",
                  "x.npy": r"a NumPy array \(\.npy\): ", "good.safetensors": "a safetensors file: ", "model.plan": "a plan of gpuc: ",
                  "model.mlir": r"text of \.mlir: ", "good-images-idx3-ubyte": "an IDX file: "}
        readers = (({"good.safetensors"}, "not a safetensors file", ["gpuc-run", "model.plan", "--entry=predict", "--variables={}"]),
                   ({"good.safetensors"}, "not a safetensors file", ["gpuc-train", "model.plan", "--data=idx:good", "--variables={}"]),
                   ({"good.safetensors"}, "not a safetensors file",
                    ["gpuc-generate", "text.plan", "--variables={}", "--prompt=a", "--tokens=1"]),
                   ({"model.plan"}, "not a gpuc plan: it does not begin with 'gpucplan'", ["gpuc-run", "{}", "--entry=predict"]),
                   ({"model.plan"}, "not a gpuc plan: it does not begin with 'gpucplan'", ["gpuc-inspect", "{}"]),
                   ({"model.plan"}, "not a gpuc plan: it does not begin with 'gpucplan'", ["gpuc-train", "{}", "--data=idx:good"]),
                   ({"x.npy"}, r"is not a \.npy file \(it does not begin with \\x93NUMPY\)", ["gpuc-run", "model.plan", "--entry=predict", "--input=x={}"]),
                   ({"x.npy"}, r"is not a \.npy file \(it does not begin with \\x93NUMPY\)", ["gpuc-train", "model.plan", "--data=npy:x={}"]),
                   ({"model.mlir", "good-images-idx3-ubyte"}, "not text", ["gpuc-train", "text.plan", "--data=text:{}"]),
                   ({"model.mlir", "good-images-idx3-ubyte"}, "not raw tokens", ["gpuc-train", "text.plan", "--data=tokens:{}"]),
                   ({"model.mlir"}, r"not text of \.mlir", ["gpuc-compile", "{}", "-o", "new"]),
                   ({"model.mlir", "good-images-idx3-ubyte"}, "not a CSV file", ["gpuc-place-buffers", "--input={}", "--output=new"]))
        for own, message, command in readers:
            for name, kind in others.items():
                if name not in own:
                    self.ends_in_one_line(re.escape(name) + f": {message}; it is {kind}[^\n]+", *(part.format(name) for part in command))

    def test_kills_leave_nothing_half_written(self):
        """In the middle of saves: what is there is whole, no lock stays, training goes on to the bits of a run that was left alone."""
        flags = ["model.plan", "--data=idx:good", "--seed=3", "--checkpoint-every=1", "--keep=2", "--log-every=0", "--steps=400"]
        self.gpuc("gpuc-train", *flags, "--checkpoint-dir=whole", "--save-variables=expected")
        command = ["gpuc-train", *flags, "--checkpoint-dir=run", "--resume", "--metrics=lines", "--save-variables=killed"]
        kills = 0
        for attempt in range(int(os.environ.get("GPUC_KILLS", "40"))):
            process = self.start(*command, stdout=subprocess.DEVNULL)
            time.sleep(0.03 + attempt % 7 * 0.011)
            process.kill()
            error = process.communicate()[1].decode()
            if process.returncode == 0:
                shutil.rmtree(self.path("run"))
            else:
                kills += 1
                self.assertEqual(process.returncode, -signal.SIGKILL, error)
        self.assertGreater(kills, 0)
        self.gpuc(*command)
        self.assertEqual(sha256(self.path("killed")), sha256(self.path("expected")))
        left = set(os.listdir(self.path("run")))
        self.assertEqual(left, {"latest", "step-00000399.safetensors", "step-00000400.safetensors"})


if __name__ == "__main__":
    unittest.main()
