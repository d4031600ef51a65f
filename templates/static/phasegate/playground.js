// The playground: sends one request to one or two models, shows each answer and its phases as they come.

import { element, figure } from "./figures.js";

const SVG = "http://www.w3.org/2000/svg";
const UNITS = 1000;
const LEAST_SPAN_MS = 500;
const form = document.querySelector("[data-playground]");
const words = JSON.parse(document.getElementById("playground-words").textContent);
const PHASES = Object.keys(words.phases);

const fill = (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => values[name]);

/** One side: its settings, its answer, its drawing. */
class Side {
  constructor(root) {
    this.root = root;
    this.controller = null;
    this.save?.addEventListener("click", () => fillSaveForm(this));
  }

  find(name) {
    return this.root.querySelector(`[data-${name}]`);
  }

  get save() {
    return this.find("save");
  }

  value(name) {
    return this.root.querySelector(`[name="${name}"]`).value;
  }

  /** The body of the request; fields left empty are left out. */
  body(prompt) {
    const system = this.value("system").trim();
    const made = {
      model: this.value("model"), stream: true, metrics: true, stream_options: { include_usage: true },
      messages: [...(system ? [{ role: "system", content: system }] : []), { role: "user", content: prompt }],
    };
    for (const name of ["temperature", "top_p", "max_tokens", "seed"]) {
      if (this.value(name) !== "") made[name] = Number(this.value(name));
    }
    return made;
  }

  get settings() {
    return ["temperature", "top_p", "max_tokens", "seed"].map((name) => `${name}=${this.value(name)}`).join(" ");
  }

  async ask(prompt) {
    this.begun = performance.now();
    this.marks = [["waited_ms", 0]];
    this.metrics = this.usage = this.finish = null;
    this.ended = false;
    this.asked = { prompt, model: this.value("model"), settings: this.settings };
    this.controller = new AbortController();
    this.find("answer").textContent = "";
    this.find("answer").setAttribute("aria-busy", "true");
    for (const name of ["figures", "table-fold"]) this.find(name).hidden = true;
    this.find("drawing").hidden = false;
    if (this.save) this.save.disabled = true;
    this.say(words.texts.sent);
    try {
      await this.follow(await this.send(prompt));
      this.say(this.finish === "length" ? words.texts.length : words.texts.done);
    } catch (error) {
      this.say(error.name === "AbortError" ? words.texts.stopped : this.reason(error));
    }
    this.ended = true;
    this.endedMs = performance.now() - this.begun;
    this.find("answer").removeAttribute("aria-busy");
    this.show();
  }

  async send(prompt) {
    const response = await fetch(words.url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "X-CSRFToken": form.querySelector('[name="csrfmiddlewaretoken"]').value,
      },
      body: JSON.stringify(this.body(prompt)),
      signal: this.controller.signal,
    });
    if (!response.ok) throw refusal((await response.json()).error);
    return response.body;
  }

  async follow(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        if (part.startsWith("data: ") && part !== "data: [DONE]") this.take(JSON.parse(part.slice(6)));
      }
    }
  }

  take(event) {
    if (event.error) throw refusal(event.error);
    if (event.object === "phasegate.phase") return this.takePhase(event);
    if (event.usage) this.usage = event.usage;
    if (event.metrics) this.metrics = event.metrics;
    const choice = event.choices?.[0];
    if (choice?.finish_reason) this.finish = choice.finish_reason;
    if (choice?.delta?.content) this.find("answer").append(choice.delta.content);
  }

  takePhase(event) {
    const { phase } = event;
    const texts = words.texts;
    if (phase === "waiting") {
      const held = event.run === null ? texts.held : fill(texts.held_by, { run: `R${event.run}` });
      this.say(event.held ? held : fill(texts.waiting, { depth: event.depth }));
    } else if (phase === "loading") {
      this.mark("model_load_ms", this.marks.at(-1)[0] === "waited_ms" ? this.takenMs ?? event.at_ms : event.at_ms);
      this.say(texts.loading);
    } else if (phase === "taken") {
      this.takenMs = event.at_ms;
      this.mark("queue_ms", event.at_ms);
      this.say(texts.taken);
    } else if (phase === "queued") {
      this.mark("prefill_ms", event.at_ms);
      this.say(texts.queued);
    } else if (phase === "text") {
      this.mark("decode_ms", event.at_ms);
      this.say(texts.decode);
    }
  }

  /** The phase that goes on from now; the boundary of queue and prefill is told at the end only. */
  mark(phase, atMs) {
    if (this.marks.at(-1)[0] !== phase) this.marks.push([phase, atMs]);
  }

  say(text) {
    const place = this.find("status");
    if (place.textContent !== text) place.textContent = text;
  }

  reason(error) {
    if (error.code in words.errors) return words.errors[error.code];
    return fill(words.texts.failed, { detail: error.message });
  }

  get spanMs() {
    return this.begun === undefined ? 0 : this.ended ? this.exactMs ?? this.endedMs : performance.now() - this.begun;
  }

  get exactMs() {
    return this.metrics && PHASES.reduce((sum, phase) => sum + this.partMs(phase), 0);
  }

  /** The length of a phase by the stamps of site and engine; what they leave of the whole is `rest`. */
  partMs(phase) {
    if (phase !== "rest_ms") return Math.max(this.metrics[phase] ?? 0, 0);
    const known = PHASES.filter((name) => name !== "rest_ms").reduce((sum, name) => sum + this.partMs(name), 0);
    return Math.max((this.metrics.e2e_ms ?? 0) - known, 0);
  }

  parts() {
    if (this.metrics) {
      let at = 0;
      return PHASES.map((phase) => ({ phase, from: at, to: (at += this.partMs(phase)) }));
    }
    const now = this.spanMs;
    return this.marks.map(([phase, from], place) => ({ phase, from, to: this.marks[place + 1]?.[1] ?? now }));
  }

  draw(spanMs) {
    if (this.begun === undefined) return;
    const rects = this.parts().filter((part) => part.to > part.from).map((part) => {
      const rect = document.createElementNS(SVG, "rect");
      const scale = UNITS / spanMs;
      const at = { x: part.from * scale, y: 1, width: Math.max((part.to - part.from) * scale, 1), height: 24 };
      for (const [name, value] of Object.entries(at)) rect.setAttribute(name, value.toFixed(1));
      rect.setAttribute("class", words.phases[part.phase].css);
      const title = document.createElementNS(SVG, "title");
      title.textContent = `${words.phases[part.phase].label} ${figure(part.to - part.from, "ms")} ms`;
      rect.append(title);
      return rect;
    });
    const svg = this.find("timeline");
    svg.replaceChildren(...rects);
    svg.setAttribute("aria-label", rects.map((rect) => rect.textContent).join(", "));
    this.find("span").textContent = `${figure(spanMs, "ms")} ms`;
  }

  /** What is known once the answer has ended. */
  show() {
    const { metrics, usage } = this;
    if (!metrics) return;
    for (const place of this.root.querySelectorAll("[data-figure]")) {
      place.textContent = `${figure(metrics[place.dataset.figure], "ms")} ms`;
    }
    this.find("tokens").textContent = [usage?.prompt_tokens, metrics.cached_tokens, usage?.completion_tokens]
      .map((count) => figure(count, "count")).join(" / ");
    this.find("phases").replaceChildren(
      ...PHASES.map((phase) => element("tr", {}, element("th", { scope: "row" }, words.phases[phase].label),
        element("td", { class: "num" }, figure(phase === "rest_ms" ? this.partMs(phase) : metrics[phase], "ms")))),
    );
    for (const name of ["figures", "table-fold"]) this.find(name).hidden = false;
    if (!this.find("answer").textContent) this.find("answer").textContent = words.texts.nothing;
    if (this.save) this.save.disabled = false;
    noteAsked(this);
  }
}

