"""start_ranks.py -n N COMMAND…: starts N ranks as torchrun does, and ends them as it does: when one has failed, the others get SIGTERM."""

import os
import signal
import subprocess
import sys
import time


def port_of_this_run():
    """Below those that the kernel gives to whoever asks for any. Where somebody listens there, ranks go on to the next of eight."""
    return 12000 + os.getpid() * 8 % 9000


def main(count, command):
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port_of_this_run()),
              "LOCAL_WORLD_SIZE": str(count), "TORCHELASTIC_RUN_ID": str(os.getpid())}
    ranks = [subprocess.Popen(command, env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
             for rank in range(count)]

    def end_all(number=signal.SIGTERM):
        for rank in ranks:
            rank.send_signal(number)

    for handed_on in (signal.SIGTERM, signal.SIGINT):
        signal.signal(handed_on, lambda number, _: end_all(number))
    failed = []
    while any(rank.poll() is None for rank in ranks):
        if not failed and any(rank.poll() for rank in ranks):
            failed.append(time.monotonic())
            end_all()
        if failed and time.monotonic() - failed[0] > 10:
            for rank in ranks:
                rank.kill()
        time.sleep(0.01)
    return max(rank.returncode if rank.returncode >= 0 else 1 for rank in ranks)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[2]), sys.argv[3:]))
