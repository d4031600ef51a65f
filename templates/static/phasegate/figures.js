// Numbers as the site writes them (the same rules as the template filters), and drawings of timelines.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN_UNITS = 1000;
const LEAST_UNITS = 1.5;
const SHOWN_FROM_MS = 0.05;

export function decimal(value, decimals) {
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function msDecimals(value) {
  const size = Math.abs(value);
  return size < 10 ? 2 : size < 100 ? 1 : 0;
}

const KINDS = {
  ms: (value) => decimal(value, msDecimals(value)),
  rate: (value) => decimal(value, 1),
  percent: (value) => decimal(value * 100, 1),
  mib: (value) => decimal(value / 2 ** 20, value >= 2 ** 27 ? 0 : 1),
  count: (value) => decimal(value, 0),
};

/** A figure as text, "—" when it was not observed. */
export function figure(value, kind) {
  return typeof value === "number" && Number.isFinite(value) ? KINDS[kind](value) : "—";
}

/** Seconds as "3:20". */
export function clock(totalMs) {
  const whole = Math.max(0, Math.round(totalMs / 1000));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawn(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** Intervals laid end to end from the request's own start: [{phase, from, to}] in ms. */
export function segments(intervals, phases, sentMs = 0) {
  let at = sentMs - (intervals.dispatch_delay || 0);
  const found = [];
  for (const phase of phases) {
    const length = Math.max(intervals[phase] || 0, 0);
    if (length >= SHOWN_FROM_MS) found.push({ phase, from: at, to: at + length });
    at += length;
  }
  return found;
}

export function totalMs(intervals, phases) {
  return phases.reduce((sum, phase) => sum + Math.max(intervals[phase] || 0, 0), 0);
}

/** The timeline of one request as SVG; `phases` is {name: {css, label}} in order. */
export function timelineDrawing(intervals, phases, spanMs) {
  const svg = drawn("svg", {
    class: "timeline-svg", viewBox: `0 0 ${DRAWN_UNITS} 14`, preserveAspectRatio: "none", role: "img",
  });
  const parts = segments(intervals, Object.keys(phases), intervals.dispatch_delay || 0);
  const words = parts.map((part) => `${phases[part.phase].label} ${figure(part.to - part.from, "ms")} ms`);
  svg.setAttribute("aria-label", words.join(", "));
  parts.forEach((part, place) => {
    const scale = spanMs > 0 ? DRAWN_UNITS / spanMs : 0;
    const rect = drawn("rect", {
      class: phases[part.phase].css,
      x: (part.from * scale).toFixed(1),
      y: 1,
      width: Math.max((part.to - part.from) * scale, LEAST_UNITS).toFixed(1),
      height: 12,
    });
    const title = drawn("title", {});
    title.textContent = words[place];
    rect.append(title);
    svg.append(rect);
  });
  return svg;
}

/** The short stroke that stands for a line of a chart in its legend. */
export function stroke(place) {
  const svg = drawn("svg", { class: `stroke stroke-${place}`, viewBox: "0 0 18 8", width: 18, height: 8 });
  svg.append(drawn("line", { x1: 0, y1: 4, x2: 18, y2: 4 }));
  svg.setAttribute("aria-hidden", "true");
  return svg;
}
