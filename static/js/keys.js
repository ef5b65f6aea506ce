/* Single keys can be switched off, for this browser: speech input and stray touches press nothing.
   For the scripts of pages that have such keys, and a box that is called "keys-on". */
"use strict";

const KEYS = "evalsite.keys";

function keysAreOn() {
  try {
    return localStorage.getItem(KEYS) !== "off";
  } catch {
    return true;
  }
}

function markKeys() {
  const on = keysAreOn();
  const box = document.getElementById("keys-on");
  document.body.classList.toggle("keyless", !on);
  if (box) box.checked = on;
}

document.addEventListener("change", (event) => {
  if (event.target.id !== "keys-on") return;
  try {
    localStorage.setItem(KEYS, event.target.checked ? "on" : "off");
  } catch {
    /* A browser that keeps nothing keeps the keys. */
  }
  markKeys();
});

document.addEventListener("DOMContentLoaded", markKeys);
