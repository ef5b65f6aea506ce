/* Keeps "8 s ago" true while the page stands open, by the server's clock: a browser's may be wrong. */
"use strict";

function ago(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}

const seen = new WeakMap();

function refresh() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    if (!seen.has(time)) seen.set(time, Date.now());
    const text = ago(Number(time.dataset.ago) + (Date.now() - seen.get(time)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

refresh();
setInterval(refresh, 5000);
document.addEventListener("htmx:afterSwap", refresh);
