"""The page of gpuc-inspect --html in a browser: names on rectangles, what pointer and keys tell, a closer look. Needs Chromium."""

import re
import shutil
import subprocess
import sys
import unittest

from gpuc_tools import ToolTest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# What a user does, and what the page shows then; put into the page's end.
ACTIONS = """<script>
const said = [], say = what => said.push(what);
window.onerror = message => say('error ' + message);
const field = document.querySelector('.field'), figure = field.closest('figure');
const about = () => figure.querySelector('.about').textContent.split('\\n')[0];
const press = key => field.dispatchEvent(new KeyboardEvent('keydown', {key}));
const point = (kind, x, y) => {
  const frame = field.getBoundingClientRect();
  field.dispatchEvent(new PointerEvent(kind, {clientX: frame.left + x * frame.width, clientY: frame.top + y * frame.height, button: 0, pointerId: 1}));
};
field.setPointerCapture = () => {};
say('names ' + figure.querySelectorAll('.name').length);
const rects = [...figure.querySelectorAll('rect')].map(element => ({element, name: element.textContent.split('\\n')[0]}));
const first = rects[0].name;
press('ArrowRight'); say('first ' + (about() === first));
press('ArrowUp'); say('above ' + (about() !== first));
press('ArrowDown'); say('back ' + (about() === first));
const isHit = (x, y) => {
  point('pointermove', x, y);
  const frame = field.getBoundingClientRect(), at = {x: frame.left + x * frame.width, y: frame.top + y * frame.height};
  return rects.some(({element, name}) => {
    const box = element.getBoundingClientRect();
    return name === about() && box.left - 5 <= at.x && at.x <= box.right + 5 && box.top - 5 <= at.y && at.y <= box.bottom + 5;
  });
};
say('pointed ' + [0.1, 0.3, 0.5, 0.7, 0.9].every(x => isHit(x, 0.9) && isHit(x, 0.6)));
const ticks = () => [...figure.querySelectorAll('.x.axis span')].map(span => span.textContent).join();
const before = ticks();
point('pointerdown', 0.25, 0.25); point('pointermove', 0.5, 0.5); point('pointerup', 0.5, 0.5);
say('closer ' + (ticks() !== before));
press('Escape'); say('whole ' + (ticks() === before));
say('wide ' + (document.documentElement.scrollWidth <= window.innerWidth));
document.body.replaceChildren(said.join('; ') + ';');
</script></body>"""
MODELS = (  # the last: on so many rectangles there is room for a name
    ("convnet", ["batch=5"], [], 3),
    ("gpt2", ["layers=20", "batch=2"], ["--target=cuda:sm_90"], 0),
)
EXPECTED = "first true; above true; back true; pointed true; closer true; whole true; wide true;"


class PicturesInABrowser(ToolTest):
    def opened(self, page, width):
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.path('profile')}",
                   f"--window-size={width},900", "--dump-dom", "file://" + page]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return re.search(r"<body>(.*)</body>", result.stdout, re.DOTALL)[1]

    def test_it_tells_what_is_asked(self):
        for model, keys, flags, least in MODELS:
            plan = self.compile_model(model, *keys, flags=flags)
            self.gpuc("gpuc-inspect", plan, "--html=page.html")
            with open(self.path("page.html"), encoding="utf-8") as file:
                page = file.read()
            self.write("asked.html", page.replace("</body>", ACTIONS))
            for width in (500, 1600):
                with self.subTest(model=model, width=width):
                    said = self.opened(self.path("asked.html"), width).strip()
                    names = re.match(r"names (\d+); ", said)
                    self.assertIsNotNone(names, said)
                    self.assertGreaterEqual(int(names[1]), least)
                    self.assertEqual(said[names.end():], EXPECTED)


if __name__ == "__main__":
    if not CHROMIUM:
        print("skipped: no Chromium here (Debian: apt-get install chromium)")
        sys.exit(77)
    unittest.main()
