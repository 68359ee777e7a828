"""Writes selection_cases.json: random blocks of up to 60 commands, limits on their memory, and the least time that it takes to
compute values again within each.

    python3 selection_reference.py [GRAPHS [SEED]] > selection_cases.json

Needs NumPy and SciPy, whose milp is HiGHS. With other numbers than those of the file it judges other blocks, for
selection_test with GPUC_SELECTION_CASES. What a choice costs is written down here once more, from what BlockGraph.h says of it
and from nothing else: as a simulation, and as an integer program. In that, between two commands of the block stand those that
run again before the second; in which order hangs on what is dropped, so of their own memory it only knows what holds in any
order. What it finds is simulated: a choice that exceeds its limit there is forbidden, and the program solved again.
"""

import json
import random
import sys

import numpy
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

LIMITS = 3  # for each block
MOST_COMMANDS = 60
MOST_TRIED = 11  # values, of which all choices are compared with what the program finds


class Block:
    def __init__(self, ops, sizes, droppable):
        self.ops, self.sizes, self.droppable = ops, sizes, droppable
        self.producer = {value: number for number, op in enumerate(ops) for value in op["writes"]}

    def readers(self, value, backward):
        return [time for time, op in enumerate(self.ops) if value in op["reads"] and op["backward"] == backward]

    def again(self):
        """The ops that may run again."""
        return sorted({self.producer[value] for value in range(self.droppable)})


# ---------------------------------------------------------------------------------------------------------------------
# What a choice costs
# ---------------------------------------------------------------------------------------------------------------------


def run(block, kept):
    """Peak and time of a choice: names of values are numbers, and (number,) those of copies."""
    rows, done, spent = [], set(), 0

    def put(op, again):
        nonlocal spent
        copies = again or op["backward"]
        for value in op["reads"]:
            number = block.producer[value]
            if copies and value < block.droppable and value not in kept and number not in done:
                done.add(number)
                spent += block.ops[number]["ns"]
                put(block.ops[number], True)
        reads = [(value,) if copies and value < block.droppable and value not in kept else value for value in op["reads"]]
        rows.append((reads, [(value,) if again else value for value in op["writes"]], op["overwrites"]))

    for op in block.ops:
        put(op, False)
    first, last = {}, {}
    for time, (reads, writes, _) in enumerate(rows):
        for name in writes:
            first[name] = last[name] = time
        for name in reads:
            last[name] = time
    size = lambda name: block.sizes[name[0] if isinstance(name, tuple) else name]
    peak = 0
    for time, (_, _, overwrites) in enumerate(rows):
        live = sum(size(name) for name in first if first[name] <= time <= last[name])
        begin = sum(size(name) for name in first if first[name] == time)
        end = sum(size(name) for name in last if last[name] == time)
        peak = max(peak, live - (min(begin, end) if overwrites else 0))
    return peak, spent


# ---------------------------------------------------------------------------------------------------------------------
# Random blocks
# ---------------------------------------------------------------------------------------------------------------------


def random_block(draw):
    """Forward ops, each of which reads some before it; then their gradients, the last first."""
    forward = draw.randrange(5, 27)
    sizes, ops, writers = [], [], []
    widths = [draw.choice([1, 2, 4, 8, 16]) * 64 for _ in range(3)]
    for number in range(forward):
        before = list(range(len(sizes)))
        near = before[-4:]
        reads = {draw.choice(near if draw.random() < 0.8 else before) for _ in range(draw.choice([1, 1, 2, 3]))} if before else set()
        writes = list(range(len(sizes), len(sizes) + (2 if draw.random() < 0.15 else 1)))
        sizes += [draw.choice(widths) if draw.random() < 0.7 else 64 * draw.randrange(1, 33) for _ in writes]
        writers.append((sorted(reads), writes))
        ops.append({"reads": sorted(reads), "writes": writes, "ns": draw.choice([200, 300, 1000, 5000, draw.randrange(200, 20000)]),
                    "backward": False, "overwrites": draw.random() < 0.5})
    droppable = len(sizes)

    def add(reads, count, size_of):
        writes = list(range(len(sizes), len(sizes) + count))
        sizes.extend(size_of(index) for index in range(count))
        ops.append({"reads": sorted(set(reads)), "writes": writes, "ns": draw.randrange(200, 20000), "backward": True,
                    "overwrites": draw.random() < 0.5})
        return writes

    gradients = {}
    for number in reversed(range(forward)):
        reads, writes = writers[number]
        saved = [value for value in reads + writes if draw.random() < 0.45]
        incoming = [gradients[value] for value in writes if value in gradients]
        for value, made in zip(reads, add(saved + incoming, len(reads), lambda index, reads=reads: sizes[reads[index]])):
            if value in gradients and len(ops) + number < MOST_COMMANDS:
                made, = add([gradients[value], made], 1, lambda _, value=value: sizes[value])
            gradients[value] = made
        if draw.random() < 0.3 and len(ops) + number < MOST_COMMANDS:
            weight, = add(incoming + reads[:1], 1, lambda _: 64 * draw.randrange(1, 9))
            if draw.random() < 0.5 and len(ops) + number < MOST_COMMANDS:
                add([weight], 0, lambda _: 0)
    return Block(ops, sizes, droppable)


