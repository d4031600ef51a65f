// Draws the charts of a run from the specs that the server sends, on one time axis with one crosshair.

import { decimal, element, figure, stroke } from "./figures.js";

const TABLE_ROWS = 60;
const KEPT_ROWS = 1500;
const TOP_PAD = 6;

/** Colours of axes and labels as the stylesheet has them, in light or dark. */
function theme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    background: "transparent",
    font: style.getPropertyValue("--font").trim(),
    view: { stroke: "transparent" },
    axis: {
      labelColor: colour("--ink-3"),
      gridColor: colour("--line"),
      domainColor: colour("--line"),
      tickColor: colour("--line"),
      labelFont: colour("--font"),
      labelFontSize: 11,
      tickSize: 3,
    },
    axisY: { domain: false, ticks: false },
  };
}

/** Charts inside `root`, drawn from `drawing` (see pocs.runs.ui.drawing). */
export class Charts {
  constructor(root, drawing) {
    this.root = root;
    this.drawing = drawing;
    this.rows = drawing.rows;
    this.segments = drawing.waterfall.rows;
    this.spanS = drawing.span_s;
    this.views = new Map();
    this.figures = new Map();
    this.waiting = false;
    for (const figureElement of root.querySelectorAll("[data-chart]")) {
      this.figures.set(figureElement.dataset.chart, figureElement);
    }
  }

