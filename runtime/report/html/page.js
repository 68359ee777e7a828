// A picture that can be asked: what is under the pointer, what comes next, a part of it larger. Without this
// all is still there, as titles.
'use strict';

class Picture {
  constructor(figure) {
    this.field = figure.querySelector('.field');
    this.svg = figure.querySelector('svg');
    this.about = figure.querySelector('.about');
    this.axes = {x: figure.querySelector('.x.axis'), y: figure.querySelector('.y.axis')};
    this.peak = figure.querySelector('div.peak span');
    this.boxes = [...figure.querySelectorAll('rect')].map(boxOf);
    const [, , width, height] = this.svg.getAttribute('viewBox').split(' ').map(Number);
    this.whole = {x: 0, y: 0, width, height};
    this.unit = Number(this.svg.dataset.unit);
    this.isFixed = !figure.classList.contains('zoomable');
    this.names = this.layer('names');
    this.mark = this.layer('mark');
    this.drag = this.layer('drag');
    this.mark.hidden = this.drag.hidden = true;
    this.selected = -1;
    this.listen();
    this.show(this.whole);
  }

  layer(name) {
    const element = document.createElement('div');
    element.className = name;
    this.field.append(element);
    return element;
  }

  listen() {
    const field = this.field;
    field.addEventListener('pointermove', event => this.move(event));
    field.addEventListener('pointerdown', event => this.begin(event));
    field.addEventListener('pointerup', event => this.end(event));
    field.addEventListener('dblclick', () => this.show(this.whole));
    field.addEventListener('keydown', event => this.press(event));
    new ResizeObserver(() => this.writeNames()).observe(field);
  }

  // Places in the picture, from places in the window.
  pointOf(event) {
    const frame = this.field.getBoundingClientRect(), view = this.view;
    return {x: view.x + (event.clientX - frame.left) / frame.width * view.width,
            y: view.y + (event.clientY - frame.top) / frame.height * view.height};
  }

  pixel() {
    return {x: this.view.width / this.field.clientWidth, y: this.view.height / this.field.clientHeight};
  }

  // The smallest box within a few pixels: what is thin wins over what it lies on.
  find(point) {
    const pixel = this.pixel(), near = this.isFixed ? 8 : 3, x = near * pixel.x, y = near * pixel.y;
    let best = -1, least = Infinity;
    this.boxes.forEach((box, i) => {
      const isNear = box.x - x <= point.x && point.x <= box.x + box.width + x &&
                     box.y - y <= point.y && point.y <= box.y + box.height + y;
      const isIn = box.x <= point.x && point.x < box.x + box.width && box.y <= point.y && point.y < box.y + box.height;
      const area = box.width * box.height * (isIn ? 1 : 4);
      if (isNear && area < least) { best = i; least = area; }
    });
    return best;
  }

  move(event) {
    if (this.start) return this.place(this.drag, between(this.start, this.pointOf(event)));
    const i = this.find(this.pointOf(event));
    if (i >= 0) this.select(i);
  }

  begin(event) {
    if (event.button !== 0 || this.isFixed) return;
    this.start = this.pointOf(event);
    this.field.setPointerCapture(event.pointerId);
  }

  end(event) {
    if (!this.start) return;
    const part = between(this.start, this.pointOf(event)), pixel = this.pixel();
    this.start = null;
    this.drag.hidden = true;
    if (part.width > 8 * pixel.x && (!this.unit || part.height > 8 * pixel.y)) this.show(part);
  }

  press(event) {
    const steps = {ArrowRight: 1, ArrowLeft: -1};
    if (event.key === 'Escape') this.show(this.whole);
    else if (event.key in steps) this.selectNext(steps[event.key]);
    else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') this.selectBeside(event.key === 'ArrowUp');
    else return;
    event.preventDefault();
  }

