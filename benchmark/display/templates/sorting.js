// Sorts the last body of a table by a click on a heading; rows know their place in the report.
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

const bodyOf = (table) => table.tBodies[table.tBodies.length - 1];

// Also after new rows were put in.
function forgetOrder(table) {
  for (const header of table.tHead.rows[0].cells) header.setAttribute("aria-sort", "none");
  [...bodyOf(table).rows].forEach((row, at) => { row.dataset.at = at; });
}

function makeSortable(table) {
  const headers = [...table.tHead.rows[0].cells];
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  forgetOrder(table);

  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const order = next[header.getAttribute("aria-sort")];
      headers.forEach((other) => other.setAttribute("aria-sort", other === header ? order : "none"));
      const asReported = [...bodyOf(table).rows].sort((one, other) => one.dataset.at - other.dataset.at);
      const sign = order === "ascending" ? 1 : -1;
      const isNumeric = header.classList.contains("n");
      bodyOf(table).replaceChildren(...(order === "none" ? asReported : sorted(asReported, column, isNumeric, sign)));
    });
  });
}
