/* The judging page: keys, time on task, and an answer that is kept until the server has it.
   Without this script the page works as plain forms. */
"use strict";

const PAUSES = [2, 4, 8, 15, 30];
/* Of an empty queue: the first pause, and the longest. */
const SOON_SECONDS = [2, 15];
const LATER_SECONDS = [30, 30];
const SLOWER = 1.5;
const SIGN_IN = "/sign-in/";

/** The answer under way: form, the button that was pressed, failures so far, timer of the next try. */
let pending = null;
let shownSince = performance.now();
let secondsBefore = 0;

const narrow = () => matchMedia("(max-width: 860px)").matches;
const find = (id) => document.getElementById(id);

/* Time on task: only while the page is in sight. */
function seconds() {
  const now = document.hidden ? 0 : (performance.now() - shownSince) / 1000;
  return Math.min(86400, secondsBefore + now);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) secondsBefore += (performance.now() - shownSince) / 1000;
  else shownSince = performance.now();
});

function fillSeconds() {
  const field = find("judgment")?.elements.seconds;
  if (field) field.value = seconds().toFixed(1);
}

/* A fresh pair on the desk. */
function arrive() {
  secondsBefore = 0;
  shownSince = performance.now();
  restoreFolds();
  restoreComment();
  markComment();
  markKeys();
  if (!narrow()) find("document")?.focus({ preventScroll: true });
  const said = find("desk").dataset.announce;
  if (find("announce").textContent !== said) find("announce").textContent = said;
  if ((idleLink()?.dataset.lookAgain ?? null) !== looked.kind) planToLook();
}

function restoreFolds() {
  for (const fold of document.querySelectorAll("details[data-remember]")) {
    const kept = sessionStorage.getItem("fold." + fold.dataset.remember);
    fold.open = kept === null ? fold.open && !narrow() : kept === "open";
  }
}

document.addEventListener("click", (event) => {
  const fold = event.target.closest("summary")?.parentElement;
  if (fold?.dataset.remember) {
    sessionStorage.setItem("fold." + fold.dataset.remember, fold.open ? "closed" : "open");
  }
});

/* A panel that opens takes the keyboard to its first field. */
document.addEventListener("toggle", (event) => {
  if (event.newState === "open" && event.target.matches(".panel")) {
    event.target.querySelector("textarea, form button, button")?.focus();
  }
}, true);

function markComment() {
  const comment = find("comment");
  if (comment) find("comment-button").classList.toggle("filled", comment.value.trim() !== "");
}
document.addEventListener("input", (event) => {
  if (event.target.id !== "comment") return;
  markComment();
  draft((kept, name) => kept.setItem(name, event.target.value));
});

/* A comment that is under way outlives a reload in this tab, until its answer is saved. */
function draft(work) {
  try {
    return work(sessionStorage, "comment." + find("judgment").getAttribute("action"));
  } catch {
    return null; /* A browser that keeps nothing, or no pair on the desk. */
  }
}

function restoreComment() {
  const written = draft((kept, name) => kept.getItem(name));
  if (written !== null) find("comment").value = written;
}

const forgetComment = () => draft((kept, name) => kept.removeItem(name));

document.addEventListener("click", (event) => event.target.closest("#cancel") && forgetComment());

/* What was written is put back by the browser after all scripts, when somebody goes back. */
window.addEventListener("pageshow", markComment);

/* Keys */
const typing = (target) => target.closest("input, textarea, select") !== null;

const GRADING = /^(\d|ArrowLeft|ArrowRight)$/;
const gradeButton = (key) => document.querySelector(`.grade-button[data-key~="${key}"]`);

function press(key) {
  if (GRADING.test(key)) return gradeButton(key)?.click();
  if (key === "l") return find("later")?.querySelector("button").click();
  if (key === "u") return find("undo")?.click();
  if (key === "Escape") return find("cancel")?.click();
  const panel = find({ s: "skip-panel", c: "comment-panel", "?": "guide" }[key] ?? "");
  return panel?.showPopover();
}

