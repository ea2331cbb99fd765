// Makes tables sortable and filterable. Without it the page shows every row, in the order of the report.
"use strict";

const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

// The leading number of a cell such as "0.9936 ± 0.0018", "−2.1 %" or "12,345"; not a number where there is none.
function numberIn(text) {
  const plain = text.replace(/\u2212/g, "-").replace(/(\d)[,\u2009\u202f](?=\d{3})/g, "$1");
  const found = plain.match(/^[<>≤≥≈~+\s]*(-?\d*\.?\d+(?:e[+-]?\d+)?)\s*(%?)/i);
  return found ? Number(found[1]) / (found[2] ? 100 : 1) : NaN;
}

// Rows in the order of one column; missing values come last both ways, equal ones stay in the order of the report.
function sorted(rows, column, isNumeric, sign) {
  const key = (text) => (isNumeric ? numberIn(text) : text.replace(/^–?$/, "") || NaN);
  const keyed = rows.map((row) => [key(row.cells[column].textContent), row]);
  const compare = isNumeric ? (x, y) => x - y : words.compare;
  keyed.sort(([x], [y]) => {
    const missing = Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return missing || (Number.isNaN(x) ? 0 : sign * compare(x, y));
  });
  return keyed.map(([, row]) => row);
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const asReported = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  const next = { none: "ascending", ascending: "descending", descending: "none" };

  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const order = next[header.getAttribute("aria-sort")];
      headers.forEach((other) => other.setAttribute("aria-sort", other === header ? order : "none"));
      const sign = order === "ascending" ? 1 : -1;
      const isNumeric = header.classList.contains("n");
      body.replaceChildren(...(order === "none" ? asReported : sorted(asReported, column, isNumeric, sign)));
    });
  });
}

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
  form.addEventListener("reset", () => setTimeout(() => { update(); search.focus(); }));
  table.caption.firstElementChild.append(form);
  update();
}

for (const table of document.querySelectorAll("table")) {
  if ("searchable" in table.dataset) makeFilterable(table);
  makeSortable(table);
}
