// Follows one numbered event stream: every event once and in order, caught up after a lost connection.

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;
// close codes after which trying again is useless: bad request, not signed in, not permitted, unknown
const FINAL_CODES = new Set([4400, 4401, 4403, 4404]);

/**
 * Follow `stream` ("run:12") from after event number `after`.
 * `onEvent({number, kind, at, data})` is called in order; `onConnection("open" | "lost" | "refused")`
 * on every change of the connection. Returns a function that ends the following.
 */
export function follow(stream, { after = 0, onEvent, onConnection = () => {} }) {
  let last = after;
  let socket = null;
  let retryMs = FIRST_RETRY_MS;
  let timer = null;
  let ended = false;

  function connect() {
    timer = null;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/ws/streams/${stream}/?after=${last}`);
    socket.addEventListener("open", () => {
      retryMs = FIRST_RETRY_MS;
      onConnection("open");
    });
    socket.addEventListener("message", (message) => {
      const event = JSON.parse(message.data);
      if (event.number <= last) return;
      if (event.number !== last + 1) {
        socket.close(); // a gap: ask again from the last known number
        return;
      }
      last = event.number;
      onEvent(event);
    });
    socket.addEventListener("close", (closed) => {
      if (ended) return;
      if (FINAL_CODES.has(closed.code)) {
        ended = true;
        onConnection("refused");
        return;
      }
      onConnection("lost");
      timer = setTimeout(connect, retryMs * (0.75 + Math.random() / 2));
      retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    });
  }

  function retryNow() {
    if (timer === null || ended) return;
    clearTimeout(timer);
    connect();
  }

  window.addEventListener("online", retryNow);
  connect();
  return () => {
    ended = true;
    clearTimeout(timer);
    window.removeEventListener("online", retryNow);
    socket.close();
  };
}

/** Show the state of the connection in `[data-live]` and, while it is lost, in `[data-live-notice]`. */
export function showConnection(root) {
  const light = root.querySelector("[data-live]");
  const notice = root.querySelector("[data-live-notice]");
  return (state) => {
    if (light) {
      light.dataset.live = state;
      light.textContent = light.dataset[`text${state[0].toUpperCase()}${state.slice(1)}`] || "";
    }
    if (notice) notice.hidden = state !== "lost";
  };
}
