/* Small comforts on every page. Nothing depends on them. */
"use strict";

/** A problem with the connection, said where error fragments are shown too. */
function say(message) {
  const place = document.getElementById("notices");
  if (!place) return;
  const notice = document.createElement("p");
  notice.className = "notice bad";
  notice.textContent = message;
  place.replaceChildren(notice);
}

/** Whether the form that sent the request looks after its own troubles. */
function ownErrors(event) {
  const sender = event.detail.requestConfig?.elt ?? event.target;
  return sender.closest("[data-own-errors]") !== null;
}

for (const failure of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(failure, (event) => {
    if (!ownErrors(event)) say("The server does not answer. Try again in a moment.");
  });
}

/* What was said of one address is over when that answers again. */
let troubled = null;
const addressOf = (event) => event.detail.pathInfo?.requestPath.split("?")[0];

for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(failure, (event) => {
    if (!ownErrors(event)) troubled = addressOf(event);
  });
}
document.addEventListener("htmx:afterRequest", (event) => {
  if (troubled === null || !event.detail.successful || addressOf(event) !== troubled) return;
  document.getElementById("notices")?.replaceChildren();
  troubled = null;
});

/* A part of the page that is replaced keeps what somebody has opened in it, and the place of the
   keyboard there. What has an id htmx finds again by itself. */
const toggled = new Map();
let focusedFold = null;

/** What opens, by the part it stands in, its row and its words; their numbers may change. */
function folds() {
  const found = new Map();
  for (const fold of document.querySelectorAll("details:not([data-remember])")) {
    const row = fold.closest("tr")?.querySelector("th")?.textContent ?? "";
    const words = fold.querySelector("summary").textContent.replaceAll(/\d/g, "");
    const key = [fold.parentElement.closest("[id]")?.id, row, words].join("\n");
    let number = 1;
    while (found.has(`${key} ${number}`)) number += 1;
    found.set(`${key} ${number}`, fold);
  }
  return found;
}

document.addEventListener("toggle", (event) => {
  for (const [key, fold] of folds()) if (fold === event.target) toggled.set(key, fold.open);
}, true);

document.addEventListener("htmx:beforeSwap", () => {
  const at = document.activeElement.closest("summary")?.parentElement;
  focusedFold = [...folds()].find(([, fold]) => fold === at) ?? null;
});

document.addEventListener("htmx:afterSettle", () => {
  const now = folds();
  for (const [key, fold] of now) fold.open = toggled.get(key) ?? fold.open;
  const [key, before] = focusedFold ?? [];
  if (before?.isConnected === false) now.get(key)?.querySelector("summary").focus({ preventScroll: true });
  focusedFold = null;
});

/* A session that ended meanwhile: the sign-in page must not land inside a fragment. */
document.addEventListener("htmx:beforeSwap", (event) => {
  const address = event.detail.xhr.responseURL;
  if (!address || ownErrors(event)) return;
  if (new URL(address).pathname === "/sign-in/") {
    event.detail.shouldSwap = false;
    location.reload();
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  source.select();
  try {
    await navigator.clipboard.writeText(source.value);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl+C";
  }
});

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

/* A double click sends a form once: the answer to the second time would say that it was in vain. */
const TOO_SOON_MS = 1000;
const sentAt = new WeakMap();
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented) return;
  if (event.timeStamp - (sentAt.get(event.target) ?? -TOO_SOON_MS) < TOO_SOON_MS) event.preventDefault();
  else sentAt.set(event.target, event.timeStamp);
});

/* A form that comes back: what it says has to be mended, or the field that is wrong. */
document.querySelector("[data-errors], [aria-invalid='true']")?.focus();

/* On a narrow screen, rows of tabs scroll: the current one is in sight. */
for (const tab of document.querySelectorAll(":is(.site-nav, .tabs) [aria-current]")) {
  tab.scrollIntoView({ block: "nearest", inline: "center" });
}

/* What is typed into the plan of a round is not what is on show beside it. */
document.addEventListener("input", (event) => {
  if (event.target.form?.id === "plan") document.getElementById("preview")?.classList.add("stale");
});
