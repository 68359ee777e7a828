"""What gpuc raises."""


class Error(Exception):
    """What cannot be compiled or run, and the cure.

    `problems` lists everything that is wrong with a module, each a `Problem`; empty for other errors.
    """

    def __init__(self, message, problems=()):
        super().__init__(message)
        self.problems = list(problems)


class RangeError(Error, IndexError):
    """A label or a token that is none of those that there are."""


class Problem:
    """One thing that is wrong with a module: what, in which layer, at which line of the user's code."""

    def __init__(self, text, layer="", file="", line=0):
        self.text, self.layer, self.file, self.line = text, layer, file, line

    def __str__(self):
        where = f"{self.file}:{self.line}: " if self.file else ""
        return where + (f"{self.layer}: " if self.layer else "") + self.text


def refuse(problems):
    """Raises them as one error, each once, and with its line if that is known of one."""
    placed = {problem.text for problem in problems if problem.file}
    problems = list({str(each): each for each in problems if each.file or each.text not in placed}.values())
    raise Error("\n".join(str(problem) for problem in problems), problems)