/* The key as it is called here. Keyboards of other scripts have these letters in the places where
   the Latin one has them, some have digits only with Shift, or digits of their own. */
function keyOf(event) {
  const { key, code, shiftKey } = event;
  if (/^[\dslcu?]$/.test(key) || key.length > 1) return key;
  if (key === "؟") return "?";
  if (shiftKey) return key;
  const place = /^(?:(?:Digit|Numpad)(\d)|Key([A-Z]))$/.exec(code);
  return place?.[1] ?? (key > "~" && place ? place[2] : key).toLowerCase();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  if (event.getModifierState("AltGraph")) return;
  const key = keyOf(event);
  if (document.querySelector(":popover-open")) {
    if (key === "?" && !typing(event.target) && keysAreOn()) find("guide").hidePopover();
    return;
  }
  if (typing(event.target) || pending || (!keysAreOn() && key !== "Escape")) return;
  /* An arrow is left to the browser where it grades nothing, or selects text. */
  const arrow = key.startsWith("Arrow");
  if (arrow && (event.shiftKey || !GRADING.test(key) || !gradeButton(key))) return;
  if (arrow || /^[\dslcu?]$|^Escape$/.test(key)) {
    event.preventDefault();
    press(key);
  }
});

/* An answer stays on screen, and is sent again under its key, until the server has taken it. */
function setState(state, text) {
  const place = find("save-state");
  if (!place) return;
  place.hidden = false;
  place.dataset.state = state;
  place.textContent = text;
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-own-errors]")) return;
  if (pending && (pending.form !== form || pending.flying || pending.button !== event.submitter)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  fillSeconds();
  pending ??= { form, button: event.submitter, failures: 0 };
  pending.flying = true;
  clearTimeout(pending.timer);
  find("desk").classList.add("sending");
  find("comment").readOnly = true;
  if (event.submitter?.matches(".grade-button")) choose(event.submitter);
  setState("saving", "Saving…");
}, true);

function choose(button) {
  for (const other of document.querySelectorAll(".grade-button")) {
    if (other === button) other.setAttribute("aria-pressed", "true");
    else other.removeAttribute("aria-pressed");
  }
}

document.addEventListener("htmx:configRequest", (event) => {
  const token = document.cookie.match(/(?:^|; )evalsite_csrf=([^;]+)/)?.[1];
  if (token && event.detail.verb === "post") event.detail.parameters.set("csrfmiddlewaretoken", token);
});

function retry() {
  if (pending && !pending.flying) pending.form.requestSubmit(pending.button);
}

function keepTrying(message, link) {
  if (!pending) return;
  const pause = PAUSES[Math.min(pending.failures, PAUSES.length - 1)];
  pending.failures += 1;
  pending.flying = false;
  pending.timer = setTimeout(retry, pause * 1000);
  setState("waiting", "Not saved yet");
  const again = Object.assign(document.createElement("button"), {
    type: "button", className: "btn small", textContent: "Try now",
  });
  again.addEventListener("click", retry);
  const parts = [`${message} Your answer is kept here and sent again in ${pause} s. `, again];
  if (link) parts.splice(1, 0, link, " ");
  const trouble = find("trouble");
  trouble.replaceChildren(...parts);
  trouble.hidden = false;
}

function otherTab(href, textContent) {
  return Object.assign(document.createElement("a"), { href, target: "_blank", textContent });
}

/* A guest has no password, and comes in by the link of the crowd. */
function signInLink() {
  const { wayIn } = find("desk").dataset;
  return wayIn ? otherTab(wayIn, "Come in again in another tab") : otherTab(SIGN_IN, "Sign in in another tab");
}

