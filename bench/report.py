"""What scripts/bench writes: a table to read (table.md), all numbers (results.json), and a picture (plot.svg)."""

import json
import os
import platform
import re
import subprocess
import time

import plot

HERE = os.path.dirname(os.path.abspath(__file__))
TITLES = {"gpuc": "gpuc", "torch-eager": "PyTorch eager", "torch-compiled": "PyTorch compiled", "jax": "JAX"}


def best(candidates, name):
    """The better number of threads of one candidate; None if it was not there."""
    return min((it for it in candidates if it["name"] == name), key=lambda it: it["us"], default=None)


def cell(case, losses, candidates):
    """A cell's entry in results.json."""
    peers = dict.fromkeys(it["name"] for it in candidates if it["name"] != "gpuc")
    result = {"case": case.name, "title": case.title, "losses": losses, "gpuc_us": best(candidates, "gpuc")["us"],
              "best_peer": None, "best_peer_us": None, "ratio": None, "target": case.target, "reached": None,
              "candidates": candidates}
    if peers:
        quickest = min((best(candidates, name) for name in peers), key=lambda it: it["us"])
        ratio = quickest["us"] / result["gpuc_us"]
        result.update(best_peer=quickest["name"], best_peer_us=quickest["us"], ratio=ratio, reached=ratio >= case.target)
    return result


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def default_folder(suffix=""):
    cpu = re.sub(r"\(r\)|\(tm\)|[^a-z0-9]+", " ", processor().lower())
    return os.path.join(HERE, "results", "-".join([time.strftime("%Y-%m-%d"), *cpu.split()]) + suffix)


def microseconds(value):
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


class Run:
    """The results of one run, as they come."""

    suffix = ""  # of the default folder's name

    def __init__(self, settings):
        self.folder = settings.folder or default_folder(self.suffix)
        self.names = ["gpuc", *settings.peers, *(name for name, _ in settings.also)]
        self.results, self.failures, self.last = [], {}, ""
        version = subprocess.run([os.path.join(settings.binaries, "gpuc-run"), "--version"], capture_output=True, text=True)
        self.facts = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "cpu": processor(), "cores": os.cpu_count(),
                      "system": platform.platform(), "gpuc": version.stdout.strip(), "rounds": settings.rounds, "nice": settings.nice,
                      "load_average_at_start": os.getloadavg()[0]}

    def add(self, result):
        self.results.append(result)
        self.last = " ".join(self.row(result).replace("**", "").split())

    def fail(self, case, reason):
        self.failures[case.name] = reason
        self.last = f"| {case.title} | no number: {reason} |"

    def line(self):
        """What there is to say of the newest cell."""
        return self.last

    def row(self, result):
        def time_of(name):
            it = best(result["candidates"], name)
            return f"{microseconds(it['us'])} ({it['threads']})"
        ratio = ["–", f"{result['target']:g}", "–"]
        if result["ratio"] is not None:
            ratio = [f"**{result['ratio']:.2f}**", f"{result['target']:g}", "yes" if result["reached"] else "no"]
        return " | ".join(["| " + result["title"], *map(time_of, self.names), *ratio]) + " |"

    def heads(self):
        return ["one step of", *(f"{TITLES.get(name, name)}, µs" for name in self.names), "ratio to the best peer", "target", "reached"]

    def table(self):
        heads = self.heads()
        lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 2) + " --- |", *map(self.row, self.results)]
        for name, reason in self.failures.items():
            lines.append(f"| {name} | no number: {reason} |" + " |" * (len(heads) - 2))
        return "\n".join(lines) + "\n"

    def footer(self):
        facts = self.facts
        versions = dict.fromkeys(it["version"] for result in self.results for it in result["candidates"] if it["name"] != "gpuc")
        worst = max((it["loss_difference"] for result in self.results for it in result["candidates"]), default=0.0)
        lines = [
            f"{facts['cpu']}, {facts['cores']} cores · {facts['gpuc']} · {' · '.join(versions) or 'no peers'} · {facts['date']}",
            f"Medians of {facts['rounds']} interleaved rounds{', at priority %d' % facts['nice'] if facts['nice'] else ''}; in parentheses the number of threads (of 1 and 2) that was the better.",
            f"Load average {facts['load_average_at_start']:.1f} at the start, {facts['load_average_at_end']:.1f} at the end"
            + (": the machine had other work, so only the ratios say something." if self.loaded() else "."),
        ]
        if versions:
            lines.append(f"All computed the same losses first: over five steps they were at most {worst:.1e} apart, relative to gpuc's.")
        return "\n".join("- " + line for line in lines) + "\n"

    def loaded(self):
        """Before the run nobody should compute; after it, the run itself shows, with at most two threads."""
        return self.facts["load_average_at_start"] > 0.5 or self.facts["load_average_at_end"] > 2.5

    def write(self):
        self.facts["load_average_at_end"] = os.getloadavg()[0]
        everything = {**self.facts, "results": self.results, "failures": self.failures}
        for name, text in (("results.json", json.dumps(everything, indent=1) + "\n"), ("table.md", self.table() + "\n" + self.footer()),
                           ("plot.svg", plot.draw(self.results, self.names, TITLES))):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
