/* The curve with which a round is planned: whatever is moved or typed, all else follows.

   What budgets reach comes with the page, once for every design; moving along it asks nobody. The
   budget is what is saved: the server reads the other fields only where there is no script. */
"use strict";

const NAMES = ["half_width", "best", "decided", "hours"];
const CAREFUL = { half_width: "half_width_most", best: "best_least", decided: "decided_least" };
const HOPED = { half_width: "half_width", best: "best_most", decided: "decided_most" };

/** What the page brought; null where nobody can tell what budgets reach. */
function facts() {
  const place = document.getElementById("curve");
  if (!place?.dataset.reached) return null;
  if (place.facts === undefined) place.facts = JSON.parse(place.dataset.reached);
  return place.facts;
}

const budgetField = () => document.querySelector("#plan [name=budget]");
const targetField = (name) => document.getElementById(`id_target-${name}`);

/** What a budget reaches: straight lines between those that were worked out, as the server has it. */
function reachedAt(known, budget) {
  const lines = known.lines;
  const last = lines.length - 1;
  if (budget <= lines[0].budget) return { ...lines[0] };
  if (budget >= lines[last].budget) return { ...lines[last] };
  const place = lines.findIndex((line) => budget <= line.budget);
  const [low, high] = [lines[place - 1], lines[place]];
  const part = (budget - low.budget) / (high.budget - low.budget);
  const found = {};
  for (const name of Object.keys(high)) {
    const ends = part === 1 ? [high[name], high[name]] : [low[name], high[name]];
    found[name] = ends.includes(null) ? null : (1 - part) * ends[0] + part * ends[1];
  }
  return found;
}

/** Where a column first reaches a level; null if it never does. */
function firstReaching(known, column, level, sign) {
  let before = null;
  for (const line of known.lines) {
    const y = line[column] === null ? -Infinity : sign * line[column];
    if (y >= level) {
      if (before === null) return line.budget * (level > 0 && level < y ? level / y : 1);
      if (y <= before[1] || before[1] === -Infinity) return line.budget;
      return before[0] + ((level - before[1]) / (y - before[1])) * (line.budget - before[0]);
    }
    before = [line.budget, y];
  }
  return null;
}

/** All that is worked out: of draws with replacement no number of them judges the whole pool. */
const all = (known) => (known.draws ? `${grouped(known.draws)} draws` : "the whole pool");
const outOfReach = (known) =>
  `Not even with ${all(known)}${known.draws ? "" : " judged"}: this is out of reach, so the budget stays what it is.`;
const hopedOnly = (known) =>
  `Enough ${known.hoped}; otherwise not even ${all(known)} may do. The field says what is reached at least.`;
const allOfIt = (known) =>
  known.draws
    ? `More than ${all(known)} take, and no more are worked out: the budget is for these.`
    : "More than the whole pool takes: the budget is for all of it.";
const expected = (name) => `Expected a number above 0${name === "best" || name === "decided" ? ", up to 100" : ""}: the budget stays what it is.`;

/** The budget for what somebody typed, the careful one if there is one, and what is to be said of
    it; null for what is out of reach, or no wish. */
function budgetFor(known, name, wanted) {
  const isShare = name === "best" || name === "decided";
  if (!(wanted > 0) || (isShare && wanted > 100)) return { budget: null, said: expected(name) };
  const bounded = (budget) => Math.max(1, Math.min(budget, known.whole));
  if (name === "hours") {
    const most = known.lines[known.lines.length - 1].work;
    const found = firstReaching(known, "work", Math.min(wanted / known.hours, most), 1);
    if (found === null) return { budget: null, said: outOfReach(known) };
    const more = wanted / known.hours > most * (1 + 1e-9);
    return { budget: bounded(Math.floor(found + 1e-6)), said: more ? allOfIt(known) : "" };
  }
  const sign = name === "half_width" ? -1 : 1;
  const level = name === "half_width" ? -wanted : wanted / 100;
  const careful = firstReaching(known, CAREFUL[name], level, sign);
  const found = careful ?? firstReaching(known, HOPED[name], level, sign);
  if (found === null) return { budget: null, said: outOfReach(known) };
  return { budget: bounded(Math.ceil(found - 1e-6)), said: careful === null ? hopedOnly(known) : "" };
}

const grouped = (number, digits = 0) =>
  number.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function range(low, high, digits, unit) {
  if (low === null || high === null) return "–";
  const [first, second] = [grouped(low, digits), grouped(high, digits)];
  return (first === second ? first : `${first} to ${second}`) + unit;
}