document.addEventListener("htmx:sendError", () => keepTrying("The server cannot be reached."));
document.addEventListener("htmx:timeout", () => keepTrying("The server does not answer."));
window.addEventListener("online", retry);

document.addEventListener("htmx:beforeSwap", (event) => {
  if (!pending) return;
  const { xhr } = event.detail;
  const signedOut = xhr.responseURL && new URL(xhr.responseURL).pathname === SIGN_IN;
  if (signedOut) {
    event.detail.shouldSwap = false;
    keepTrying("You were signed out.", signInLink());
  } else if (xhr.status === 403) {
    /* The browser forgot its cookies, or another account came in by another tab. */
    event.detail.shouldSwap = false;
    keepTrying("You are signed in no more, or as somebody else.", signInLink());
  } else if (xhr.status >= 500 || xhr.status === 429) {
    event.detail.shouldSwap = false;
    keepTrying("The server has a problem.");
  } else if (xhr.status < 400 && !xhr.responseText.includes('id="desk"')) {
    /* Of something between here and the site, or a page that has to be seen first. */
    event.detail.shouldSwap = false;
    keepTrying("Another page came in the place of an answer.", otherTab(location.href, "See it in another tab"));
  } else {
    settled(xhr.status < 400);
    find("desk").classList.remove("sending");
    if (xhr.status < 400) setState("saved", "Saved");
    else setState("waiting", "Not saved");
  }
});

/* A correction that was taken leads away, and no desk comes. */
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (pending && event.detail.xhr.getResponseHeader("HX-Redirect")) settled(true);
});

/* What is put off comes again, with its comment. */
function settled(taken) {
  clearTimeout(pending.timer);
  if (taken && pending.form.id !== "later") forgetComment();
  pending = null;
}

window.addEventListener("beforeunload", (event) => {
  if (pending) event.preventDefault();
});

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id === "desk" || event.detail.target?.id === "desk") {
    window.scrollTo(0, 0);
    arrive();
    if (document.activeElement === document.body) takeKeyboard();
  }
});

/* The button that was pressed is gone, and the keyboard would begin anew at the head of the page:
   it goes to the document, or to what is said where there is none. */
function takeKeyboard() {
  const place = find("document") ?? document.querySelector(".desk-idle h1");
  if (!place.hasAttribute("tabindex")) place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

/* An empty queue looks again by itself where somebody sees it: soon at first, then less and less
   often, and not all desks at the same moment. Whoever comes back, or presses a key, sees at once. */
const idleLink = () => document.querySelector("[data-look-again]");
let looked = { timer: 0, pause: 0, at: 0, kind: null };

function lookAgain() {
  const link = idleLink();
  if (!link) return;
  planToLook();
  if (document.hidden) return;
  looked.at = performance.now();
  link.click();
}

/* The next look, whatever becomes of the one under way: an answer that nothing has changed is empty. */
function planToLook() {
  clearTimeout(looked.timer);
  const kind = idleLink()?.dataset.lookAgain ?? null;
  if (kind !== looked.kind) looked = { ...looked, pause: 0, kind };
  if (kind === null) return;
  const [first, most] = kind === "soon" ? SOON_SECONDS : LATER_SECONDS;
  looked.pause = Math.min(most, looked.pause ? looked.pause * SLOWER : first);
  looked.timer = setTimeout(lookAgain, looked.pause * 1000 * (0.8 + 0.4 * Math.random()));
}

function lookAtOnce() {
  if (!idleLink() || document.hidden || performance.now() - looked.at < 1000) return;
  looked.pause = 0;
  lookAgain();
}
document.addEventListener("visibilitychange", lookAtOnce);
document.addEventListener("keydown", (event) => {
  const forItself = event.target.closest("a, button, input, textarea, select");
  if (!forItself && !event.defaultPrevented && !event.repeat && event.key !== "Tab") lookAtOnce();
});

document.addEventListener("DOMContentLoaded", () => {
  if (find("desk")) arrive();
});
