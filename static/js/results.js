/* A ranking of many runs: long tiers are folded, and a run is found by its name. Without this
   script all rows are there. What is open stays so when new numbers arrive, and these are said. */
"use strict";

const SHOWN_OF_A_TIER = 8;
const opened = new Set();
let words = "";

/** The rows of each tier, in their order. */
function tiers(table) {
  const found = new Map();
  for (const row of table.querySelectorAll("tbody tr[data-tier]")) {
    if (!found.has(row.dataset.tier)) found.set(row.dataset.tier, []);
    found.get(row.dataset.tier).push(row);
  }
  return found;
}

function show(table) {
  for (const [tier, rows] of tiers(table)) {
    const button = table.querySelector(`button[data-of="${tier}"]`);
    const folds = button !== null && !opened.has(tier) && words === "";
    rows.forEach((row, at) => {
      const named = row.dataset.tag.toLowerCase().includes(words);
      row.hidden = words === "" ? folds && at >= SHOWN_OF_A_TIER : !named;
    });
    if (!button) continue;
    button.closest("tr").hidden = words !== "";
    const rest = rows.length - SHOWN_OF_A_TIER;
    const whose = tier === "None" ? "whose value is not known" : `of tier ${tier}`;
    button.textContent = folds ? `Show ${rest} more runs ${whose}` : `Show only the first ${SHOWN_OF_A_TIER} runs ${whose}`;
    button.setAttribute("aria-expanded", String(!folds));
  }
  const none = [...table.querySelectorAll("tbody tr[data-tier]")].every((row) => row.hidden);
  table.classList.toggle("nothing-found", none);
}

/** Adds what folds to a table that has just come. */
function prepare() {
  const tools = document.getElementById("ranking-tools");
  const table = document.querySelector("table.ranking[data-many]");
  if (!table || !tools) return;
  tools.hidden = false;
  const field = tools.querySelector("input");
  if (field.value !== words) field.value = words;
  if (!table.dataset.folds) {
    table.dataset.folds = "1";
    for (const [tier, rows] of tiers(table)) {
      if (rows.length <= SHOWN_OF_A_TIER + 4) continue;
      const cell = document.createElement("td");
      cell.colSpan = 99;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "btn link";
      button.dataset.of = tier;
      cell.append(button);
      const line = document.createElement("tr");
      line.className = "folded";
      line.append(cell);
      rows.at(-1).after(line);
    }
  }
  show(table);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-of]");
  if (!button) return;
  const tier = button.dataset.of;
  if (!opened.delete(tier)) opened.add(tier);
  prepare();
});

document.addEventListener("input", (event) => {
  if (event.target.closest("#ranking-tools")) {
    words = event.target.value.trim().toLowerCase();
    prepare();
  }
});

/* What has come is said once, to whoever does not see it come. */
let batch = null;

function announce() {
  const head = document.querySelector("#live-head .live-head > span");
  const now = head?.querySelector("strong")?.textContent;
  if (batch && now && now !== batch) {
    document.getElementById("announce").textContent = `New numbers: ${head.textContent.trim()}.`;
  }
  batch = now ?? batch;
}

function arrive() {
  prepare();
  announce();
}

arrive();
for (const name of ["htmx:afterSwap", "htmx:oobAfterSwap"]) document.addEventListener(name, arrive);