/** What is to be judged, without the reading of topics, which is work as well. */
const pairsOf = (line) => line.pairs || line.work;

function daysOf(known, line) {
  const days = known.perDay > 0
    ? (pairsOf(line) * known.labels) / known.perDay
    : (line.work * known.hours) / known.hoursADay;
  if (days < 1) return "less than a day";
  const whole = Math.ceil(days - 1e-9);
  return `${grouped(whole)} day${whole === 1 ? "" : "s"}`;
}

/** As the server has it in `Campaign.cost_of`. */
function costOf(known, hours) {
  const cost = hours * known.hourCost;
  return cost >= 0.5 ? `${grouped(cost)} ${known.currency}` : `less than 1 ${known.currency}`;
}

/** Everything that shows what the budget reaches, but the field that somebody is typing into. */
function show(known, budget, typing) {
  const line = reachedAt(known, budget);
  const hours = line.work * known.hours;
  const width = line.half_width_most;
  const values = {
    half_width: width === null ? "" : width.toFixed(known.digits),
    best: (100 * line.best_least).toFixed(0),
    decided: (100 * line.decided_least).toFixed(0),
    hours: hours.toFixed(1),
  };
  for (const name of NAMES) {
    const field = targetField(name);
    if (field && field !== typing) {
      field.value = values[name];
      field.setCustomValidity("");
    }
  }
  const said = {
    budget: grouped(Math.min(budget, known.whole)),
    half_width: `±\u00a0${range(line.half_width, width, known.digits, "")}`,
    best: range(100 * line.best_least, 100 * line.best_most, 0, " %"),
    decided: range(100 * line.decided_least, 100 * line.decided_most, 0, " %"),
    hours: hours < 0.05 ? "less than 0.1 hours" : `about ${grouped(hours, 1)} hours`,
    cost: costOf(known, hours),
    days: daysOf(known, line),
  };
  for (const place of document.querySelectorAll("#curve [data-say]")) {
    place.textContent = said[place.dataset.say];
  }
  const lonely = document.querySelector("#curve [data-lonely]");
  if (lonely) lonely.hidden = known.lonely * pairsOf(line) >= 1.5;
  mark(known, budget, [width === null ? null : width / known.top, line.best_least]);
}

/** Moves the marks of both charts: x in percent, y in pixels from above. */
function mark(known, budget, heights) {
  document.querySelectorAll("#curve .control").forEach((chart, number) => {
    const at = `${across(known, number, budget)}%`;
    const line = chart.querySelector("[data-mark]");
    for (const end of ["x1", "x2"]) line?.setAttribute(end, at);
    const handle = chart.querySelector("[data-handle]");
    const height = heights[number];
    if (handle && height !== null) {
      handle.setAttribute("cx", at);
      handle.setAttribute("cy", `${known.height * (1 - Math.min(1, height))}`);
    }
    chart.setAttribute("aria-valuenow", `${budget}`);
    chart.setAttribute("aria-valuetext", document.querySelector("#curve .reached-says").textContent);
  });
}

function across(known, number, budget) {
  const [low, high] = known.across[number];
  const share = high > low ? Math.log(Math.max(budget, 1) / low) / Math.log(high / low) : 0.5;
  return 100 * Math.min(1, Math.max(0, share));
}

/** Two or three digits are enough where somebody points. */
function rounded(known, budget) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(budget, 1))) - 1);
  const fine = budget < 100 ? 1 : step / 2;
  const [low, high] = [Math.ceil(known.ends[0]), known.whole];
  return Math.min(high, Math.max(low, Math.round(budget / fine) * fine));
}

function pointed(known, chart, event) {
  const box = chart.querySelector(".surface").getBoundingClientRect();
  const number = [...document.querySelectorAll("#curve .control")].indexOf(chart);
  const [low, high] = known.across[number];
  const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  return share >= 1 ? known.whole : rounded(known, low * (high / low) ** share);
}

/** Puts a budget into its field; `done`: and has what it buys worked out. */
function choose(known, budget, { typing = null, done = false } = {}) {
  const field = budgetField();
  const changed = field.value !== `${budget}`;
  field.value = `${budget}`;
  if (changed) field.dispatchEvent(new Event("input", { bubbles: true }));
  show(known, budget, typing);
  if (done) field.dispatchEvent(new Event("change", { bubbles: true }));
}