# ---------------------------------------------------------------------------------------------------------------------
# The integer program
# ---------------------------------------------------------------------------------------------------------------------


class Program:
    def __init__(self):
        self.costs, self.rows, self.least, self.upper = [], [], [], []

    def variable(self, most=1, cost=0, integral=True):
        self.costs.append(cost)
        self.upper.append((most, integral))
        return {len(self.costs) - 1: 1}

    def require(self, terms, at_least):
        """Sum of (factor, expression) >= at_least; expressions are {variable: factor}, with None for a number."""
        row, constant = {}, 0
        for factor, expression in terms:
            for name, value in expression.items():
                if name is None:
                    constant += factor * value
                else:
                    row[name] = row.get(name, 0) + factor * value
        self.rows.append(row)
        self.least.append(at_least - constant)

    def solve(self):
        cells = [(number, name, value) for number, row in enumerate(self.rows) for name, value in row.items()]
        matrix = csr_array(([cell[2] for cell in cells], ([cell[0] for cell in cells], [cell[1] for cell in cells])),
                           shape=(len(self.rows), len(self.costs)))
        done = milp(numpy.array(self.costs, dtype=float), constraints=LinearConstraint(matrix, lb=numpy.array(self.least)),
                    bounds=Bounds(0, numpy.array([most for most, _ in self.upper], dtype=float)),
                    integrality=numpy.array([int(integral) for _, integral in self.upper]),
                    options={"mip_rel_gap": 0, "time_limit": 120})
        if done.status == 2:
            return None
        if done.status != 0:
            raise TimeoutError
        return done.x


ONE, NOTHING = {None: 1}, {}


def minus(a, b):
    return {name: a.get(name, 0) - b.get(name, 0) for name in a.keys() | b.keys()}


