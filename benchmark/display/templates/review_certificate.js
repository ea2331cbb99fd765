// Two ways through the list, by suspicion and by the random sample, and what the decisions so far prove. The arithmetic is
// that of counting/certificate.py, which follows as JavaScript.
const { size, edges, order } = JSON.parse(at("review").textContent);
const codes = { keep: 1, relabel: 2, ambiguous: 3, skip: 3 }; // as in counting/certificate.py
const numberAt = new Map(samples.map((sample, number) => [sample.place, number]));
const turns = new Map(order.map((place, turn) => [numberAt.get(place), turn]));
let isCertificateDue = false;
let isSampleBegun = false;

const isBySample = () => at("way").value === "sample";
const positionOf = (number) => (isBySample() ? turns.get(number) ?? -1 : number);
const isAfter = (number, other) => positionOf(number) > positionOf(other);
const inOrder = () => (isBySample() ? order.map((place) => numberAt.get(place)) : [...samples.keys()]);

// After the page has reacted to a key: with many samples it takes a moment.
function drawCertificate() {
  if (isCertificateDue) return;
  isCertificateDue = true;
  setTimeout(() => {
    isCertificateDue = false;
    const decisions = new Array(size).fill(0);
    decided.forEach((action, number) => { decisions[samples[number].place] = codes[action.decision]; });
    const sentences = in_words(decisions, edges, order).map((text) => Object.assign(document.createElement("p"), { textContent: text }));
    at("proved").replaceChildren(...sentences);
    const wasBegun = isSampleBegun;
    isSampleBegun = decisions[order[0]] > 0;
    if (isSampleBegun && !wasBegun) at("before").open = false;
  });
}
