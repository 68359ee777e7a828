"""How much memory a plan needs at the least, reckoned from the plan file alone: from the buffers and commands that gpuc-inspect
--json lists. Nothing here is the compiler's: neither when it takes a buffer to be needed, nor where it placed it and why.

A buffer is needed from the first command that touches it to the last, an output to the program's end. A loop is one command to
what stands around it. A buffer that only commands of one loop touch is needed in each iteration anew if the first of them is no loop
and writes all of it; else one iteration may hand it on to the next, and all loops around need it as long as they last.

Of what is needed at one command no two buffers may share a byte, unless that command reads the one for the last time and writes the
other for the first. So at each command the bytes that hold something can be counted, and no placement of these buffers, in this order,
takes less than the most of them."""

ALIGNMENT = 64
LASTING = {"parameter", "optimizer", "input"}  # for the whole run; the others for a part of a program


class Node:
    """A command, or a loop with its commands."""

    def __init__(self, command, position):
        self.command, self.lower, self.upper, self.children = command, position, position + 1, []

    def operands(self):
        yield from ((operand, False) for operand in self.command["reads"])
        yield from ((operand, True) for operand in self.command["writes"])

    def touched(self):
        buffers = {operand["index"] for operand, _ in self.operands()}
        return buffers.union(*(child.touched() for child in self.children))


def tree_of(commands):
    """The commands of one program's main stream, loops with theirs inside; positions go from 0."""
    top, path = [], []
    for position, command in enumerate(commands):
        node = Node(command, position)
        del path[command["depth"]:]
        (path[-1].children if path else top).append(node)
        for around in path:
            around.upper = position + 1
        path.append(node)
    return top


def lifetimes_in(nodes, around, plan, found):
    """Puts [lower, upper) into `found` for each buffer that these commands touch, and no others do; `around` is the outermost loop
    that they stand in."""
    touching = {}
    for node in nodes:
        for buffer in node.touched():
            touching.setdefault(buffer, []).append(node)
    inner = {}
    for buffer, by in touching.items():
        if len(by) == 1 and by[0].children:
            inner.setdefault(by[0].lower, (by[0], set()))[1].add(buffer)
        elif around is None or writes_all(by[0], buffer, plan):
            found[buffer] = by[0].lower, by[-1].upper
        else:
            found[buffer] = around.lower, around.upper
    for node, own in inner.values():
        within = {}
        lifetimes_in(node.children, around or node, plan, within)
        found.update((buffer, within[buffer]) for buffer in own)


def writes_all(node, buffer, plan):
    """Whether the command, no loop, writes all of the buffer and reads nothing of it."""
    mine = [(operand, written) for operand, written in node.operands() if operand["index"] == buffer]
    return not node.children and all(written and operand["bytes"] == plan["buffers"][buffer]["bytes"] for operand, written in mine)


def aligned(bytes_, step=ALIGNMENT):
    return -(-bytes_ // step) * step


def range_of(buffer):
    """In whole lines, of which short ones may share one."""
    step = min(ALIGNMENT, 1 << (buffer["bytes"] - 1).bit_length())
    end = buffer["offset"] + aligned(buffer["bytes"], step) * buffer["slots"]
    return buffer["offset"] // ALIGNMENT * ALIGNMENT, aligned(end)


def union(ranges):
    """How many bytes lie in one of them."""
    total, end = 0, 0
    for lower, upper in sorted(ranges):
        total += max(0, upper - max(lower, end))
        end = max(end, upper)
    return total


def is_in_place(dying, born):
    """Whether the first is needed until the command that writes the second, and was there before it."""
    return dying[0] < dying[1] - 1 == born[0]


def check_apart(program, live, plan):
    """That buffers that are needed at once share no byte, but in place."""
    furthest = None
    for number, life in sorted(live, key=lambda entry: range_of(plan["buffers"][entry[0]])):
        lower, upper = range_of(plan["buffers"][number])
        if furthest and lower < furthest[2] and not is_in_place(furthest[1], life) and not is_in_place(life, furthest[1]):
            names = [plan["buffers"][one]["name"] for one in (furthest[0], number)]
            raise AssertionError(f"{program}: {names[0]}, needed in {furthest[1]}, and {names[1]}, in {life}, share bytes")
        if furthest is None or upper > furthest[2]:
            furthest = number, life, upper


def workspace_of(program, plan):
    """The most bytes that hold something at a command of the program, besides what lasts."""
    commands = [c for c in plan["commands"] if c["entry"] == program]
    main = [c for c in commands if c["stream"] == "compute"]
    for command in commands:
        for operand in command["reads"] + command["writes"]:
            buffer = plan["buffers"][operand["index"]]
            assert command["stream"] == "compute" or buffer["category"] in LASTING, f"{command['name']} of another stream"
    lives = {}
    lifetimes_in(tree_of(main), None, plan, lives)
    for output in plan["entries"][program]["outputs"]:
        lives[output["index"]] = lives.get(output["index"], (len(main) - 1,))[0], len(main)
    lives = {b: life for b, life in lives.items() if plan["buffers"][b]["category"] not in LASTING}
    begins = {}
    for buffer, life in lives.items():
        begins.setdefault(life[0], []).append((buffer, life))
    most, live = 0, []
    for position in range(len(main)):  # what is needed only grows where something begins
        live = [entry for entry in live if entry[1][1] > position]
        if position in begins:
            live += begins[position]
            check_apart(program, live, plan)
            most = max(most, union(range_of(plan["buffers"][buffer]) for buffer, _ in live))
    return most


def least_bytes(plan):
    """No placement of the plan's buffers takes less; an AssertionError tells of two that share bytes and may not."""
    lasting = union(range_of(buffer) for buffer in plan["buffers"] if buffer["category"] in LASTING)
    return lasting + max(workspace_of(program, plan) for program in plan["entries"])
