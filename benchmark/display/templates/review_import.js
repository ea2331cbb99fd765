// Imports decisions.csv: reads it as RFC 4180 says, checks it as `apply-review` does, and compares it with the decisions
// made here. Cells are compared or shown as text, and never become part of the page.
const columns = ["audit", "id", "given", "decision", "label"];
const cellAndEnd = /("[^"]*(?:""[^"]*)*"|[^",\r\n][^,\r\n]*|)(,|\r\n|\r|\n|$)/y;

const longest = 500; // characters of a reason that are shown

class Refusal extends Error {}

const restored = (cell) => (/^'[=+\-@\t\r\n']/.test(cell) ? cell.slice(1) : cell);

// Rows of cells; a row is a line unless a quoted cell has line breaks, and is numbered as `apply-review` numbers it.
function rowsOf(text) {
  const rows = [[]];
  cellAndEnd.lastIndex = 0;
  for (;;) {
    const found = cellAndEnd.exec(text);
    if (!found) throw new Refusal(`line ${rows.length} has a quote that is not closed, or text after a closing quote`);
    const [, cell, end] = found;
    rows.at(-1).push(restored(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell));
    if (!end) return rows;
    if (end !== ",") rows.push([]);
  }
}

function readDecisions(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes); // without the mark that spreadsheets put at the start
  } catch {
    throw new Refusal("it is not a CSV file in UTF-8");
  }
  const [header, ...rows] = rowsOf(text);
  const missing = columns.filter((column) => !header.includes(column));
  const hint = /[;\t]/.test(header) ? ". Separate columns by commas" : "";
  if (missing.length) throw new Refusal(`it has no column ${missing.join(", ")}; it has ${header.join(", ")}${hint}`);
  const places = columns.map((column) => header.indexOf(column));
  const lineOf = new Map(); // from a sample's id to the line that decides on it
  const decisions = rows.flatMap((cells, position) => {
    const line = position + 2;
    try {
      if (cells.length > header.length) throw new Refusal("has more cells than the header. Quote cells that have commas in them");
      if (!cells.some((cell) => cell.trim())) return [];
      const decision = checked(places.map((place) => cells[place] ?? ""));
      if (lineOf.has(decision.id)) {
        throw new Refusal(`decides on '${decision.id}' a second time, after line ${lineOf.get(decision.id)}. Keep one of the two lines`);
      }
      lineOf.set(decision.id, line);
      return [decision];
    } catch (error) {
      if (error instanceof Refusal) error.message = `line ${line} ${error.message}`;
      throw error;
    }
  });
  if (!decisions.length) throw new Refusal("it has no decisions");
  return decisions;
}

const isClass = (label) => label >= 0;
function classOf(cell) {
  const exact = classes.indexOf(cell);
  return isClass(exact) ? exact : classes.findIndex((name) => name.trim() === cell.trim()); // spreadsheets hide spaces
}

function checked([audited, id, givenCell, decisionCell, labelCell]) {
  const [given, label, decision] = [classOf(givenCell), classOf(labelCell), decisionCell.trim().toLowerCase()];
  const actual = samples[numberOf.get(id)]?.given;
  if (!audited) throw new Refusal("names no audit. Copy it from another line");
  if (audited !== audit) throw new Refusal(`belongs to another audit, ${audited}; this page is of ${audit}`);
  if (actual === undefined) throw new Refusal(`names the sample '${id}', which is not on this page`);
  if (given !== actual) throw new Refusal(`says that the label of '${id}' was '${givenCell}'; it was '${classes[actual]}'`);
  if (!Object.hasOwn(signs, decision)) throw new Refusal(`has the decision '${decisionCell}'; expected ${Object.keys(signs).join(", ")}`);
  if (decision === "relabel") {
    if (!isClass(label)) throw new Refusal(`relabels to '${labelCell}', which is no class of the audit`);
    return { id, given, decision: label === given ? "keep" : "relabel", label };
  }
  if (labelCell && label !== given) {
    throw new Refusal(`has the decision '${decision}' and another label, '${labelCell}'. Relabel, or leave the label empty`);
  }
  return { id, given, decision, label: decision === "keep" ? given : null };
}

