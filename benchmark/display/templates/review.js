// A list of samples, one of them in view; the reviewer decides on it by keyboard or mouse.
const searched = samples.map((sample) => sample.id.toLowerCase());
const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const spareRows = 4; // drawn above and below the visible part of the list

let passing = []; // the numbers of the samples that match the filters
let drawn = new Map(); // from a sample's number to its row in the list
let current = -1; // the number of the sample in view
let revealed = -1; // of the sample whose suggestion was asked for
let isTyping = false; // in a filter; letters would decide if the focus moved

// The random sample is decided without the suggestion: what is proved rests on these decisions.
const isBlind = () => isBySample() && !decided.has(current) && revealed !== current;

function say(text) {
  at("said").textContent = text;
}

function decide(decision, label = null) {
  if (current < 0) return;
  const action = record(current, decision, label);
  filter();
  const isWalk = at("by-state").value === "=disagreement"; // through decided samples, once
  const isLeft = (number) => !decided.has(number);
  const next = passing.find((number) => isAfter(number, current) && (isWalk || isLeft(number))) ?? passing.find(isLeft);
  say(`${inWords(action)}: ${action.id}${next === undefined ? " (no sample is left)" : ""}`);
  show(next ?? current);
}

function choose(label) {
  if (current >= 0) decide(label === samples[current].given ? "keep" : "relabel", label);
}

function undo() {
  if (!actions.length) return;
  const undone = takeBack();
  const [{ id, batch }] = undone;
  filter();
  say(`undone: ${batch ? `the import of ${undone.length} decisions` : `${inWords(undone[0])}: ${id}`}`);
  show(numberOf.get(id));
}

function exportDecisions() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv;charset=utf-8" }));
  link.download = "decisions.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  isSafe = true;
  say(`${decided.size} decision${decided.size === 1 ? "" : "s"} exported as ${link.download} into your browser's downloads; next: linc-bench apply-review audit.csv ${link.download}`);
}

const statesOf = (number) => (decided.has(number) ? ["reviewed", ...(differs(number) ? ["disagreement"] : [])] : ["not reviewed"]);
const textsOf = (textOf) => [...new Set(samples.map((_, number) => textOf(number)))].sort(words.compare);
const filters = [
  ["by-given", (number) => classes[samples[number].given], classes],
  ["by-suggested", (number) => classes[samples[number].suggested], classes],
  ["by-group", (number) => samples[number].group],
  ["by-state", statesOf, ["not reviewed", "reviewed", "disagreement"]],
].map(([id, textOf, texts = textsOf(textOf)]) => {
  at(id).append(new Option("all", ""), ...texts.map((text) => new Option(text || "none", "=" + text)));
  at(id).parentElement.hidden = texts.every((text) => !text);
  return { select: at(id), textOf };
});

function filter() {
  const chosen = filters.map(({ select, textOf }) => [select.value, textOf]).filter(([value]) => value);
  const wanted = at("search").value.toLowerCase().split(/\s+/);
  passing = inOrder().filter(
    (number) =>
      chosen.every(([value, textOf]) => [textOf(number)].flat().some((text) => value === "=" + text)) &&
      wanted.every((word) => searched[number].includes(word)),
  );
  at("count").textContent = `${passing.length} of ${isBySample() ? `${order.length} in random order` : `${samples.length} samples`}`;
  at("list").classList.toggle("blind", isBySample());
  at("all").disabled = !chosen.length && !at("search").value;
}

function filterAnew() {
  filter();
  const isIn = passing.includes(current);
  show(isIn ? current : passing.find((number) => !decided.has(number)) ?? passing[0] ?? -1);
}

function element(name, className = "", ...content) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...content);
  return made;
}

function pictureOf(base64, alt = "") {
  const picture = element("img");
  picture.alt = alt;
  picture.src = "data:image/webp;base64," + base64;
  return picture;
}

function drawBadge(badge, number) {
  const action = decided.get(number);
  badge.textContent = action ? `${signs[action.decision]} ${action.decision === "relabel" ? classes[action.label] : action.decision}` : "";
  badge.title = action ? inWords(action) : "";
}

function newRow(number) {
  const { id, given, suggested, thumbnail } = samples[number];
  const suggestion = suggested === given ? [] : [element("span", "", " → ", element("bdi", "", classes[suggested]))];
  const change = element("span", "change", element("bdi", "", classes[given]), ...suggestion);
  const row = element("div", "row", pictureOf(thumbnail), element("bdi", "id", id), change, element("span", "badge"));
  row.id = "row-" + number;
  row.dataset.number = number;
  row.setAttribute("role", "option");
  return row;
}

function rowHeight() {
  return 3.5 * parseFloat(getComputedStyle(document.documentElement).fontSize); // as in review.css
}