class Judge:
    """For each op that may run again, and each backward command, whether it has run again by then."""

    def __init__(self, block, limit):
        self.block, self.limit, self.program = block, limit, Program()
        self.kept = [self.program.variable() for _ in range(block.droppable)]
        self.times = [time for time, op in enumerate(block.ops) if op["backward"]]
        self.done = {}
        for number in block.again():
            before = NOTHING
            for time in self.times:
                last = time == self.times[-1]
                self.done[number, time] = self.program.variable(cost=block.ops[number]["ns"] if last else 0)
                self.program.require([(1, self.done[number, time]), (-1, before)], 0)
                before = self.done[number, time]
        for time in self.times:
            for number in block.again():
                self.demand(number, time)
        for time in range(len(block.ops)):
            self.limit_command(time)
        for time in self.times:
            for number in block.again():
                self.limit_copy(number, time)

    def by(self, number, time):
        """Whether the op has run again by then."""
        earlier = [backward for backward in self.times if backward <= time]
        return self.done[number, earlier[-1]] if earlier else NOTHING

    def later(self, number, time):
        return minus(self.by(number, self.times[-1]), self.by(number, time))

    def copy_readers(self, value):
        return [number for number in self.block.again() if value in self.block.ops[number]["reads"]]

    def dropped(self, value):
        return minus(ONE, self.kept[value])

    def demand(self, number, time):
        """It runs again before the command if, and only if, something asks for it there."""
        asking = []
        for value in self.block.ops[number]["writes"]:
            if value in self.block.ops[time]["reads"]:
                self.program.require([(1, self.done[number, time]), (-1, self.dropped(value))], 0)
                asking.append((1, self.dropped(value)))
            for reader in self.copy_readers(value):
                self.program.require([(1, self.done[number, time]), (-1, self.by(reader, time)), (1, self.kept[value])], 0)
                both = self.program.variable()
                self.program.require([(1, minus(self.by(reader, time), self.by(reader, time - 1))), (-1, both)], 0)
                self.program.require([(1, self.dropped(value)), (-1, both)], 0)
                asking.append((1, both))
        self.program.require(asking + [(-1, minus(self.by(number, time), self.by(number, time - 1)))], 0)

    def if_all(self, *conditions):
        """At least 1 if all of the conditions are 1."""
        made = self.program.variable(integral=False)
        self.program.require([(1, made)] + [(-1, condition) for condition in conditions], 1 - len(conditions))
        return made

    def live(self, value, time, since=None):
        """(bytes, expression) of what lives of a value behind the command `time`, or while it runs; with `since`, if it or its
        copy was there before that command's copies."""
        block, size = self.block, self.block.sizes[value]
        if value >= block.droppable:
            readers = block.readers(value, False) + block.readers(value, True)
            begin = block.producer[value]
            return [(size, ONE)] if begin <= time <= max([begin] + readers) and (since is None or begin < since) else []
        begin, number = block.producer[value], block.producer[value]
        forward, backward = block.readers(value, False), block.readers(value, True)
        if time < begin:
            return []
        if time <= max([begin] + forward):
            return [(size, ONE)]
        copied = self.by(number, time if since is None else since - 1)
        copy = minus(copied, self.kept[value])
        if backward and time <= max(backward):
            there = self.program.variable(integral=False)
            self.program.require([(1, there), (-1, copy)], 0)
            return [(size, self.kept[value]), (size, there)]
        found = self.program.variable(integral=False)
        for reader in self.copy_readers(value):
            needed = self.later(reader, time)
            self.program.require([(1, found), (-1, self.kept[value]), (-1, needed)], -1)
            self.program.require([(1, found), (-1, copy), (-1, needed)], -1)
        return [(size, found)]

    def dies(self, value, time):
        """(bytes, expression) of what may end with a command that touches it."""
        block, size = self.block, self.block.sizes[value]
        readers = block.readers(value, False) + block.readers(value, True)
        begin = block.producer[value]
        if value >= block.droppable:
            return [(size, ONE)] if time == max([begin] + readers) else []
        forward, backward = block.readers(value, False), block.readers(value, True)
        isBackward = time in backward
        if time != (max(backward) if isBackward else max([begin] + forward)):
            return []
        dying = self.program.variable(integral=False)
        if not isBackward and backward:
            self.program.require([(1, self.dropped(value)), (-1, dying)], 0)
        for reader in self.copy_readers(value):
            extra = [] if isBackward else [(1, self.dropped(value))]
            self.program.require([(1, minus(ONE, self.later(reader, time))), (-1, dying)] + extra, 0)
        return [(size, dying)]

    def limit_command(self, time):
        op = self.block.ops[time]
        live = [part for value in range(len(self.block.sizes)) for part in self.live(value, time)]
        over = []
        if op["overwrites"]:
            over = [(1, self.program.variable(most=sum(self.block.sizes[value] for value in op["writes"]), integral=False))]
            dying = [part for value in set(op["reads"] + op["writes"]) for part in self.dies(value, time)]
            self.program.require(dying + [(-1, over[0][1])], 0)
        self.program.require([(-factor, expression) for factor, expression in live] + over, -self.limit)

    def limit_copy(self, number, time):
        op = self.block.ops[number]
        if op["overwrites"]:
            return
        written = sum(self.block.sizes[value] for value in op["writes"])
        live = [part for value in range(len(self.block.sizes)) for part in self.live(value, time, since=time)]
        most = sum(self.block.sizes) * 2
        runs = minus(self.by(number, time), self.by(number, time - 1))
        self.program.require([(-factor, expression) for factor, expression in live] + [(-most, runs)],
                             written - self.limit - most)

    def forbid(self, kept):
        self.program.require([(-1, self.kept[value]) if value in kept else (1, self.kept[value])
                              for value in range(self.block.droppable)], 1 - len(kept))

    def optimum(self, rounds=200):
        for _ in range(rounds):
            solution = self.program.solve()
            if solution is None:
                return None
            kept = {value for value in range(self.block.droppable) if solution[next(iter(self.kept[value]))] > 0.5}
            peak, spent = run(self.block, kept)
            if peak <= self.limit:
                return spent
            self.forbid(kept)
        raise TimeoutError


# ---------------------------------------------------------------------------------------------------------------------


def draw_limits(block, draw):
    """From a little below what random choices come to up to what it takes to keep all."""
    every = range(block.droppable)
    most, _ = run(block, set(every))
    least = min(run(block, {value for value in every if draw.random() < share / 10})[0] for share in range(11) for _ in range(10))
    return sorted({int(most - draw.random() ** 0.7 * (most - 0.97 * least)) for _ in range(LIMITS)}, reverse=True)


def check(block, limit, found):
    """Of few values all choices can be tried."""
    if block.droppable > MOST_TRIED:
        return
    outcomes = [run(block, {value for value in range(block.droppable) if number >> value & 1}) for number in range(1 << block.droppable)]
    assert found == min((spent for peak, spent in outcomes if peak <= limit), default=None), (block.ops, limit, found)


def main(graphs=80, seed=1):
    draw = random.Random(seed)
    blocks, cases = [], 0
    while len(blocks) < graphs:
        block = random_block(draw)
        if len(block.ops) > MOST_COMMANDS:
            continue
        limits = []
        for limit in draw_limits(block, draw):
            try:
                limits.append([limit, Judge(block, limit).optimum()])
                check(block, *limits[-1])
            except TimeoutError:
                print(f"block {len(blocks)}: not judged within {limit}", file=sys.stderr)
        cases += len(limits)
        print(f"block {len(blocks)}: {len(block.ops)} commands, {block.droppable} values, {limits}", file=sys.stderr, flush=True)
        blocks.append({"ops": [[op["reads"], op["writes"], op["ns"], int(op["backward"]), int(op["overwrites"])] for op in block.ops],
                       "bytes": block.sizes, "droppable": block.droppable, "limits": limits})
    print(f"{cases} cases", file=sys.stderr)
    print("[\n" + ",\n".join(json.dumps(block, separators=(",", ":")) for block in blocks) + "\n]")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
