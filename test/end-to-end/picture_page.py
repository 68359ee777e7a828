"""What stands in a page of gpuc-inspect --html, for tests."""

import html.parser


class Page(html.parser.HTMLParser):
    """What stands in a page: its tags, the rectangles of each program with their titles, ticks, tables."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.programs, self.open, self.heading = [], {}, [], []  # of each program its pictures, by name
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "meta":
            return
        if tag == "path" and attributes["class"].split()[0] in ("wait", "line"):
            self.last["paths"].append(attributes)
        self.open.append((tag, attributes))
        if tag == "h2":
            self.heading.append("")
        if tag == "summary":
            self.program = {}
        if tag == "figure":
            self.last = {"rects": [], "paths": [], "ticks": {"x": [], "y": []}, "table": [], "peak": ""}
            self.program[attributes["class"].split()[0]] = self.last
        if tag == "svg":
            self.last.update(view=[float(n) for n in attributes["viewbox"].split()], unit=float(attributes.get("data-unit", 0)))
        if tag == "rect":
            box = {name: float(attributes[name]) for name in ("x", "y", "width", "height")}
            self.last["rects"].append({"kind": attributes["class"], "title": "", **box})
        if tag == "span" and "axis" in self.classes(-2):
            self.last["ticks"][self.classes(-2)[0]].append([attributes["style"], ""])
        if tag == "tr":
            self.last["table"].append([])
        if tag in ("th", "td"):
            self.last["table"][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open[-1][0] == tag, f"</{tag}> closes <{self.open[-1][0]}>"
        self.open.pop()
        if tag == "h2":
            self.programs[self.heading[-1]] = self.program

    def handle_data(self, data):
        tag = self.open[-1][0] if self.open else ""
        if tag == "h2":
            self.heading[-1] += data
        elif tag == "title" and len(self.open) > 1 and self.open[-2][0] == "rect":
            self.last["rects"][-1]["title"] += data
        elif tag in ("th", "td"):
            self.last["table"][-1][-1] += data
        elif tag == "span" and "axis" in self.classes(-2):
            self.last["ticks"][self.classes(-2)[0]][-1][1] += data
        elif tag == "span" and "peak" in self.classes(-2):
            self.last["peak"] += data

    def classes(self, at):
        return self.open[at][1].get("class", "").split() if len(self.open) >= -at else []
