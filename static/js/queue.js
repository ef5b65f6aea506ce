/* Going through a queue with the keyboard. Without it everything is there as links and buttons. */
"use strict";

const items = [...document.querySelectorAll("[data-queue] [data-item]")];

function goTo(index) {
  const item = items[Math.max(0, Math.min(items.length - 1, index))];
  item?.focus({ preventScroll: true });
  item?.scrollIntoView({ block: "nearest" });
}

/* Keyboards of other scripts have these letters in the places where the Latin one has them. */
const keyOf = ({ key, code }) => (key > "~" ? code.replace("Key", "").toLowerCase() : key);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  const here = items.indexOf(event.target.closest("[data-item]"));
  const item = items[here];
  const key = keyOf(event);
  if (!keysAreOn() && key !== "Enter") return;
  if (key === "j") goTo(here + 1);
  else if (key === "k") goTo(here - 1);
  else if (key === "Enter" && item === event.target) item.querySelector("[data-open]").click();
  else if (key === "m" && item) item.querySelector("[data-seen]")?.click();
  else return;
  event.preventDefault();
});

/* Back from marking one. No element is called so: one that is would take the focus with it. */
if (location.hash === "#next") goTo(0);
