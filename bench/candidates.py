"""The processes that are compared: one for each candidate and number of threads, from the first to the last round of a cell.

A worker first says in one line of JSON what it is: {"version", "form"}. It then answers `losses N` with the list of the
losses of the first N steps, and `round SECONDS` with a list of µs a step, one number for each chunk of steps of a round
that takes so long. It ends with its input.
"""

import json
import os
import subprocess


class CandidateError(Exception):
    """A candidate that does not do its part; one line."""


class Worker:
    def __init__(self, name, threads, command, log, environment=None):
        self.name, self.threads, self.log = name, threads, log
        self.stderr = open(log, "w+", encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, text=True,
                                        start_new_session=True,  # a group of its own for the kernel's scheduler: see prioritise
                                        env={**os.environ, "OMP_NUM_THREADS": str(threads), **(environment or {})})
        self.facts = None

    def start(self):
        """Returns when the worker is ready: it has compiled, and chosen its form."""
        self.facts = self.read()

    def ask(self, verb, number):
        try:
            self.process.stdin.write(f"{verb} {number}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: read() says how
        return self.read()

    def read(self):
        line = self.process.stdout.readline()
        try:
            return json.loads(line)
        except ValueError:
            self.process.kill()
            self.process.wait()
            self.stderr.seek(0)
            words = [text.strip() for text in self.stderr if text.strip()] or [f"it answered '{line.strip()}'"]
            raise CandidateError(f"{self.name} with {self.threads} threads: {words[-1]}") from None

    def prioritise(self, nice):
        """All its threads; those that it starts later inherit it. Where Linux shares time out to sessions first
        (sched_autogroup), a priority counts only within one: then the session needs it too."""
        process = f"/proc/{self.process.pid}"
        try:
            for task in os.listdir(process + "/task"):
                os.setpriority(os.PRIO_PROCESS, int(task), nice)
            if os.path.exists(process + "/autogroup"):
                with open(process + "/autogroup", "w", encoding="ascii") as file:
                    file.write(str(nice))
        except PermissionError:
            raise CandidateError(f"--nice={nice} is for root alone") from None

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.stderr.close()


def differing(losses, reference, tolerance):
    """The largest relative difference of two lists of losses; raises if it is above the tolerance."""
    if len(losses) != len(reference):
        raise CandidateError(f"{len(losses)} losses where {len(reference)} were asked for")
    worst = 0.0
    for step, (loss, expected) in enumerate(zip(losses, reference), 1):
        difference = abs(loss - expected) / abs(expected)
        if not difference <= tolerance:  # NaN is not either
            raise CandidateError(f"its loss of step {step} is {loss:.7g}, gpuc's {expected:.7g}: {difference:.1e} apart, "
                                 f"and no more than {tolerance:g} is allowed")
        worst = max(worst, difference)
    return worst
