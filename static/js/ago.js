/* Keeps "8 s ago" true while the page stands open. */
"use strict";

function ago(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}

function refresh() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const text = ago((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

refresh();
setInterval(refresh, 5000);
document.addEventListener("htmx:afterSwap", refresh);