// As made now, except on samples that are decided already: there they are proposed until the reviewer answers.
function addImport(decisions) {
  const batch = 1 + (actions.findLast((action) => action.batch)?.batch ?? 0);
  const isKnown = ({ id }) => decided.has(numberOf.get(id));
  const added = decisions.map((decision) => ({ ...decision, batch, ...(isKnown(decision) && { proposed: true }) }));
  actions = [...actions.filter((action) => !action.proposed), ...added];
  recount();
  store();
}

function settle(isTaken) {
  const differing = disagreements();
  const taken = differing.map((number) => ({ ...proposals.get(number), proposed: undefined }));
  actions = [...actions.filter((action) => !action.proposed), ...(isTaken ? taken : [])];
  recount();
  store();
  filterAnew();
  at("said").textContent = `${isTaken ? "taken from the import" : "kept"}: ${differing.length} decisions`;
}

const categoryOf = ({ decision, label }) => label ?? decision; // ambiguous and skip are labels of their own
const isSame = (one, other) => categoryOf(one) === categoryOf(other);
const differs = (number) => decided.has(number) && proposals.has(number) && !isSame(decided.get(number), proposals.get(number));
const disagreements = () => [...proposals.keys()].filter(differs);

// The decisions on the samples that both decided, as they were when the file was imported.
function comparedPairs() {
  const mine = new Map();
  const pairs = [];
  for (const action of actions) {
    if (!action.proposed) mine.set(action.id, action);
    else if (mine.has(action.id)) pairs.push([mine.get(action.id), action].map(categoryOf));
  }
  return pairs;
}

function kappaOf(pairs) {
  const shareOf = (category, side) => pairs.filter((pair) => pair[side] === category).length / pairs.length;
  const share = pairs.filter(([mine, theirs]) => mine === theirs).length / pairs.length;
  const expected = [...new Set(pairs.flat())].reduce((sum, category) => sum + shareOf(category, 0) * shareOf(category, 1), 0);
  return (share - expected) / (1 - expected); // NaN if both gave one label to every sample
}

function agreementOf(pairs) {
  const same = pairs.filter(([mine, theirs]) => mine === theirs).length;
  const kappa = kappaOf(pairs);
  const inText = Number.isFinite(kappa) ? kappa.toFixed(2).replace("-", "−") : "–";
  return `the same decision on ${same} of ${pairs.length} samples (${((100 * same) / pairs.length).toFixed(1)} %), kappa ${inText}`;
}

function drawQuestion() {
  const count = disagreements().length;
  at("question").hidden = !count;
  at("compared").textContent = count ? `You and the imported file: ${agreementOf(comparedPairs())}; ${count} left to settle (filter Reviewed: disagreement).` : "";
  at("mine").textContent = `Keep mine (${count})`;
  at("theirs").textContent = `Take theirs (${count})`;
}

async function importDecisions(file) {
  try {
    if (disagreements().length) throw new Refusal("first keep your decisions or take those of the last import");
    addImport(readDecisions(await file.arrayBuffer()));
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof DOMException)) throw error; // DOM: the file cannot be read
    const reason = error.message.length > longest ? error.message.slice(0, longest) + " …" : error.message;
    warn(`Nothing was imported from ${file.name}: ${reason}.`);
    return;
  }
  const { batch } = actions.at(-1);
  const added = actions.filter((action) => action.batch === batch && !action.proposed).length;
  const [differing, same] = [disagreements().length, proposals.size - disagreements().length];
  filterAnew();
  at("said").textContent = `imported: ${added} decisions; ${same} as you decided, ${differing} otherwise`;
}

at("import").addEventListener("click", () => at("file").click());
at("file").addEventListener("change", () => {
  if (at("file").files.length) importDecisions(at("file").files[0]);
  at("file").value = ""; // the same file may be chosen again
});
at("mine").addEventListener("click", () => settle(false));
at("theirs").addEventListener("click", () => settle(true));
