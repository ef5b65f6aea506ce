/* The drop zone: shows the chosen files, each with its kind. Without it one kind holds for all. */
"use strict";

const input = document.querySelector("#drop input[type=file]");
const drop = document.getElementById("drop");
const list = document.getElementById("chosen");
const oneKind = document.getElementById("one-kind");

function shownSize(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 10 && unit ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

function row(file) {
  const item = document.createElement("li");
  const name = document.createElement("span");
  const size = document.createElement("span");
  const kind = oneKind.querySelector("select").cloneNode(true);
  name.textContent = name.title = file.name;
  size.textContent = shownSize(file.size);
  size.className = "num muted small";
  kind.name = "kinds";
  kind.removeAttribute("id");
  kind.setAttribute("aria-label", `What ${file.name} holds`);
  kind.value = oneKind.querySelector("select").value;
  item.append(name, size, kind);
  return item;
}

function show() {
  const files = [...input.files];
  list.replaceChildren(...files.map(row));
  list.hidden = files.length === 0;
  oneKind.hidden = files.length > 0;
}

if (input) {
  input.addEventListener("change", show);
  for (const name of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
    });
  }
  drop.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    show();
  });
  show();
}
