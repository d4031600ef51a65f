// The page of one matrix execution: the state and progress of each of its runs, as they change.

import { element, figure } from "./figures.js";
import { follow, showConnection } from "./live.js";

const page = document.querySelector("[data-matrix-page]");
const live = JSON.parse(document.getElementById("matrix-live").textContent);

function rowOf(pk) {
  return page.querySelector(`[data-run="${pk}"]`);
}

function showState(pk, data) {
  const row = rowOf(pk);
  const state = live.words.states[data.state];
  if (!row || !state) return;
  row.querySelector("[data-run-state]").replaceChildren(
    element("span", { class: `badge ${state.tone}`, "data-state": data.state }, state.label),
  );
  if (live.words.final.includes(data.state) && row.dataset.ended !== "yes") {
    row.dataset.ended = "yes";
    refresh();
  }
}

function showProgress(pk, data) {
  const row = rowOf(pk);
  const bar = row?.querySelector("progress");
  if (!bar) return;
  bar.max = data.total || 1;
  bar.value = data.done ?? 0;
  row.querySelector("[data-run-count]").textContent =
    `${figure(data.done ?? 0, "count")} / ${figure(data.total, "count")}`;
}

let refreshing = null;

/** What ended runs state is rendered by the server: fetch the page and take its figures. */
function refresh() {
  clearTimeout(refreshing);
  refreshing = setTimeout(async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of page.querySelectorAll("[data-part]")) {
      const other = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
      if (other) part.replaceChildren(...other.childNodes);
    }
  }, 250);
}

if (live.active) {
  follow(live.stream, {
    onEvent: (event) => {
      if (event.kind === "state") showState(event.data.run, event.data);
      if (event.kind === "progress") showProgress(event.data.run, event.data);
    },
    onConnection: showConnection(page),
  });
}
