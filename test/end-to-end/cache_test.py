"""Compiled kernels kept on disk: whatever the cache holds, and whoever else uses it, a plan has the same bytes; and what
is compiled follows from the kernels that differ, not from how many layers repeat them.
"""

import os
import resource
import shutil
import subprocess
import time
import unittest

from gpuc_tools import BIN, ToolTest, sha256


class CacheTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")

    def model(self, *keys):
        self.gpuc("gpuc-model", "mlp", *keys, "-o", self.path("mlp.mlir"))
        return self.path("mlp.mlir")

    def compile(self, model, *flags):
        """The plan's hash, and what was said."""
        result = self.run_tool("gpuc-compile", model, "-o", self.path("made.plan"), *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return sha256(self.path("made.plan")), result.stderr

    def cached(self, model, *flags):
        return self.compile(model, "--cache-dir=" + self.cache, *flags)[0]

    def entries(self, folder=None):
        """Path of each entry."""
        return sorted(os.path.join(parent, file) for parent, _, files in os.walk(folder or self.cache)
                      for file in files)

    def contents(self):
        result = {}
        for path in self.entries():
            with open(path, "rb") as file:
                result[path] = file.read()
        return result

    def test_no_cold_and_warm_cache_give_the_same_bytes(self):
        model = self.model()
        plan = self.compile(model, "--no-cache")[0]
        self.assertEqual(self.entries(), [])
        self.assertEqual(self.cached(model), plan)
        self.assertGreater(len(self.entries()), 5)
        self.assertEqual(self.cached(model), plan)
        self.assertEqual(self.compile(model, "--no-cache", "--threads=1")[0], plan)

    def test_a_warm_cache_is_used(self):
        model = self.model()
        self.cached(model)
        times = {path: os.stat(path).st_mtime_ns for path in self.entries()}
        inodes = {path: os.stat(path).st_ino for path in self.entries()}
        self.cached(model)
        self.assertEqual({path: os.stat(path).st_ino for path in self.entries()}, inodes, "nothing is written anew")
        for path in self.entries():
            self.assertGreater(os.stat(path).st_mtime_ns, times[path], "marked as used")

    def test_level_and_target_have_entries_of_their_own(self):
        model = self.model()
        plans = {self.cached(model, *flags) for flags in (["-O3"], ["-O1"], ["--target=host:x86-64-v3"])}
        self.assertEqual(len(plans), 3)
        for flags in (["-O3"], ["-O1"], ["--target=host:x86-64-v3"]):
            self.assertEqual(self.cached(model, *flags), self.compile(model, "--no-cache", *flags)[0], flags)

    def test_damaged_entries_are_compiled_anew(self):
        model = self.model()
        plan = self.cached(model)
        whole = self.contents()
        damages = {
            "flipped bit": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            "cut in the middle": lambda data: data[: len(data) // 2],
            "cut in the header": lambda data: data[:20],
            "empty": lambda data: b"",
            "longer": lambda data: data + b"\0",
            "of another layout": lambda data: b"X" + data[1:],
        }
        for name, damage in damages.items():
            with self.subTest(name):
                for path, data in whole.items():
                    with open(path, "wb") as file:
                        file.write(damage(data))
                self.assertEqual(self.cached(model), plan)
                self.assertEqual(self.contents(), whole, "entries are whole again")

    def test_an_entry_of_another_key_is_none(self):
        """Two entries change places: each is whole, but not what was asked for."""
        model = self.model()
        plan = self.cached(model)
        one, other = self.entries()[:2]
        os.rename(one, self.path("aside"))
        os.rename(other, one)
        os.rename(self.path("aside"), other)
        self.assertEqual(self.cached(model), plan)

    def test_several_compilers_at_once(self):
        model = self.model()
        plan = self.compile(model, "--no-cache")[0]
        running = []
        for number in range(4):
            command = [os.path.join(BIN, "gpuc-compile"), model, "-o", self.path(f"{number}.plan"),
                       "--cache-dir=" + self.cache, "--cache-size=8KiB"]  # so that they remove each other's, too
            running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        for number, process in enumerate(running):
            self.assertEqual(process.communicate(timeout=self.timeout_s)[1], "")
            self.assertEqual(process.returncode, 0)
            self.assertEqual(sha256(self.path(f"{number}.plan")), plan)

    def test_killed_compilers_leave_nothing_that_hurts(self):
        model = self.model()
        plan = self.compile(model, "--no-cache")[0]
        for delay_s in (0.02, 0.1, 0.2, 0.4):
            process = subprocess.Popen([os.path.join(BIN, "gpuc-compile"), model, "-o", self.path("killed.plan"),
                                        "--cache-dir=" + self.cache])
            time.sleep(delay_s)
            process.kill()
            process.wait()
        self.assertEqual(self.cached(model), plan)

    def test_what_a_killed_compiler_left_goes_and_foreign_files_stay(self):
        model = self.model()
        os.makedirs(os.path.join(self.cache, "ab"))
        left, fresh = (os.path.join(self.cache, "ab", "tmp-" + name) for name in ("0123", "4567"))
        foreign = [self.write("cache/notes.txt", "x" * 5000), self.write("cache/ab/notes.txt", "x" * 5000)]
        for path in (left, fresh):
            open(path, "w", encoding="utf-8").close()
        os.utime(left, (time.time() - 7200,) * 2)
        self.cached(model, "--cache-size=1KiB")
        self.assertFalse(os.path.exists(left), "two hours old: nobody is writing it")
        self.assertTrue(os.path.exists(fresh), "another compiler may be writing it")
        for path in foreign:
            self.assertTrue(os.path.exists(path))

    def test_the_limit_holds_and_the_least_recently_used_go_first(self):
        wide, narrow = self.path("wide.mlir"), self.path("narrow.mlir")
        self.gpuc("gpuc-model", "mlp", "-o", wide)
        self.gpuc("gpuc-model", "linear-regression", "-o", narrow)
        self.cached(wide)
        of_wide = set(self.entries())
        self.cached(narrow)
        of_narrow = set(self.entries()) - of_wide
        self.assertGreater(len(of_narrow), 1)
        for path in of_wide:
            os.utime(path, (1, 1))  # 1970
        self.cached(narrow)  # stores nothing: nothing is removed
        self.assertEqual(set(self.entries()), of_wide | of_narrow)
        # Room for both levels of the narrow one, and for some of the mlp's.
        limit = 2 * sum(map(os.path.getsize, of_narrow)) + sum(map(os.path.getsize, of_wide)) // 2
        self.cached(narrow, "-O1", f"--cache-size={limit}")
        self.assertLessEqual(sum(map(os.path.getsize, self.entries())), limit)
        self.assertFalse(of_wide <= set(self.entries()))
        self.assertLessEqual(of_narrow, set(self.entries()), "used later than those of the mlp")
        plan = self.compile(wide, "--no-cache")[0]
        self.assertEqual(self.cached(wide, "--cache-size=0"), plan)
        self.assertEqual(self.entries(), [])

    def test_a_folder_that_cannot_be_written_is_one_warning(self):
        model = self.model()
        plan = self.compile(model, "--no-cache")[0]
        self.write("file", "not a folder")
        made, said = self.compile(model, "--cache-dir=" + self.path("file"))
        self.assertEqual(made, plan)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertRegex(said, "warning: compiled kernels cannot be kept in '.*file': .*--no-cache")

    def test_where_the_cache_lies(self):
        model = self.model()
        command = [os.path.join(BIN, "gpuc-compile"), model, "-o", self.path("made.plan")]
        home = {key: value for key, value in os.environ.items() if key not in ("XDG_CACHE_HOME", "HOME")}
        for environment, folder in (({"XDG_CACHE_HOME": self.path("xdg"), "HOME": self.path("home")}, "xdg/gpuc/kernels"),
                                    ({"HOME": self.path("home")}, "home/.cache/gpuc/kernels"),
                                    ({"XDG_CACHE_HOME": "", "HOME": self.path("other")}, "other/.cache/gpuc/kernels"),
                                    ({}, None)):
            subprocess.run(command, env=home | environment, check=True, timeout=self.timeout_s)
            if folder:
                self.assertGreater(len(self.entries(self.path(folder))), 5, folder)
        result = self.run_tool("gpuc-compile", model, "--no-cache", "--cache-dir=here", "-o", self.path("made.plan"))
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1))

    def test_a_gpu_s_kernels_are_kept_as_well(self):
        model = self.model()
        plan = self.compile(model, "--no-cache", "--target=cuda:sm_90")[0]
        self.assertEqual(self.cached(model, "--target=cuda:sm_90"), plan)
        self.assertEqual(len(self.entries()), 1, "one module of all kernels")
        inode = os.stat(self.entries()[0]).st_ino
        self.assertEqual(self.cached(model, "--target=cuda:sm_90"), plan)
        self.assertEqual(os.stat(self.entries()[0]).st_ino, inode)

    def test_a_gpu_s_level_and_architecture_have_entries_of_their_own(self):
        model = self.model()
        kinds = (["--target=cuda:sm_90"], ["--target=cuda:sm_80"], ["--target=cuda:sm_90", "-O1"])
        self.assertEqual(len({self.cached(model, *flags) for flags in kinds}), len(kinds))
        self.assertEqual(len(self.entries()), len(kinds))

    def test_nobody_sees_half_an_entry(self):
        """A compiler that is stopped while it writes its largest entry leaves none of that name."""
        model = self.model()
        self.cached(model)
        whole = self.contents()
        shutil.rmtree(self.cache)
        limit = max(map(len, whole.values())) - 1

        def stopped_when_a_file_reaches_the_limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        result = subprocess.run([os.path.join(BIN, "gpuc-compile"), model, "-o", self.path("made.plan"),
                                 "--cache-dir=" + self.cache], preexec_fn=stopped_when_a_file_reaches_the_limit,
                                capture_output=True, timeout=self.timeout_s)
        self.assertNotEqual(result.returncode, 0)
        left = {path: data for path, data in self.contents().items() if "tmp-" not in path}
        self.assertLess(len(left), len(whole))
        for path, data in left.items():
            self.assertEqual(data, whole[path])

    def test_twice_the_layers_have_as_many_different_kernels(self):
        """Each kernel that is compiled has an entry: the time of code generation does not grow with depth. (The few
        that are more add up the parts of the gradient's norm, of which there are more.)"""
        compiled = []
        for layers in (3, 6, 12):
            self.cache = self.path(f"cache-{layers}")
            path = self.path("gpt2.mlir")
            self.gpuc("gpuc-model", "gpt2", "size=nano", f"layers={layers}", "-o", path)
            self.cached(path)
            compiled.append(len(self.entries()))
        self.assertLessEqual(compiled[1], compiled[0] + 2, compiled)
        self.assertLessEqual(compiled[2], compiled[1] + 2, compiled)


if __name__ == "__main__":
    unittest.main()
