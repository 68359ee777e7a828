"""Commands that tests of packages run."""

import subprocess


def run(*command, cwd=None, env=None):
    """What it writes to stdout; an error has all that it wrote."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