  async draw() {
    this.prepareLegends();
    if (!window.vegaEmbed) await import(this.root.dataset.vega);
    await this.embedAll();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.embedAll());
    for (const [key, figureElement] of this.figures) {
      figureElement.querySelector("details").addEventListener("toggle", (event) => {
        if (event.target.open) this.writeTable(key);
      });
    }
    this.watchPointer();
    this.readOut(null);
    this.root.dataset.drawn = "yes";
  }

  async embedAll() {
    const config = theme();
    const one = async (key, spec) => {
      const canvas = this.figures.get(key)?.querySelector(".chart-canvas");
      if (!canvas) return;
      this.views.get(key)?.finalize();
      const result = await window.vegaEmbed(canvas, structuredClone(spec), {
        mode: "vega-lite", ast: true, actions: false, renderer: "canvas", defaultStyle: false, tooltip: false,
        logLevel: 1, config,
      });
      this.views.set(key, result.view);
    };
    await Promise.all([
      one("waterfall", this.drawing.waterfall.spec),
      ...this.drawing.panels.map((panel) => one(panel.key, panel.spec)),
    ]);
    await this.render();
  }

  /** Add one sample; the memory figures are read beside the others. */
  push(sample) {
    this.rows.push(sample);
    if (this.rows.length > KEPT_ROWS) this.rows = this.rows.filter((_, place) => place % 2 === 1);
    this.stretch(sample.at_ms / 1000);
    this.schedule();
  }

  setSegments(segments) {
    this.segments = segments;
    for (const part of segments) this.stretch(part.to_ms / 1000);
    this.schedule();
  }

  /** The time axis grows in steps, so that it does not creep with every sample. */
  stretch(toS) {
    if (toS <= this.spanS) return;
    const step = toS < 30 ? 5 : toS < 120 ? 15 : 60;
    this.spanS = Math.ceil(toS / step) * step;
  }

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    setTimeout(async () => {
      this.waiting = false;
      await this.render();
    }, 200);
  }

  async render() {
    const runs = [];
    for (const [key, view] of this.views) {
      view.signal("span", this.spanS);
      view.data("live", this.dataOf(key));
      runs.push(view.runAsync());
    }
    await Promise.all(runs);
    if (!this.pointed) this.readOut(null);
  }

  dataOf(key) {
    if (key === "waterfall") return this.segments.map((part) => ({ ...part }));
    const fields = this.panel(key).series.map((line) => line.field);
    return this.rows.map((row) => {
      const kept = { at_ms: row.at_ms };
      for (const field of fields) kept[field] = row[field] ?? null;
      return kept;
    });
  }

  panel(key) {
    return this.drawing.panels.find((panel) => panel.key === key);
  }

  /** Above each chart: the stroke, name and value of each of its lines. */
  prepareLegends() {
    for (const panel of this.drawing.panels) {
      const place = this.figures.get(panel.key)?.querySelector("[data-readout]");
      if (!place) continue;
      place.replaceChildren(
        ...panel.series.map((line, number) =>
          element("span", { "data-field": line.field }, stroke(number), line.label, " ", element("b")),
        ),
      );
    }
  }

  watchPointer() {
    this.root.addEventListener("pointermove", (event) => {
      const canvas = event.target.closest?.(".chart-canvas");
      if (!canvas) return this.leave();
      const box = canvas.getBoundingClientRect();
      const plot = box.width - this.drawing.axis_px - this.drawing.right_px;
      const share = (event.clientX - box.left - this.drawing.axis_px) / plot;
      if (share < 0 || share > 1) return this.leave();
      this.pointed = true;
      this.crosshair(this.drawing.axis_px + share * plot);
      this.readOut(share * this.spanS * 1000);
      const whole = canvas.closest("[data-chart]").dataset.chart === "waterfall";
      this.pointRequest(whole ? (event.clientY - box.top - TOP_PAD) : null, share * this.spanS * 1000);
    });
    this.root.addEventListener("pointerleave", () => this.leave());
  }

  leave() {
    if (!this.pointed) return;
    this.pointed = false;
    this.crosshair(null);
    this.readOut(null);
    this.pointRequest(null);
  }

  crosshair(x) {
    for (const figureElement of this.figures.values()) {
      const line = figureElement.querySelector(".crosshair");
      line.hidden = x === null;
      if (x !== null) line.style.transform = `translateX(${x.toFixed(1)}px)`;
    }
  }

  /** Values at `atMs`, or the latest ones for null. */
  readOut(atMs) {
    const row = this.rowAt(atMs);
    for (const panel of this.drawing.panels) {
      const place = this.figures.get(panel.key)?.querySelector("[data-readout]");
      if (!place) continue;
      panel.series.forEach((line) => {
        const shown = place.querySelector(`[data-field="${line.field}"]`);
        const value = row?.[line.field];
        shown.hidden = panel.series.length > 2 && !this.rows.some((known) => known[line.field] != null);
        const text = typeof value === "number" ? decimal(value * panel.factor, panel.decimals) : "—";
        shown.querySelector("b").textContent = text;
      });
    }
    const clockPlace = this.root.parentElement.querySelector("[data-pointed-time]");
    if (clockPlace) clockPlace.textContent = atMs === null ? "" : `${decimal(atMs / 1000, 1)} s`;
  }

  rowAt(atMs) {
    if (!this.rows.length) return null;
    if (atMs === null) return this.rows[this.rows.length - 1];
    let best = this.rows[0];
    for (const row of this.rows) {
      if (Math.abs(row.at_ms - atMs) < Math.abs(best.at_ms - atMs)) best = row;
    }
    return best;
  }

  /** Name the request and phase under the pointer, `y` px below the top of the waterfall's plot. */
  pointRequest(y, atMs) {
    const place = this.figures.get("waterfall")?.querySelector("[data-readout]");
    if (!place) return;
    place.textContent = "";
    if (y === null || !this.segments.length) return;
    const height = this.drawing.waterfall.spec.height;
    const last = Math.max(...this.segments.map((part) => part.row)) + 0.86;
    const row = Math.floor((y / height) * last);
    const part = this.segments.find((item) => item.row === row && item.from_ms <= atMs && atMs <= item.to_ms);
    if (part) {
      const name = this.drawing.phases[part.phase]?.label ?? part.phase;
      place.textContent = `${part.id} · ${name} ${figure(part.to_ms - part.from_ms, "ms")} ms`;
    }
  }

  /** The chart's data as a table, for those who can't see it. */
  writeTable(key) {
    const place = this.figures.get(key).querySelector("[data-table]");
    const [head, body] = key === "waterfall" ? this.waterfallTable() : this.seriesTable(this.panel(key));
    if (!body.length) {
      place.replaceChildren(element("p", { class: "muted" }, this.drawing.texts.nothing));
      return;
    }
    const cells = (tag, values) => values.map((value, column) => element(column ? "td" : tag, { class: column ? "num" : "" }, value));
    place.replaceChildren(
      element(
        "table",
        { class: "table compact" },
        element("thead", {}, element("tr", {}, ...head.map((name, column) => element("th", { scope: "col", class: column ? "num" : "" }, name)))),
        element("tbody", {}, ...body.map((row) => element("tr", {}, ...cells("td", row)))),
      ),
    );
  }

  seriesTable(panel) {
    const step = Math.max(1, Math.ceil(this.rows.length / TABLE_ROWS));
    const rows = this.rows.filter((_, place) => place % step === 0);
    return [
      [`${this.drawing.texts.time} (s)`, ...panel.series.map((line) => `${line.label} (${panel.unit})`)],
      rows.map((row) => [
        decimal(row.at_ms / 1000, 1),
        ...panel.series.map((line) => (row[line.field] == null ? "—" : decimal(row[line.field] * panel.factor, panel.decimals))),
      ]),
    ];
  }

  waterfallTable() {
    const phases = Object.entries(this.drawing.phases);
    const requests = new Map();
    for (const part of this.segments) {
      if (!requests.has(part.row)) requests.set(part.row, { id: part.id, from: part.from_ms });
      requests.get(part.row)[part.phase] = part.to_ms - part.from_ms;
    }
    return [
      [this.drawing.texts.request, `${this.drawing.texts.start} (s)`, ...phases.map(([, phase]) => `${phase.label} (ms)`)],
      [...requests.values()].map((request) => [
        request.id,
        decimal(request.from / 1000, 2),
        ...phases.map(([name]) => figure(request[name], "ms")),
      ]),
    ];
  }
}
