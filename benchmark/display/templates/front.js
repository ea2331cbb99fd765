// The leaderboard's selectors, figures that can be chosen and enlarged, and an address that keeps the choices.
"use strict";

const table = document.querySelector("table.board");
const picks = [...document.querySelectorAll("form.pick select")];
const form = document.querySelector("#board form");
const selects = form ? [...form.querySelectorAll("select")] : [];
const board = table ? JSON.parse(document.getElementById("board-data").textContent) : { views: {} };
const views = Object.keys(board.views).map((key) => key.split("|"));

function cell(tag, className, content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (tag === "th") made.scope = "row";
  made.append(content || "–");
  return made;
}

function linked(text, address) {
  if (!address) return text;
  const link = document.createElement("a");
  link.href = address;
  link.append(text);
  return link;
}

function rowOf([detector, value, ranked, versus, isBest]) {
  const entry = board.detectors[detector];
  const row = document.createElement("tr");
  const number = document.createElement(isBest ? "b" : "span");
  const name = cell("th", "", linked(entry.title, entry.file_link));
  number.append(value);
  name.title = entry.summary;
  if (!ranked) row.className = "apart";
  row.append(name, cell("td", "n", number), cell("td", "n rank", ranked), cell("td", "versus", versus));
  row.append(cell("td", "n trainings", entry.trainings), cell("td", "n", entry.cost));
  row.append(cell("td", "paper", linked(entry.paper, entry.paper_link)));
  return row;
}

// The view with the value that was chosen last and as many as possible of the others.
function nearest(wanted, chosen) {
  const agreement = (view) => view.filter((value, at) => value === wanted[at]).length;
  const possible = views.filter((view) => chosen < 0 || view[chosen] === wanted[chosen]);
  return possible.reduce((best, view) => (agreement(view) > agreement(best) ? view : best));
}

function showView(chosen) {
  const view = nearest(selects.map((select) => select.value), chosen);
  const shown = [];
  selects.forEach((select, at) => {
    select.value = view[at];
    shown.push(select.selectedOptions[0].textContent);
  });
  const rows = board.views[view.join("|")];
  const pinned = rows.filter(([detector]) => detector === board.pinned).map(rowOf);
  const bodies = [document.createElement("tbody"), document.createElement("tbody")];
  bodies[0].className = "pinned";
  bodies[0].append(...pinned);
  bodies[1].append(...rows.filter(([detector]) => detector !== board.pinned).map(rowOf));
  for (const body of [...table.tBodies]) body.remove();
  table.append(...bodies.filter((body) => body.rows.length));
  const metric = selects.find((select) => select.name === "metric").selectedOptions[0].textContent;
  table.tHead.rows[0].cells[1].querySelector("button").textContent = metric;
  document.querySelector("#board .view").textContent = [board.over[view.join("|")], ...shown.slice(1)].join(" · ");
  forgetOrder(table);
}

function showFigure(pick) {
  for (const figure of pick.closest("section").querySelectorAll("[data-choice]")) {
    figure.hidden = figure.dataset.choice !== pick.value;
  }
}

const isFirst = (select) => select.selectedIndex === 0;

function keepInAddress() {
  const chosen = [...selects, ...picks].filter((select) => !isFirst(select));
  const address = new URLSearchParams(chosen.map((select) => [select.name, select.value]));
  history.replaceState(null, "", chosen.length ? "#" + address : location.pathname + location.search);
}

// What the address does not know, or names wrongly, is as at first.
function readAddress() {
  const wanted = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const select of [...selects, ...picks]) {
    const at = [...select.options].findIndex((option) => option.value === wanted.get(select.name));
    select.selectedIndex = Math.max(at, 0);
  }
  if (table) showView(-1);
  picks.forEach(showFigure);
  const first = [...wanted.keys()].find((name) => [...selects, ...picks].some((select) => select.name === name));
  if (first) (document.getElementById(first) || document.getElementById("board")).scrollIntoView();
}

if (table) {
  makeSortable(table);
  form.hidden = false;
  document.getElementById("share").hidden = false;
  selects.forEach((select, at) => select.addEventListener("change", () => { showView(at); keepInAddress(); }));
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const select of selects) select.selectedIndex = 0;
    showView(-1);
    keepInAddress();
  });
}
for (const pick of picks) {
  pick.form.hidden = false;
  pick.addEventListener("change", () => { showFigure(pick); keepInAddress(); });
}
window.addEventListener("hashchange", () => { if (location.hash.includes("=")) readAddress(); });
readAddress();

// A figure is moved into the dialog, and back when that is closed: two copies would have the same ids.
const dialog = document.querySelector("dialog");
let home = null;
for (const button of document.querySelectorAll("button.enlarge")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    home = button.closest("figure").querySelector(".card");
    dialog.classList.toggle("white", home.classList.contains("white"));
    dialog.querySelector("div").append(...home.childNodes);
    dialog.showModal();
  });
}
dialog.addEventListener("close", () => home.append(...dialog.querySelector("div").childNodes));
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.querySelector("button").addEventListener("click", () => dialog.close());

for (const sortable of document.querySelectorAll("details table")) makeSortable(sortable);