/** What is to be said of what was typed; it stays when the field is left. */
function tell(words) {
  const place = document.getElementById("target-said");
  if (!place) return;
  place.textContent = words;
  place.hidden = !words;
}

let dragged = null;

document.addEventListener("pointerdown", (event) => {
  const chart = event.target.closest?.("#curve .control");
  const known = facts();
  if (!chart || !known || event.button !== 0) return;
  dragged = chart;
  tell("");
  chart.setPointerCapture(event.pointerId);
  chart.focus({ preventScroll: true });
  choose(known, pointed(known, chart, event));
  if (event.pointerType === "mouse") event.preventDefault();
});

document.addEventListener("pointermove", (event) => {
  const known = facts();
  if (dragged && known) choose(known, pointed(known, dragged, event));
});

for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => {
    const known = facts();
    const was = dragged;
    dragged = null;
    if (was && known) choose(known, Number(budgetField().value), { done: true });
  });
}

const FACTORS = { ArrowRight: 1.05, ArrowUp: 1.05, ArrowLeft: 1 / 1.05, ArrowDown: 1 / 1.05, PageUp: 1.5, PageDown: 1 / 1.5 };
let waiting = 0;

document.addEventListener("keydown", (event) => {
  const known = facts();
  if (!event.target.matches?.("#curve .control") || !known) return;
  const now = Number(budgetField().value) || known.ends[0];
  let next = null;
  if (event.key === "Home") next = Math.ceil(known.ends[0]);
  else if (event.key === "End") next = known.whole;
  else if (event.key in FACTORS) {
    next = rounded(known, now * FACTORS[event.key]);
    if (next === now) next = Math.min(known.whole, Math.max(1, now + (FACTORS[event.key] > 1 ? 1 : -1)));
  }
  if (next === null) return;
  event.preventDefault();
  tell("");
  choose(known, next);
  clearTimeout(waiting);
  waiting = setTimeout(() => choose(known, next, { done: true }), 600);
});

document.addEventListener("input", (event) => {
  const known = facts();
  const field = event.target;
  if (!known || !field.form || field.form.id !== "plan") return;
  if (field === budgetField()) {
    if (event.isTrusted) tell("");
    const budget = Number(field.value);
    if (event.isTrusted && budget >= 1) show(known, Math.round(budget), null);
    return;
  }
  const name = NAMES.find((each) => field === targetField(each));
  if (!name) return;
  const emptied = field.value === "" && !field.validity.badInput;
  const { budget, said } = budgetFor(known, name, Number(field.value));
  tell(emptied ? "" : said);
  field.setCustomValidity(budget === null && !emptied ? said : "");
  if (budget !== null) choose(known, budget, { typing: field });
});

/* A target is left: what is saved is the budget. */
document.addEventListener("focusout", (event) => {
  const known = facts();
  if (known && NAMES.some((name) => event.target === targetField(name))) {
    show(known, Number(budgetField().value), null);
  }
});

/* A page that the browser kept may be of choices that have changed since. */
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

/** Charts become sliders, and targets are no fields of the form any more. */
function enliven() {
  const known = facts();
  for (const name of [...NAMES, "shown"]) {
    targetField(name)?.removeAttribute("name");
    if (name !== "shown" && targetField(name)) targetField(name).disabled = known === null;
  }
  if (!known) return;
  for (const chart of document.querySelectorAll("#curve .control:not(.live)")) {
    chart.classList.add("live");
    chart.setAttribute("role", "slider");
    chart.setAttribute("tabindex", "0");
    chart.setAttribute("aria-label", `${chart.getAttribute("aria-label")}: the budget`);
    chart.setAttribute("aria-valuemin", `${Math.ceil(known.ends[0])}`);
    chart.setAttribute("aria-valuemax", `${known.whole}`);
  }
  const typing = document.activeElement;
  const budget = Number(budgetField()?.value);
  if (budget >= 1) show(known, Math.round(budget), NAMES.some((name) => typing === targetField(name)) ? typing : null);
}

for (const moment of ["htmx:afterSettle", "htmx:oobAfterSwap"]) document.addEventListener(moment, enliven);
enliven();

/* What choices buy is said in the sentence of the draw, once it has changed, and not figure by figure. */
const sentence = () => document.getElementById("preview")?.dataset.announce ?? "";
let said = sentence();

document.addEventListener("htmx:afterSettle", () => {
  const now = sentence();
  if (now === "" || now === said) return;
  document.getElementById("announce").textContent = now;
  said = now;
});
