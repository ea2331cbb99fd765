// Makes tables sortable and filterable. Without it the page shows every row, in the order of the report.
"use strict";

function labelled(text, control) {
  const label = document.createElement("label");
  label.append(text, control);
  return label;
}

function choiceOf(header, rows) {
  const select = document.createElement("select");
  const values = new Set(rows.map((row) => row.cells[header.cellIndex].textContent));
  select.append(new Option("all", ""), ...[...values].sort(words.compare).map((value) => new Option(value, "=" + value)));
  return select;
}

function makeFilterable(table) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => [...row.cells].map((cell) => cell.textContent.toLowerCase()).join("\n"));
  const headers = [...table.querySelectorAll("th[data-filter]")];
  const form = document.createElement("form");
  const search = document.createElement("input");
  const choices = headers.map((header) => choiceOf(header, rows));
  const clear = document.createElement("button");
  const shown = document.createElement("output");
  search.type = "search";
  clear.type = "reset";
  clear.textContent = "Show all";
  form.autocomplete = "off";
  form.setAttribute("role", "group");
  form.setAttribute("aria-label", "Filter " + table.caption.textContent);
  form.append(labelled("Search", search), ...choices.map((choice, i) => labelled(headers[i].textContent, choice)));
  form.append(clear, shown);

  function update() {
    const wanted = search.value.toLowerCase().split(/\s+/);
    rows.forEach((row, at) => {
      const chosen = (choice, i) => !choice.value || choice.value === "=" + row.cells[headers[i].cellIndex].textContent;
      row.hidden = !(wanted.every((word) => texts[at].includes(word)) && choices.every(chosen));
    });
    shown.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    clear.disabled = !search.value && choices.every((choice) => !choice.value);
  }

  for (const event of ["input", "change"]) form.addEventListener(event, update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const field of [search, ...choices]) field.value = "";
    update();
    search.focus();
  });
  table.caption.firstElementChild.append(form);
  update();
}

// What a link leads to is opened, and everything for a printer.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target && target.querySelector("details");
  if (details) details.open = true;
}
window.addEventListener("hashchange", openTarget);
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("main details")) details.open = true;
});
openTarget();

for (const table of document.querySelectorAll("table")) {
  if ("searchable" in table.dataset) makeFilterable(table);
  makeSortable(table);
}
