// Keeps one part of a page fresh by asking the server for it again; rests while nobody looks.

const EVERY_MS = 2_000;
const part = document.querySelector("[data-poll]");
const light = document.querySelector("[data-poll-light]");

function show(state) {
  if (!light) return;
  light.dataset.live = state;
  light.textContent = light.dataset[state === "open" ? "textOpen" : "textLost"];
}

async function refresh() {
  const response = await fetch(part.dataset.poll, { headers: { Accept: "text/html" }, redirect: "error" });
  if (!response.ok) throw new Error(String(response.status));
  const html = await response.text();
  // server-rendered by the same templates as the page itself
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  part.replaceChildren(...fresh.childNodes);
}

async function watch() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    if (document.hidden || part.contains(document.activeElement)) continue;
    try {
      await refresh();
      show("open");
    } catch {
      show("lost");
    }
  }
}

if (part) watch();
