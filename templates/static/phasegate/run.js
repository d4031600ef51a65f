// The page of one run: draws its charts and, while it is active, moves with its event stream.

import { Charts } from "./charts.js";
import { clock, element, figure, segments, timelineDrawing, totalMs } from "./figures.js";
import { follow, showConnection } from "./live.js";

const page = document.querySelector("[data-run-page]");
const drawing = JSON.parse(document.getElementById("run-drawing").textContent);
const chartsRoot = page.querySelector("[data-charts]");
const charts = chartsRoot ? new Charts(chartsRoot, drawing) : null;
const drawnCharts = charts ? charts.draw() : Promise.resolve();
const words = drawing.words;
const requests = new Map();

/** A sample with the figures of memory beside the others, as the charts read it. */
function flat(sample) {
  const row = {};
  const memory = {};
  for (const [key, value] of Object.entries(sample)) {
    if (value !== null && typeof value === "object") continue;
    row[key] = value;
    if (key.endsWith("_bytes")) memory[key] = value;
  }
  Object.assign(memory, sample.memory);
  for (const [key, value] of Object.entries(memory)) row[`memory_${key}`] = value;
  return row;
}

let watermark = null;

function showTiles(row) {
  const known = ["memory_gpu_memory_used_bytes", "memory_rss_bytes"].find((key) => row[key] != null);
  if (known) watermark = Math.max(watermark ?? 0, row[known]);
  const values = { ...row, memory_watermark_bytes: watermark };
  for (const place of page.querySelectorAll("[data-figure]")) {
    if (values[place.dataset.figure] == null) continue; // keep the last figure that was observed
    place.textContent = figure(values[place.dataset.figure], place.dataset.kind);
  }
  if (row.n) { // none in the window: the figures are those of earlier requests, and so is their n
    for (const place of page.querySelectorAll("[data-figure-n]")) place.textContent = figure(row.n, "count");
  }
}

function showProgress(data) {
  const bar = page.querySelector("[data-progress-bar]");
  if (!bar) return;
  if (data.total) {
    bar.max = data.total;
    bar.value = data.done ?? 0;
  } else {
    bar.removeAttribute("value");
  }
  const set = (name, text) => {
    const place = page.querySelector(`[data-progress="${name}"]`);
    if (place) place.textContent = text;
  };
  if (data.phase) set("phase", words.states[data.phase]?.label ?? data.phase);
  set("count", `${figure(data.done ?? 0, "count")} / ${figure(data.total, "count")}`);
  set("failed", figure(data.failed ?? 0, "count"));
  if (data.stages > 1) set("stage", `${words.stages[data.stage] ?? data.stage} ${data.stage_number} / ${data.stages}`);
  if (data.elapsed_ms != null) set("elapsed", clock(data.elapsed_ms));
}

function showState(data) {
  const badge = page.querySelector("[data-state-badge]");
  const state = words.states[data.state];
  if (badge && state) {
    badge.replaceChildren(element("span", { class: `badge ${state.tone}`, "data-state": data.state }, state.label));
  }
  if (words.final.includes(data.state)) {
    stop();
    // what the ended run states is rendered by the server
    setTimeout(() => location.reload(), 300);
  }
}

function showSlowest(rows) {
  for (const row of rows) requests.set(row.index, row);
  const body = page.querySelector("[data-slowest]");
  if (body) {
    const phases = drawing.phases;
    const spanMs = Math.max(...rows.map((row) => totalMs(row.intervals_ms, Object.keys(phases))), 1);
    page.querySelector("[data-slowest-span]").textContent = `${figure(spanMs, "ms")} ms`;
    body.replaceChildren(
      ...rows.map((row) => {
        const outcome = words.outcomes[row.outcome] ?? { label: row.outcome, tone: "calm" };
        return element(
          "tr",
          {},
          element("td", {}, row.id),
          element("td", {}, element("span", { class: `badge ${outcome.tone}` }, outcome.label)),
          element("td", { class: "num" }, figure(row.e2e_ms, "ms")),
          element("td", { class: "num" }, figure(row.intervals_ms.queue_wait, "ms")),
          element("td", { class: "num" }, figure(row.intervals_ms.prefill, "ms")),
          element("td", { class: "num" }, figure(row.intervals_ms.decode, "ms")),
          element("td", { class: "timeline-cell" }, timelineDrawing(row.intervals_ms, phases, spanMs)),
        );
      }),
    );
  }
  showWaterfall();
}

function showWaterfall() {
  if (!charts) return;
  const known = [...requests.values()].filter((row) => sentMs(row) != null);
  known.sort((a, b) => sentMs(a) - sentMs(b) || a.index - b.index);
  charts.setSegments(
    known.flatMap((row, place) =>
      segments(row.intervals_ms, Object.keys(drawing.phases), sentMs(row)).map((part) => ({
        row: place, id: row.id, phase: part.phase, from_ms: part.from, to_ms: part.to,
      })),
    ),
  );
}

function sentMs(row) {
  return row.started_ms ?? row.offsets?.sent ?? row.offsets?.sent_ms ?? null;
}

const handlers = {
  state: showState,
  progress: showProgress,
  sample(data) {
    const row = flat(data);
    charts?.push(row);
    showTiles(row);
  },
  requests: (data) => {
    for (const row of data.rows) requests.set(row.index, row);
    showWaterfall();
  },
  slowest: (data) => showSlowest(data.rows),
};

let stop = () => {};
if (drawing.live) {
  await drawnCharts;
  stop = follow(drawing.stream, {
    onEvent: (event) => handlers[event.kind]?.(event.data),
    onConnection: showConnection(page),
  });
}
