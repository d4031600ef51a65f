// The project page: says when the project has moved on since the page was made.

import { follow } from "./live.js";

const head = document.querySelector("[data-project-stream]");
const notice = document.querySelector("[data-project-changed]");

if (head && notice) {
  follow(head.dataset.projectStream, {
    after: Number(head.dataset.after) || 0,
    onEvent: () => {
      notice.hidden = false;
    },
  });
}
