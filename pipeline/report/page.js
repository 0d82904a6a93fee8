"use strict";
const facts = JSON.parse(document.getElementById("facts").textContent);
const dialog = document.getElementById("lineage");
let opener = null;

// --- sorting: within each group of rows, so that measured and printed ones stay apart ----------------
const place = (row, column) => {
  const cell = row.children[column];
  return column === 0 ? cell.textContent : cell.dataset.v ? Number(cell.dataset.v) : null;
};
const order = (one, other, sign) => {
  if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1; // blanks stay last
  return sign * (typeof one === "string" ? one.localeCompare(other, "en") : one - other);
};
for (const button of document.querySelectorAll("thead th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement;
    const table = head.closest("table");
    const column = [...head.parentElement.children].indexOf(head);
    const first = column === 0 ? "ascending" : "descending"; // scores: the best first
    const now = head.getAttribute("aria-sort");
    const next = now === first ? (first === "ascending" ? "descending" : "ascending") : first;
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
      const sign = next === "ascending" ? 1 : -1;
      const keys = new Map(rows.map((row) => [row, place(row, column)]));
      rows.sort((one, other) => order(keys.get(one), keys.get(other), sign));
      body.append(...rows);
    }
    document.getElementById("said").textContent = `Sorted by ${button.textContent.trim()}, ${next}`;
  });
}

// --- lineage: every number is a link to #score/..., #printed/..., #about/... or #blank/... ------------------------
const text = (tag, content) => Object.assign(document.createElement(tag), { textContent: content });
const plain = (value) =>
  value !== null && typeof value === "object"
    ? Object.entries(value).filter(([, inner]) => inner !== null).map(([key, inner]) => `${key} ${plain(inner)}`).join(", ")
    : String(value);

function show(title, pairs) {
  document.getElementById("lineage-title").textContent = title;
  const list = document.getElementById("lineage-facts");
  list.replaceChildren();
  for (const [name, value] of pairs) {
    if (value === undefined || value === null || value === "") continue;
    list.append(text("dt", name));
    const answer = document.createElement("dd");
    answer.append(["Artifact", "Command", "Trace"].includes(name) ? text("code", value) : value);
    list.append(answer);
  }
  if (!dialog.open) dialog.showModal();
}

const artifactOf = (place) => `data/${facts.suite}/spaces/${place}.parquet`;

const against = (difference) => {
  if (!difference) return null;
  const [other, value, low, high] = difference;
  const signed = (number) => `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(2)}`;
  const interval = low === null ? "" : ` (${signed(low)} to ${signed(high)}, on the same resamples)`;
  return `${signed(value)} against ${other}${interval}`;
};

function score(space, corpus, protocol) {
  const made = facts.spaces[space];
  const data = made && made.corpora[corpus];
  const numbers = data && data.scores[protocol];
  if (!numbers) return false;
  const about = facts.corpora[corpus] || {};
  const [value, low, high, baseline, control] = numbers;
  show(`${space} on ${corpus}`, [
    ["Score", `${value.toFixed(2)} (×100)`],
    ["Interval", low === null ? null : `${low.toFixed(2)} to ${high.toFixed(2)}, ${facts.confidence} of ${facts.resamples} bootstrap resamples`],
    ["Difference to its baseline", against(baseline)],
    ["Difference to its control", against(control)],
    ["Protocol", `${facts.protocols[protocol]} (${protocol})`],
    ["Items", data.n],
    ["Resampled by", data.unit ? `${data.units} ${data.unit}, ${Math.round(data.effective)} effective` : null],
    ["Scheme", data.scheme],
    ["Made of", made.made_of],
    ["Parameters", plain(made.parameters)],
    ["Dimension", data.dimension],
    ["Corpus", [about.source, about.text].filter(Boolean).join("; ")],
    ["Artifact", artifactOf(`${space}/${corpus}`)],
    ["Command", `sentfold run --suite ${facts.suite}`],
    ["Trace", `sentfold trace reports/${facts.suite}/tables/scores.csv --row ${space} --column "${corpus} ${protocol}"`],
  ]);
  return true;
}

// A number that no single score gave: what it was computed from, vectors by vectors.
function computed([about, interval, places]) {
  const sources = places.flatMap((place) => {
    const [space, corpus] = place.split("/");
    const made = facts.spaces[space];
    const data = made.corpora[corpus];
    const origin = facts.corpora[corpus] || {};
    return [
      ["Computed from", `${space} on ${corpus}`],
      ["Items", data.n],
      ["Resampled by", interval && data.unit ? `${data.units} ${data.unit}, ${Math.round(data.effective)} effective` : null],
      ["Made of", made.made_of],
      ["Parameters", plain(made.parameters)],
      ["Dimension", data.dimension],
      ["Corpus", [origin.source, origin.text].filter(Boolean).join("; ")],
      ["Artifact", artifactOf(place)],
    ];
  });
  show("A computed number", [
    ["What it is", about],
    ["Interval", interval && `${interval}, ${facts.confidence} of ${facts.resamples} bootstrap resamples`],
    ...sources,
    ["Command", `sentfold run --suite ${facts.suite}`],
  ]);
}

function follow() {
  const [kind, ...rest] = decodeURIComponent(location.hash.slice(1)).split("/");
  if (kind === "score" && score(...rest)) return;
  if (kind === "printed" && facts.printed[rest[0]]) {
    const [paper, table, model, dataset, metric, printed, protocol] = facts.printed[rest[0]];
    show(`${model} on ${dataset}`, [
      ["Printed", printed], ["Metric", metric], ["Paper", paper], ["Table", table], ["Protocol", protocol],
      ["Carried in", "pipeline/papers/published.csv"],
    ]);
    return;
  }
  if (kind === "about" && facts.about[rest[0]]) {
    computed(facts.about[rest[0]]);
    return;
  }
  if (kind === "blank" && facts.blanks[rest[0]]) {
    const [reason, command] = facts.blanks[rest[0]];
    show("Why this is blank", [["Reason", reason], ["To fill it", command]]);
    return;
  }
  if (dialog.open) dialog.close();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a.n, a.blank");
  if (!link) return;
  opener = link;
  if (link.getAttribute("href") === location.hash) follow(); // the same number again
});
dialog.addEventListener("close", () => {
  if (/^#(score|printed|about|blank)\//.test(location.hash)) history.replaceState(null, "", location.pathname + location.search);
  if (opener) opener.focus();
  opener = null;
});
dialog.querySelector(".close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
// --- claims: show those of the chosen verdicts --------------------------------------------------------
for (const box of document.querySelectorAll(".choose input")) {
  box.addEventListener("change", () => {
    for (const item of document.querySelectorAll(`.claims > .${box.value}`)) item.hidden = !box.checked;
  });
}
window.addEventListener("hashchange", follow);
follow();