// Only rows in or near the visible part are in the page, so thousands of samples scroll as fast as ten.
function drawList() {
  const height = rowHeight();
  const first = Math.max(0, Math.floor(at("list").scrollTop / height) - spareRows);
  const end = Math.ceil((at("list").scrollTop + at("list").clientHeight) / height) + spareRows;
  const seen = passing.slice(first, end).map((number) => [number, drawn.get(number) ?? newRow(number)]);
  seen.forEach(([number, row], position) => {
    row.style.top = (first + position) * height + "px";
    row.setAttribute("aria-posinset", first + position + 1);
    row.setAttribute("aria-setsize", passing.length);
    row.setAttribute("aria-selected", number === current);
    drawBadge(row.querySelector(".badge"), number);
    row.classList.toggle("decided", decided.has(number));
  });
  drawn = new Map(seen);
  at("rows").replaceChildren(...drawn.values());
  if (drawn.has(current)) at("list").setAttribute("aria-activedescendant", "row-" + current);
  else at("list").removeAttribute("aria-activedescendant");
}

function scrollToCurrent() {
  const height = rowHeight();
  const position = passing.indexOf(current);
  at("rows").style.height = passing.length * height + "px";
  if (position < 0) return;
  const { scrollTop, clientHeight } = at("list");
  const [highest, lowest] = [(position + 2) * height - clientHeight, (position - 1) * height]; // with a neighbour each way
  at("list").scrollTop = Math.min(Math.max(scrollTop, highest), lowest);
}

function drawExamples(place, label) {
  place.replaceChildren(...examples[label].map((picture) => pictureOf(picture)));
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", "Typical samples of " + classes[label]);
}

// Duplicates with another label, under what they are: `why`, such as "The same image with another label".
function drawTwins(twins) {
  const twinOf = ({ id, given, thumbnail }) =>
    element("div", "twin", pictureOf(thumbnail, "Sample " + id), element("bdi", "", classes[given]), element("bdi", "", id));
  const reasons = [...new Set(twins.map((twin) => twin.why))];
  at("twins").replaceChildren(...reasons.flatMap((why) =>
    [element("h3", "", why), element("div", "twins", ...twins.filter((twin) => twin.why === why).map(twinOf))]));
  at("twins").hidden = !twins.length;
}

// Without a file, the name and the picture are no links.
function linkOriginal(address) {
  for (const link of document.querySelectorAll("a.original")) {
    if (address) link.href = address;
    else link.removeAttribute("href");
    link.title = address ? "Open the original file in a new tab" : "";
  }
}

function drawSuggestion({ given, suggested }) {
  const isNone = given === suggested;
  at("blind").hidden = !isBlind();
  at("suggestion").hidden = at("facts").hidden = isBlind();
  at("suggested").textContent = isNone ? "No other label suggested" : classes[suggested];
  if (isNone) at("suggested-examples").replaceChildren();
  else drawExamples(at("suggested-examples"), suggested);
  const [words, name] = at("relabel").querySelectorAll("span span, bdi");
  at("relabel").disabled = isNone || isBlind();
  words.textContent = isBlind() ? "Relabel as suggested (hidden)" : isNone ? "No other label suggested" : "Relabel to";
  name.textContent = at("relabel").disabled ? "" : classes[suggested];
}

function drawSample() {
  at("view").hidden = current < 0;
  at("nothing").hidden = current >= 0;
  if (current < 0) return;
  const sample = samples[current];
  const action = decided.get(current);
  at("picture").src = "data:image/webp;base64," + sample.thumbnail;
  at("picture").alt = "Sample " + sample.id;
  at("name").textContent = sample.id;
  linkOriginal(sample.original);
  drawTwins(sample.twins ?? []);
  drawBadge(at("decision"), current);
  at("proposed").textContent = differs(current) ? "imported: " + inWords(proposals.get(current)) : "";
  at("given").textContent = classes[sample.given];
  drawExamples(at("given-examples"), sample.given);
  drawSuggestion(sample);
  at("keep").querySelector("bdi").textContent = classes[sample.given];
  for (const decision of Object.keys(signs)) at(decision).setAttribute("aria-pressed", action?.decision === decision);
  at("relabel").setAttribute("aria-pressed", action?.decision === "relabel" && action.label === sample.suggested);
  [...at("classes").children].forEach((button, label) => button.setAttribute("aria-pressed", action?.label === label));
  at("label").value = "";
  for (const fact of ["p_wrong", "confidence", "group"]) {
    at(fact).textContent = sample[fact];
    at(fact).parentElement.hidden = !sample[fact];
  }
  [...at("detectors").rows].forEach((row, detector) => {
    row.cells[1].textContent = sample.scores[detector];
    row.cells[2].textContent = sample.ranks[detector];
  });
}

