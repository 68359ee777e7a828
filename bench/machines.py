#!/usr/bin/env python3
"""What it is worth that a machine sends once what its ranks exchange: two machines of two ranks, which are namespaces here.

    bench/machines.py 50MB 100MB 200MB [--model='mlp hidden=2048,2048 batch=4'] [--rounds=5] [--json=FILE]

For each bandwidth, bytes a second, which a token bucket at each end of a virtual cable lets through, in turn: four ranks that each send the
other machine all by themselves, as they do where those of a machine do not follow one another, the same four machine by machine, and four of
one machine. One thread each; a number is the median of a round's steps but the first ones, and of the rounds the median. All must train to
the same bits. `link` is what the bytes that a step sends at one end take by the bandwidth. Needs root.
"""

import argparse
import hashlib
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

from rows import write_rows

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.environ.get("GPUC_BIN", os.path.join(SOURCE, "build", "bin"))
UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}
ADDRESSES = ("10.77.20.1", "10.77.20.2")
STEPS, WARM = 8, 2
OWN = ("unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child")
ORDERS = {"itself": ((0, 2), (1, 3)), "machine": ((0, 1), (2, 3))}  # the ranks of each machine

# Waits for its end of the cable; then two ranks, and, when both machines are done, what went out of its end.
MACHINE = """
read -r end address bandwidth first second
ip link set lo up && ip addr add "$address/24" dev "$end" && ip link set "$end" up || exit 1
tc qdisc add dev "$end" root tbf rate "$bandwidth" burst 256kb latency 200ms || exit 1
RANK=$first LOCAL_RANK=0 "$@" & other=$!
RANK=$second LOCAL_RANK=1 "$@"; status=$?
wait $other || status=$?
echo done && read -r _
ip -s -j link show dev "$end"
read -r _
exit $status
"""


def bytes_per_second(bandwidth):
    number, unit = re.fullmatch(r"([\d.]+)([KMG]B)", bandwidth).groups()
    return float(number) * UNITS[unit]


def own_network(process):
    """Waits until the process has one."""
    ours = os.readlink("/proc/self/ns/net")
    while os.readlink(f"/proc/{process.pid}/ns/net") == ours:
        if process.poll() is not None:
            raise SystemExit("no network namespace: this needs root")
        time.sleep(0.001)


class Bench:
    def __init__(self, folder, model):
        self.folder, self.bits = folder, {}
        self.run("gpuc-model", *model.split(), "-o", "model.mlir")
        self.run("gpuc-compile", "model.mlir", "--data-parallel", "-o", "model.plan")
        self.sent = {name: self.count(order) for name, order in ORDERS.items()}

    def run(self, tool, *arguments):
        subprocess.run([os.path.join(BIN, tool), *arguments], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def command(self, steps, *flags):
        return [os.path.join(BIN, "gpuc-train"), "model.plan", "--data=synthetic:size=8192", f"--steps={steps}", "--threads=1",
                "--log-every=0", "--metrics=metrics.jsonl", "--save-variables=saved", *flags]

    def step(self, steps):
        """Of the run that has ended."""
        with open(os.path.join(self.folder, "saved"), "rb") as file:
            bits = hashlib.sha256(file.read()).hexdigest()
        if self.bits.setdefault(steps, bits) != bits:
            raise SystemExit("not all have trained to the same bits")
        path = os.path.join(self.folder, "metrics.jsonl")
        with open(path, encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        os.remove(path)
        return statistics.median([event["compute_us"] for event in events if event["event"] == "step"][WARM:]) / 1e3

    def on_one(self):
        self.run(*[os.path.basename(word) if number == 0 else word for number, word in enumerate(self.command(STEPS, "--ranks=4"))])
        return self.step(STEPS)

    def count(self, order):
        """By the busier machine, bytes a step."""
        few, many = (self.on_two(order, "1GB", steps)[1] for steps in (STEPS // 2, STEPS))
        return (many - few) / (STEPS - STEPS // 2)

    def on_two(self, order, bandwidth, steps=STEPS):
        """A step, and the bytes that went out of the busier machine."""
        environment = {**os.environ, "WORLD_SIZE": "4", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29500"}
        machines = [subprocess.Popen([*OWN, "sh", "-c", MACHINE, "sh", *self.command(steps)],
                                     cwd=self.folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True) for _ in ADDRESSES]
        for machine in machines:
            own_network(machine)
        ends = [f"end{machine.pid}" for machine in machines]
        subprocess.run(["ip", "link", "add", ends[0], "netns", str(machines[0].pid), "type", "veth", "peer", "name", ends[1], "netns",
                        str(machines[1].pid)], check=True)
        for machine, end, address, ranks in zip(machines, ends, ADDRESSES, order):
            machine.stdin.write(f"{end} {address} {int(8 * bytes_per_second(bandwidth))}bit {ranks[0]} {ranks[1]}\n")
            machine.stdin.flush()
        sent = []
        for machine in machines:
            while (said := machine.stdout.readline()) != "done\n":
                if not said:
                    raise SystemExit(machine.stderr.read())
        for machine in machines:
            machine.stdin.write("\n")
            machine.stdin.flush()
            sent.append(json.loads(machine.stdout.readline())[0]["stats64"]["tx"]["bytes"])
        for machine in machines:
            _, errors = machine.communicate("\n")
            if machine.returncode != 0:
                raise SystemExit(errors)
        return self.step(steps), max(sent)

    def measure(self, bandwidth, rounds):
        found = {"one": [], **{name: [] for name in ORDERS}}
        for _ in range(rounds):
            found["one"].append(self.on_one())
            for name, order in ORDERS.items():
                found[name].append(self.on_two(order, bandwidth)[0])
        row = {"bandwidth": bandwidth, "rounds": found, **{name: statistics.median(values) for name, values in found.items()}}
        for name in ORDERS:
            row[name + "_link"] = self.sent[name] / bytes_per_second(bandwidth) * 1e3
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bandwidths", nargs="+", help="bytes a second: 100MB, say")
    parser.add_argument("--model", default="mlp hidden=2048,2048 batch=4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, options.model)
        print("| a second | on one machine, ms | each for itself | link | machine by machine | link | ratio |\n|" + " ---: |" * 7, flush=True)
        rows = []
        for bandwidth in options.bandwidths:
            row = bench.measure(bandwidth, options.rounds)
            rows.append(row)
            print(f"| {bandwidth} | {row['one']:.0f} | {row['itself']:.0f} | {row['itself_link']:.0f} | {row['machine']:.0f} | "
                  f"{row['machine_link']:.0f} | {row['itself'] / row['machine']:.2f} |", flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f}")
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
