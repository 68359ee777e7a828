"""What a notebook shows of a plan: the page that gpuc-inspect --html draws of it."""

import html

FRAME = '<iframe srcdoc="{}" style="width: 100%; height: 640px; border: 0"></iframe>'


class Memory:
    """The arena while the plan's programs run. A notebook shows it; `html` is the page, which needs nothing else."""

    def __init__(self, session):
        self._session = session

    @property
    def html(self):
        return self._session.html()

    def _repr_html_(self):
        return FRAME.format(html.escape(self.html))

    def __repr__(self):
        return f"Memory({self._session.arena_bytes} bytes)"


class Report(dict):
    """The compiler's report. A notebook shows the memory that it is about."""

    def __init__(self, report, memory):
        super().__init__(report)
        self._memory = memory

    def _repr_html_(self):
        return self._memory._repr_html_()
