"""What a person sees of gpuc.fit: a line that is drawn over on a terminal and in a notebook, a line an epoch elsewhere."""

import sys
import time

SECONDS_BETWEEN_DRAWINGS = 0.2


def clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Progress:
    def __init__(self, is_shown, epochs):
        self.is_shown, self.epochs = is_shown, epochs
        self.is_live = is_shown and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self.width = 0  # Of the line that is drawn.
        self.drawn = 0.0  # When.

    def begin(self, epoch, steps, done):
        """`steps`: how many the epoch has, None: unknown; `done`: of which as many were made before this run."""
        self.epoch, self.steps, self.done = epoch, steps, done
        self.began = time.monotonic()

    def step(self, number, loss):
        now = time.monotonic()
        if not self.is_live or now - self.drawn < SECONDS_BETWEEN_DRAWINGS:
            return
        self.drawn = now
        rate = (number - self.done) / max(now - self.began, 1e-9)
        total = f" of {self.steps}" if self.steps else ""
        left = f"  {clock((self.steps - number) / rate)} left" if self.steps else ""
        self._draw(f"epoch {self.epoch} of {self.epochs}  step {number}{total}  loss {loss:.4f}  {rate:.3g} steps/s{left}")

    def note(self, text):
        """A line that stays."""
        if self.is_shown:
            self._draw("")
            print(text, file=sys.stderr, flush=True)

    def _draw(self, text):
        if self.is_live:
            sys.stderr.write("\r" + text.ljust(self.width) + ("" if text else "\r"))
            sys.stderr.flush()
            self.width = len(text)
