// The decisions: stored in the browser, undone, exported as CSV. review_import.js adds those of a file; review.js displays them.
"use strict";

const at = (id) => document.getElementById(id);
const { audit, classes, detectors, examples, samples } = JSON.parse(at("review").textContent);
const numberOf = new Map(samples.map((sample, number) => [sample.id, number]));
const storageKey = "linc-bench-review-" + audit;
const signs = { keep: "✓", relabel: "→", ambiguous: "?", skip: "–" };
const notStored = "This browser does not store decisions. Export them before you close or reload the page.";

// { id, given, decision, label } in the order they were made; the last one of a sample counts. Imported ones have the
// number of their `batch`; one on a sample that was decided here already is `proposed`: it counts only if it is taken.
let actions = [];
let others = []; // the same, for samples that are not on this page
let decided = new Map(); // from a sample's number to the action that counts
let proposals = new Map(); // from a sample's number to the proposed action
let isSafe = true; // stored or exported

function warn(text) {
  at("notice").textContent = text;
  at("notice").hidden = !text;
}

function isAction(action) {
  const isClass = Number.isInteger(action?.label) && action.label in classes;
  const isGiven = Number.isInteger(action?.given) && action.given in classes;
  if (!isGiven || !Object.hasOwn(signs, action.decision)) return false;
  if (!["keep", "relabel"].includes(action.decision)) return action.label === null;
  return isClass && (action.label === action.given) === (action.decision === "keep"); // as `apply-review` has it
}

function load() {
  let text = null;
  let stored = [];
  warn("");
  try {
    text = localStorage.getItem(storageKey);
  } catch {
    warn(notStored);
  }
  try {
    const found = JSON.parse(text ?? "[]");
    stored = found.filter(isAction);
    if (stored.length < found.length) warn("Some stored decisions of this audit cannot be read.");
  } catch {
    warn("The stored decisions of this audit cannot be read.");
  }
  actions = stored.filter((action) => numberOf.has(action.id));
  others = stored.filter((action) => !numberOf.has(action.id));
  recount();
}

function recount() {
  const numbered = (chosen) => new Map(chosen.map((action) => [numberOf.get(action.id), action]));
  decided = numbered(actions.filter((action) => !action.proposed));
  proposals = numbered(actions.filter((action) => action.proposed));
}

function store() {
  try {
    localStorage.setItem(storageKey, JSON.stringify([...others, ...actions]));
    isSafe = true;
    warn("");
  } catch {
    isSafe = false;
    warn(notStored);
  }
}

function record(number, decision, label) {
  const { id, given } = samples[number];
  const action = { id, given, decision, label };
  actions.push(action);
  decided.set(number, action);
  store();
  return action;
}

// The last action, or the last import as a whole.
function takeBack() {
  const { batch } = actions.at(-1);
  const undone = actions.splice(batch ? actions.findLastIndex((action) => action.batch !== batch) + 1 : -1);
  recount();
  store();
  return undone;
}

function inWords({ decision, label }) {
  const verbs = { keep: "keep ", relabel: "relabel to ", ambiguous: "ambiguous", skip: "skipped" };
  return verbs[decision] + (label === null ? "" : classes[label]);
}

// One line per reviewed sample in the order of the list, then samples of longer pages; quoted as in RFC 4180. What a
// spreadsheet would take for a formula gets an apostrophe in front, which `apply-review` removes (disk/spreadsheets.py).
const isNumber = /^[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$/i;

function asCsv() {
  const shown = [...samples.keys()].filter((number) => decided.has(number)).map((number) => decided.get(number));
  const elsewhere = new Map(others.filter((action) => !action.proposed).map((action) => [action.id, action])).values();
  const rows = [...shown, ...elsewhere].map(({ id, given, decision, label }) =>
    [audit, id, classes[given], decision, label === null ? "" : classes[label]]);
  const guarded = (text) => (/^[=+\-@\t\r\n']/.test(text) && !isNumber.test(text) ? "'" + text : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [["audit", "id", "given", "decision", "label"], ...rows].map((row) => row.map(guarded).map(quoted).join(",") + "\r\n").join("");
}