  // In the order in which they begin, from the bottom to the top.
  selectNext(step) {
    this.order ??= this.boxes.map((_, i) => i).sort((a, b) => this.boxes[a].x - this.boxes[b].x || this.boxes[b].y - this.boxes[a].y);
    const at = this.order.indexOf(this.selected);
    const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), this.order.length - 1);
    if (this.order.length > 0) this.select(this.order[next]);
  }

  // What lies above or below at the same time.
  selectBeside(isAbove) {
    const from = this.boxes[this.selected];
    if (!from) return this.selectNext(1);
    let best = -1;
    this.boxes.forEach((box, i) => {
      const isThere = box.x < from.x + from.width && from.x < box.x + box.width && (isAbove ? box.y < from.y : box.y > from.y);
      const isNearer = best < 0 || (isAbove ? box.y > this.boxes[best].y : box.y < this.boxes[best].y);
      if (isThere && isNearer) best = i;
    });
    if (best >= 0) this.select(best);
  }

  select(i) {
    if (i === this.selected) return;
    this.selected = i;
    const box = this.boxes[i];
    textOf(box);
    box.element.querySelector('title')?.remove();  // else the browser would say it a second time
    this.about.textContent = box.text;
    this.place(this.mark, box);
  }

  place(element, box) {
    const view = this.view, style = element.style;
    style.left = 100 * (box.x - view.x) / view.width + '%';
    style.top = 100 * (box.y - view.y) / view.height + '%';
    style.width = 100 * box.width / view.width + '%';
    style.height = 100 * box.height / view.height + '%';
    element.hidden = false;
  }

  show(part) {
    // Without a unit there are lanes, of which all stay in sight.
    const view = this.view = this.unit ? part : {...part, y: 0, height: this.whole.height};
    this.svg.setAttribute('viewBox', `${view.x} ${view.y} ${view.width} ${view.height}`);
    if (this.boxes[this.selected]) this.place(this.mark, this.boxes[this.selected]);
    if (this.isFixed) return;
    if (this.peak) this.peak.style.visibility = part === this.whole ? '' : 'hidden';
    const bottom = this.whole.height - view.y - view.height;
    writeTicks(this.axes.x, 'left', view.x, view.width, 1);
    if (this.unit) writeTicks(this.axes.y, 'bottom', bottom, view.height, this.unit);
    this.writeNames();
  }

  // On what has room for a name, the largest first.
  writeNames() {
    if (this.isFixed) return;
    const pixel = this.pixel(), shown = [];
    for (const box of this.boxes) {
      const part = common(box, this.view);
      const width = part.width / pixel.x, height = part.height / pixel.y;
      if (width >= 45 && height >= 13) shown.push({box, part, width, area: width * height});
    }
    shown.sort((a, b) => b.area - a.area);
    this.names.replaceChildren(...shown.slice(0, 400).map(({box, part, width}) => {
      const element = document.createElement('span');
      element.className = 'name';
      element.textContent = endOf(textOf(box).split('\n')[0], Math.floor((width - 6) / 6.4));
      this.place(element, part);
      return element;
    }));
  }
}

function boxOf(element) {
  const of = name => Number(element.getAttribute(name));
  return {element, x: of('x'), y: of('y'), width: of('width'), height: of('height')};
}

// What the box says of itself.
function textOf(box) {
  box.text ??= box.element.querySelector('title').textContent;
  return box.text;
}

// Of a name that is too long its end: layers begin alike.
function endOf(name, most) {
  return name.length <= most ? name : '…' + name.slice(1 - most);
}

function between(a, b) {
  return {x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y)};
}

function common(a, b) {
  const x = Math.max(a.x, b.x), y = Math.max(a.y, b.y);
  return {x, y, width: Math.min(a.x + a.width, b.x + b.width) - x, height: Math.min(a.y + a.height, b.y + b.height) - y};
}

// Round numbers from `first` on, in units of which an axis may have very many.
function writeTicks(axis, side, first, length, unit) {
  const least = length / unit / 8, power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(step => step >= least);
  const spans = [];
  for (let i = Math.ceil(first / unit / step); i * step * unit <= first + length; ++i) {
    const span = document.createElement('span');
    span.textContent = Number((i * step).toPrecision(12));
    span.style[side] = 100 * (i * step * unit - first) / length + '%';
    spans.push(span);
  }
  axis.replaceChildren(...spans);
}

for (const details of document.querySelectorAll('details')) {
  const draw = () => {
    if (!details.open) return;
    for (const figure of details.querySelectorAll('.picture')) figure.picture ??= new Picture(figure);
  };
  details.addEventListener('toggle', draw);
  draw();
}
