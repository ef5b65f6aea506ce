/* The matrix of verdicts is one stop of the Tab key: arrows go from cell to cell, and each leads to
   the comparison of its two runs. Cells of many runs are drawn together: there one link is moved to
   where the pointer or the arrows are. */
"use strict";

const HINT = "Point at a cell, or go there by the arrow keys: it leads to the comparison of its two runs.";
const STEPS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

/** The runs in their order, as the table below the matrix names them. */
function runs(matrix) {
  const table = matrix.closest("figure").nextElementSibling;
  return [...table.querySelectorAll("tbody th")].map((cell) => cell.textContent);
}

function tell(matrix, words) {
  matrix.closest("figure").querySelector(".cell-said").textContent = words;
}

const inside = (place, count) => place.every((at) => at >= 0 && at < count);

/** A step further; nobody is compared with oneself, so that it goes past the diagonal. */
function stepped([row, column], [down, right], count) {
  const kept = (at) => Math.min(Math.max(at, 0), count - 1);
  const to = [kept(row + down), kept(column + right)];
  if (to[0] !== to[1]) return to;
  const past = [1, -1].map((turn) => [to[0] + turn * Math.sign(down), to[1] + turn * Math.sign(right)]);
  return past.find((place) => inside(place, count));
}

/** Of many runs: the link at this cell, with what is drawn there. */
function moved(link, [row, column], names) {
  const side = Number(link.dataset.side);
  const box = link.querySelector("rect");
  const middle = new DOMPoint((column + 0.5) * side, (row + 0.5) * side);
  const bands = [...link.parentElement.querySelectorAll("path[data-said]")];
  const said = bands.find((band) => band.isPointInFill(middle))?.dataset.said ?? "against …";
  const sentence = `${names[row]} ${said.replace("…", () => names[column])}`;
  const pair = new URLSearchParams({ first: names[row], second: names[column] });
  box.setAttribute("x", column * side);
  box.setAttribute("y", row * side);
  box.querySelector("title").textContent = sentence;
  link.setAttribute("aria-label", sentence);
  link.setAttribute("href", `${link.dataset.pairs}&${pair}`);
  return link;
}

/** Makes a cell the one that the Tab key comes to; gives its link. */
function goTo(matrix, place) {
  const names = runs(matrix);
  const [row, column] = place;
  [matrix.dataset.row, matrix.dataset.column] = place;
  const link = matrix.querySelector("a.cell");
  if (link) return moved(link, place, names);
  const cells = [...matrix.querySelectorAll("a")];
  const chosen = cells[row * (names.length - 1) + column - (column > row ? 1 : 0)];
  for (const cell of cells) cell.setAttribute("tabindex", cell === chosen ? "0" : "-1");
  return chosen;
}

const placeOf = (matrix) => [Number(matrix.dataset.row), Number(matrix.dataset.column)];

/** Where somebody was in a matrix that is replaced: the two runs, and whether by the keyboard. */
let left = null;

document.addEventListener("htmx:beforeSwap", () => {
  const matrix = document.querySelector("svg.matrix[data-row]");
  if (!matrix) return;
  const names = runs(matrix);
  left = { pair: placeOf(matrix).map((at) => names[at]), focused: matrix.contains(document.activeElement) };
});

function prepareMatrices() {
  for (const matrix of document.querySelectorAll("svg.matrix:has(a):not([data-row])")) {
    const names = runs(matrix);
    const before = left?.pair.map((tag) => names.indexOf(tag)) ?? [-1, -1];
    const link = goTo(matrix, inside(before, names.length) ? before : [0, 1]);
    tell(matrix, HINT);
    if (left?.focused) link.focus({ preventScroll: true });
    left = null;
  }
}

/** A cell that was reached otherwise than by arrows. */
function reached(event) {
  const matrix = event.target.closest?.("svg.matrix[data-row]");
  if (!matrix) return;
  const link = matrix.querySelector("a.cell");
  if (link && event.type !== "focusin") {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(link.getScreenCTM().inverse());
    const place = [at.y, at.x].map((pixels) => Math.floor(pixels / Number(link.dataset.side)));
    const [row, column] = place;
    if (row === column || !inside(place, runs(matrix).length)) return;
    if (String(placeOf(matrix)) !== String(place)) goTo(matrix, place);
    tell(matrix, link.getAttribute("aria-label"));
    return;
  }
  const cell = event.target.closest("a");
  if (!cell) return;
  if (!link && event.type === "focusin") {
    const rest = runs(matrix).length - 1;
    const number = [...matrix.querySelectorAll("a")].indexOf(cell);
    const [row, column] = [Math.floor(number / rest), number % rest];
    goTo(matrix, [row, column >= row ? column + 1 : column]);
  }
  tell(matrix, cell.getAttribute("aria-label"));
}

for (const kind of ["pointermove", "pointerdown", "focusin"]) document.addEventListener(kind, reached);

document.addEventListener("keydown", (event) => {
  const matrix = event.target.closest("svg.matrix[data-row]");
  const step = STEPS[event.key];
  if (!matrix || !step || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const to = stepped(placeOf(matrix), step, runs(matrix).length);
  if (!to) return;
  const link = goTo(matrix, to);
  link.focus({ preventScroll: true });
  link.scrollIntoView({ block: "nearest", inline: "nearest" });
  tell(matrix, link.getAttribute("aria-label"));
});

document.addEventListener("htmx:afterSettle", prepareMatrices);
prepareMatrices();