function refusal(error) {
  return Object.assign(new Error(error.message), { code: error.code });
}

function noteAsked(side) {
  const { asked, metrics, usage } = side;
  const short = asked.prompt.length > 60 ? `${asked.prompt.slice(0, 60)}…` : asked.prompt;
  const numbers = ["waited_ms", "queue_ms", "prefill_ms", "decode_ms", "ttft_ms", "tpot_ms"];
  document.querySelector("[data-asked-rows]").prepend(
    element("tr", {},
      element("td", { class: "wrap" }, short), element("td", {}, asked.model),
      element("td", { class: "small" }, asked.settings),
      ...numbers.map((name) => element("td", { class: "num" }, figure(metrics[name], "ms"))),
      element("td", { class: "num" }, figure(usage?.completion_tokens, "count"))),
  );
  document.querySelector("[data-asked]").hidden = false;
}

function fillSaveForm(side) {
  const card = document.querySelector("[data-save-card]");
  const set = (name, value) => { card.querySelector(`[name="${name}"]`).value = value ?? ""; };
  set("prompt", side.asked.prompt);
  set("input_tokens", side.usage?.prompt_tokens);
  set("output_tokens", side.usage?.completion_tokens);
  set("temperature", side.value("temperature") || 0);
  set("seed", side.value("seed") || 0);
  card.hidden = false;
  card.querySelector("h2").focus();
  card.scrollIntoView({ block: "start" });
}

function start() {
  const sides = [...form.querySelectorAll("[data-side]")].map((root) => new Side(root));
  const [send, stop] = [form.querySelector("[data-send]"), form.querySelector("[data-stop]")];
  const shown = () => sides.filter((side) => !side.root.hidden);
  let open = 0;

  function draw() {
    const span = Math.max(LEAST_SPAN_MS, ...shown().map((side) => side.spanMs));
    for (const side of shown()) side.draw(span);
    if (open) requestAnimationFrame(draw);
  }

  async function ask(event) {
    event?.preventDefault();
    if (open || !form.reportValidity()) return;
    const asked = shown();
    open = asked.length;
    send.disabled = true;
    stop.disabled = false;
    const prompt = form.elements.prompt.value;
    const answers = asked.map((side) => side.ask(prompt).finally(() => { open -= 1; }));
    requestAnimationFrame(draw);
    await Promise.all(answers);
    draw();
    send.disabled = false;
    stop.disabled = true;
  }

  form.addEventListener("submit", ask);
  form.elements.prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(event);
  });
  stop.addEventListener("click", () => sides.forEach((side) => side.controller?.abort()));
  const both = form.elements.both;
  const showSides = () => {
    sides[1].root.hidden = !both.checked;
    form.querySelector("[data-sides]").classList.toggle("two", both.checked);
  };
  both.addEventListener("change", showSides);
  showSides();
}

if (form) start();
