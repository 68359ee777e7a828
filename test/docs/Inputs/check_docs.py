"""Holds the pages (*.md) against the tree and the tools: links resolve, flags exist, every tool is mentioned.

    check_docs.py SOURCE BIN

SOURCE is the root of a tree, BIN the folder with its built tools. Each finding is one line; any finding is exit code 1.
"""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *(```|~~~)")
TOOL = re.compile(r"(?<![\w./-])(?:build/bin/)?(gpuc-[a-z][a-z-]*[a-z])(?![\w/-]|\.[a-z])")
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*[a-z0-9]…?)")
BACKTICKS = re.compile(r"`([^`]+)`")


def pages(source):
    """Every page of the tree; not those in build folders, hidden folders, or a test's inputs."""
    def walk(folder):
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                skipped = path.name.startswith(".") or path.name == "Inputs" or (path / "CMakeCache.txt").exists()
                if not skipped:
                    yield from walk(path)
            elif path.suffix == ".md":
                yield path
    return list(walk(source))


def split(text):
    """(line number, line, is it code?) of a page; a line of code that ends in \\ goes on in the next."""
    code, held = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            code = not code
        elif code and line.endswith("\\"):
            held += line[:-1]
        else:
            yield number, held + line, code
            held = ""


def anchors(page):
    """The names under which a page's headings can be linked to, as GitHub makes them."""
    headings = [line.lstrip("#").strip() for _, line, code in split(page.read_text()) if not code and line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(source, page):
    for number, line, code in split(page.read_text()):
        for target in [] if code else LINK.findall(BACKTICKS.sub("", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.is_relative_to(source.resolve()) or not file.exists():
                yield number, f"link to {target}: there is no such file"
            elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
                yield number, f"link to {target}: that page has no such heading"


class Tools:
    """The flags of the tools, as their --help lists them."""

    def __init__(self, folder, names):
        self.folder, self.names, self.known = folder, names, {}

    def flags(self, name):
        """Those of one tool; None if it is not built."""
        if name not in self.known and not (self.folder / name).exists():
            return None
        if name not in self.known:
            help_text = subprocess.run([self.folder / name, "--help"], capture_output=True, text=True, timeout=300).stdout
            self.known[name] = set(FLAG.findall(help_text)) | {"--help", "--version"}
        return self.known[name]

    def has(self, name, flag):
        flags = self.flags(name) or set()
        families = tuple(known[:-1] for known in flags if known.endswith("…"))
        return flag in flags or flag.startswith(families)


def unknown_flags(tools, page):
    for number, line, code in split(page.read_text()):
        for text in [line] if code else BACKTICKS.findall(line):
            for command in re.split(r"\||&&|;", text):
                name = None
                # Tools and flags in the order in which they stand: a flag belongs to the tool before it.
                for match in sorted([*TOOL.finditer(command), *FLAG.finditer(command)], key=lambda match: match.start()):
                    word = match.group(1)
                    if match.re is TOOL:
                        name = word if word in tools.names else None
                    elif name and tools.flags(name) is None:
                        yield number, f"{name} {word}: there is no {tools.folder / name} to ask; build it first"
                    elif name and not tools.has(name, word):
                        yield number, f"{name} has no flag {word}"
                # Inline code that begins with a flag leaves it to the reader whose it is.
                first = FLAG.match(command)
                if not code and first and not any(tools.has(known, first.group(1)) for known in tools.names):
                    yield number, f"no tool has a flag {first.group(1)}"


def wrong_versions(source):
    """What a page says of a number that the code has."""
    header, page = source / "runtime/plan/header.h", source / "docs/plan-format.md"
    if header.exists():
        version = re.search(r"kPlanFormatVersion = (\d+)", header.read_text())[1]
        for number, line in enumerate(page.read_text().splitlines(), 1):
            said = re.search(r"format version +(\d+)", line)
            if said and said[1] != version:
                yield f"docs/plan-format.md:{number}: the format version is {version}"


def main():
    source, folder = map(pathlib.Path, sys.argv[1:])
    tools = Tools(folder, sorted(path.stem for path in (source / "tools").glob("gpuc-*.cpp")))
    findings, mentioned = list(wrong_versions(source)), set()
    for page in pages(source):
        found = [*broken_links(source, page), *unknown_flags(tools, page)]
        findings += [f"{page.relative_to(source)}:{number}: {text}" for number, text in found]
        if page.name == "README.md" and page.parent == source or page.parent == source / "docs":
            mentioned |= set(TOOL.findall(page.read_text()))
    findings += [f"tools/{name}.cpp: neither README.md nor docs/ mentions {name}" for name in tools.names if name not in mentioned]
    print("\n".join(findings) if findings else f"{len(pages(source))} pages hold")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
