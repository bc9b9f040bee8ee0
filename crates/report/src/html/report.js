// Zoom and cursor values; without them, charts and tables are still complete.
// A chart is an <svg class="chart" data-group data-x="low high kind unit">; its plots hold an <svg class="zoom"> whose
// position and width, as fractions of the plot, are all that zooming changes. Values are read from the drawn paths.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 4000; // Units across a path.
  const ZOOM_MAX = 200;
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const axisOf = (text) => {
    const [low, high, kind, ...unit] = text.split(" ");
    return { low: Number(low), high: Number(high), log: kind === "Log", unit: unit.join(" ") };
  };
  const valueAt = (axis, share) =>
    axis.log ? axis.low * (axis.high / axis.low) ** share : axis.low + (axis.high - axis.low) * share;
  const digits = (value, most) => value.toLocaleString("en", { minimumFractionDigits: most, maximumFractionDigits: most });
  const number = (value, axis) =>
    axis.log ? Number(value.toPrecision(3)).toLocaleString("en") : digits(value, axis.high > 1000 ? 0 : axis.high > 20 ? 1 : 2);

  // Charts of a group share the visible range and the cursor, both as fractions of the whole x axis.
  const groups = new Map();
  class Group {
    constructor() {
      this.charts = [];
      this.from = 0;
      this.to = 1;
      this.cursor = null;
    }
    show(from, to) {
      const width = clamp(to - from, 1 / ZOOM_MAX, 1);
      this.from = clamp(from, 0, 1 - width);
      this.to = this.from + width;
      this.charts.forEach((chart) => chart.place());
    }
    zoom(factor, around) {
      const width = (this.to - this.from) * factor;
      const part = (around - this.from) / (this.to - this.from);
      this.show(around - width * part, around + width * (1 - part));
    }
    point(share, reader) {
      this.cursor = share === null ? null : clamp(share, this.from, this.to);
      this.charts.forEach((chart) => chart.point(this.cursor, chart === reader));
    }
  }

  const draw = (parent, name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    parent.append(element);
    return element;
  };
  const percent = (share) => `${(share * 100).toFixed(3)}%`;

  // The points of a path: "Mx yl dx dy …" for lines, "Mx yv… m… v…" for stems.
  const pointsOf = (path) => {
    if (path.points) return path.points;
    const points = [];
    let [x, y] = [0, 0];
    for (const [, command, rest] of path.getAttribute("d").matchAll(/([a-zA-Z])([^a-zA-Z]*)/g)) {
      const numbers = (rest.match(/-?[\d.]+/g) || []).map(Number);
      if (command === "v") y += numbers[0];
      else for (let at = 0; at + 1 < numbers.length; at += 2) {
        [x, y] = command === "M" ? [numbers[at], numbers[at + 1]] : [x + numbers[at], y + numbers[at + 1]];
        points.push([x, y]);
      }
    }
    return (path.points = points);
  };
  // A line's point nearest to x; a level stretch has points only at its ends.
  const nearest = (points, x, level) => {
    let [low, high] = [0, points.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= x) low = middle; else high = middle;
    }
    const between = points[low][0] <= x && x <= points[high][0];
    if (level && between && points[low][1] === points[high][1]) return [x, points[low][1]];
    return x - points[low][0] <= points[high][0] - x ? points[low] : points[high];
  };

  class Chart {
    constructor(svg) {
      this.svg = svg;
      this.x = axisOf(svg.dataset.x);
      this.plots = [...svg.querySelectorAll(".plot")].filter((plot) => plot.querySelector(":scope > .zoom"));
      this.zooms = this.plots.map((plot) => plot.querySelector(":scope > .zoom"));
      this.readout = svg.parentElement.querySelector(".readout");
      if (!groups.has(svg.dataset.group)) groups.set(svg.dataset.group, new Group());
      this.group = groups.get(svg.dataset.group);
      this.group.charts.push(this);
      this.ticks = [...svg.querySelectorAll(".tick")];
      this.cursors = this.plots.filter((plot) => plot.dataset.y).map((plot) =>
        draw(plot.firstElementChild, "line", { class: "cursor", y1: 0, y2: "100%", visibility: "hidden" }));
      this.listen();
    }
    share(event) {
      const box = this.svg.getBoundingClientRect();
      const part = (event.clientX - box.left) / box.width;
      return clamp(this.group.from + part * (this.group.to - this.group.from), 0, 1);
    }
    listen() {
      const { svg, group } = this;
      let start = null;
      svg.addEventListener("pointermove", (event) => {
        const share = this.share(event);
        group.point(share, this);
        if (start !== null) this.choose(start, share);
      });
      svg.addEventListener("pointerleave", () => { if (start === null) group.point(null, this); });
      svg.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || event.pointerType === "touch") return;
        start = this.share(event);
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointerup", (event) => {
        if (start === null) return;
        const [from, to] = [start, this.share(event)].sort((left, right) => left - right);
        start = null;
        this.choose(null);
        if ((to - from) / (group.to - group.from) > 0.01) group.show(from, to);
      });
      svg.addEventListener("pointercancel", () => { start = null; this.choose(null); });
      svg.addEventListener("dblclick", () => group.show(0, 1));
      svg.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        group.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.share(event));
      }, { passive: false });
      svg.addEventListener("keydown", (event) => this.key(event));
      svg.addEventListener("blur", () => group.point(null, this));
    }
    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { group } = this;
      const at = group.cursor ?? (group.from + group.to) / 2;
      const step = (group.to - group.from) * (event.shiftKey ? 0.1 : 0.01);
      const move = (share) => {
        if (share < group.from) group.show(share, share + group.to - group.from);
        if (share > group.to) group.show(share - group.to + group.from, share);
        group.point(share, this);
      };
      const keys = {
        ArrowLeft: () => move(clamp(at - step, 0, 1)),
        ArrowRight: () => move(clamp(at + step, 0, 1)),
        Home: () => move(0),
        End: () => move(1),
        "+": () => group.zoom(0.5, at),
        "=": () => group.zoom(0.5, at),
        "-": () => group.zoom(2, at),
        0: () => group.show(0, 1),
        Escape: () => { group.show(0, 1); group.point(null, this); },
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    }
    choose(from, to) {
      if (this.choice) this.choice.remove();
      this.choice = null;
      if (from === null) return;
      const [left, right] = [Math.min(from, to), Math.max(from, to)];
      this.choice = draw(this.zooms[0], "rect", {
        class: "choice", x: percent(left), width: percent(right - left), y: this.svg.dataset.top, height: "100%",
      });
    }
    place() {
      const { from, to } = this.group;
      const width = 1 / (to - from);
      this.svg.classList.toggle("zoomed", width > 1.001);
      for (const zoom of this.zooms) {
        zoom.setAttribute("x", percent(-from * width));
        zoom.setAttribute("width", percent(width));
      }
      this.retick(width);
    }
    // Round numbers in the visible range; the logarithmic axis of a spectrum keeps its ticks.
    retick(width) {
      if (this.x.log) return;
      if (this.fresh) this.fresh.forEach((tick) => tick.remove());
      this.fresh = [];
      const whole = width <= 1.001;
      this.ticks.forEach((tick) => tick.setAttribute("visibility", whole ? "visible" : "hidden"));
      if (whole) return;
      const [low, high] = [valueAt(this.x, this.group.from), valueAt(this.x, this.group.to)];
      const power = 10 ** Math.floor(Math.log10((high - low) / 6));
      const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= (high - low) / 6);
      const most = Math.max(0, -Math.floor(Math.log10(step)));
      const sample = this.ticks.find((tick) => tick.tagName === "text");
      for (let at = Math.ceil(low / step); at * step <= high; at++) {
        const x = percent((at * step - this.x.low) / (this.x.high - this.x.low));
        const text = draw(sample.parentElement, "text", { class: "x", x, y: sample.getAttribute("y") });
        text.textContent = digits(at * step, most);
        this.fresh.push(text);
      }
    }
    point(share, reads) {
      for (const cursor of this.cursors) {
        cursor.setAttribute("visibility", share === null ? "hidden" : "visible");
        if (share !== null) for (const end of ["x1", "x2"]) cursor.setAttribute(end, percent(share));
      }
      if (this.readout && (reads || share === null)) this.readout.textContent = share === null ? "" : this.read(share);
    }
    read(share) {
      const at = valueAt(this.x, share);
      const place = this.x.log ? `at least ${Number((100 - 100 / at).toPrecision(5))}%` : `${digits(at, 1)} ${this.x.unit}`;
      const told = [];
      for (const plot of this.plots.filter((plot) => plot.dataset.y)) {
        const y = axisOf(plot.dataset.y);
        const height = 10 * plot.height.baseVal.value;
        const near = new Map();
        for (const path of plot.querySelectorAll("path[data-n]")) {
          const points = pointsOf(path);
          if (points.length === 0) continue;
          const [x, down] = nearest(points, share * WIDTH, !("stems" in path.dataset));
          const away = Math.abs(x - share * WIDTH);
          const reach = "stems" in path.dataset ? 0.01 * WIDTH * (this.group.to - this.group.from) : 0.03 * WIDTH;
          const name = path.dataset.n;
          if (away <= reach && !(near.get(name)?.away <= away)) near.set(name, { away, value: valueAt(y, 1 - down / height) });
        }
        // The line drawn last, on top, comes first.
        for (const [name, { value }] of [...near].reverse()) told.push(`${name} ${number(value, y)} ${y.unit}`.replace(" /s", "/s"));
      }
      return `${place}: ${told.slice(0, 12).join(" · ") || "nothing here"}`;
    }
  }

  document.querySelectorAll("svg.chart[data-group]").forEach((svg) => new Chart(svg));
  document.documentElement.classList.add("interactive");
  // Print collapsed parts too.
  const folded = [];
  addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((details) => {
    details.open = true;
    folded.push(details);
  }));
  addEventListener("afterprint", () => folded.splice(0).forEach((details) => { details.open = false; }));
})();