function show(number) {
  current = number;
  at("reviewed").textContent = `${decided.size} of ${samples.length} reviewed`;
  document.querySelector("progress").value = decided.size;
  at("undo").disabled = !actions.length;
  at("export").disabled = !decided.size;
  drawQuestion();
  drawCertificate();
  drawSample();
  scrollToCurrent();
  drawList();
}

function move(isDown) {
  const next = isDown ? passing.find((number) => isAfter(number, current)) : passing.findLast((number) => isAfter(current, number));
  if (next !== undefined) show(next);
}

// Classes named 0 … 9 have the key of their name, other classes the key of their position: 1 … 9 and 0.
function keyOf(label) {
  if (classes.every((name) => /^\d$/.test(name))) return classes[label];
  return label < 10 ? String((label + 1) % 10) : "";
}

function makeClassButtons() {
  classes.slice(0, 10).forEach((name, label) => {
    const button = element("button", "", element("bdi", "", name), " ", element("kbd", "", keyOf(label)));
    button.type = "button";
    button.dataset.key = keyOf(label);
    button.addEventListener("click", () => choose(label));
    at("classes").append(button);
  });
  at("label").append(new Option("choose …", ""), ...classes.map((name, label) => new Option(name, label)));
}

function makeDetectorRows() {
  for (const name of detectors) {
    const header = element("th", "", name);
    header.scope = "row";
    at("detectors").append(element("tr", "", header, element("td", "n"), element("td", "n")));
  }
}

function press(button) {
  if (!button.disabled) button.click();
  else if (button === at("undo")) say("there is nothing to undo");
  else if (isBlind()) say("the suggestion is hidden: press v to show it, or relabel by the key of a class");
  else say("no other label is suggested: relabel by the key of a class");
}

function onKey(event) {
  const isField = event.target.matches("input, select");
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const isFilter = isField && event.target.form === at("filters");
  if ((isField && key === "Escape") || (isFilter && key === "Enter")) at("sample").focus();
  if (isField || event.altKey || event.metaKey || (event.ctrlKey && key !== "z")) return;
  const arrow = { ArrowDown: true, j: true, ArrowUp: false, i: false }[key];
  if (arrow !== undefined) move(arrow);
  else if (event.repeat) return; // a key held down decides once
  else if (event.ctrlKey) undo();
  else if (key === "?") at("legend").open = !at("legend").open;
  else if (key === "l") at("label").focus();
  else if (buttons.has(key)) press(buttons.get(key));
  else return;
  event.preventDefault();
}

at("before").open = !matchMedia("(max-height: 50rem)").matches;
makeClassButtons();
makeDetectorRows();
const buttons = new Map([...document.querySelectorAll("[data-key]")].map((button) => [button.dataset.key, button]));
document.addEventListener("keydown", onKey);
at("undo").addEventListener("click", undo);
at("export").addEventListener("click", exportDecisions);
at("keep").addEventListener("click", () => choose(samples[current]?.given));
at("relabel").addEventListener("click", () => choose(samples[current]?.suggested));
for (const decision of ["ambiguous", "skip"]) at(decision).addEventListener("click", () => decide(decision));
at("other").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!at("label").value) return;
  at("sample").focus();
  choose(Number(at("label").value));
});
at("label").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !at("label").value) return; // without a choice, Enter opens the list
  event.preventDefault();
  at("other").requestSubmit();
});
at("filters").addEventListener("submit", (event) => { event.preventDefault(); at("sample").focus(); });
for (const event of ["input", "change"]) at("filters").addEventListener(event, filterAnew);
at("filters").addEventListener("keydown", (event) => { isTyping = event.key !== "Enter"; });
at("filters").addEventListener("mousedown", () => { isTyping = false; });
at("filters").addEventListener("change", (event) => { if (event.target.matches("select") && !isTyping) at("sample").focus(); });
at("reveal").addEventListener("click", () => { revealed = current; drawSample(); at("sample").focus(); });
at("smooth").addEventListener("change", () => {
  document.body.classList.toggle("pixels", !at("smooth").checked);
  at("sample").focus();
});
at("all").addEventListener("click", () => {
  at("filters").reset();
  at("sample").focus();
  filterAnew();
});
at("way").addEventListener("change", () => { current = -1; filterAnew(); at("sample").focus(); });
at("list").addEventListener("scroll", drawList);
at("list").addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (row) show(Number(row.dataset.number));
});
window.addEventListener("resize", () => { scrollToCurrent(); drawList(); });
window.addEventListener("storage", (event) => { if (event.key === storageKey) { load(); filterAnew(); } }); // another window
window.addEventListener("beforeunload", (event) => { if (!isSafe) event.preventDefault(); });
load();
filterAnew();
