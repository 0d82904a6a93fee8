"use strict";
const $ = (id) => document.getElementById(id);
const ROLES = ["baseline", "control", "tuned control"];
const DEFAULTS = { corpus: "", measure: "", against: "", range: "5", task: "0", protocol: "", show: "score",
  sort: "", find: "", hide: "", number: "", paper: "", untested: "", open: "", point: "" };
let data, state, notes, spaceNumber;

// --- elements and texts -----------------------------------------------------------------------------
// Texts become text nodes only: nothing of the data is read as markup.
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}
const minus = (text) => text.replace(/(?<![\w-])-(?=\d)/g, "−");
function prose(text) { // `code` and *emphasis* as elements
  return text.split(/(`[^`]+`|(?<!\w)\*[^*]+\*(?!\w))/).map((part, place) =>
    place % 2 === 0 ? minus(part) : make(part[0] === "`" ? "code" : "em", {}, minus(part.slice(1, -1))));
}
const paragraph = (text, kind) => make("p", kind ? { class: kind } : {}, ...prose(text));
const say = (text) => { $("said").textContent = text; };
const unitOf = (protocol) => data.protocols[protocol][1];
function number(value, protocol, signed = false, digits = 2) {
  const nats = protocol && unitOf(protocol) === "nats"; // stored on the ×100 scale
  const text = Math.abs(nats ? value / 100 : value).toFixed(nats ? digits + 2 : digits);
  const zero = Number(text) === 0;
  return `${value < 0 && !zero ? "−" : signed && !zero ? "+" : ""}${text}`;
}
const interval = (low, high, protocol, signed) =>
  low === null ? "" : `${number(low, protocol, signed)} to ${number(high, protocol, signed)}`;
const unique = (values) => [...new Set(values)];

// --- state: every choice is in the address ----------------------------------------------------------
function readState() {
  const given = location.hash.includes("=") ? new URLSearchParams(location.hash.slice(1)) : new URLSearchParams();
  return Object.fromEntries(Object.entries(DEFAULTS).map(([key, value]) => [key, given.get(key) ?? value]));
}
function writeState(changes) {
  Object.assign(state, changes);
  const kept = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key]);
  const hash = new URLSearchParams(kept).toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}
const listOf = (key) => state[key].split(",").filter(Boolean);
function remember(key, name, present) {
  const rest = listOf(key).filter((other) => other !== name);
  writeState({ [key]: (present ? [...rest, name] : rest).join(",") });
}
function select(label, key, choices, changed) { // choices: [value, text]
  if (!choices.some(([value]) => value === state[key]) && choices.length) state[key] = choices[0][0];
  const box = make("select", { onchange: () => { writeState({ [key]: box.value }); changed(); }, name: key },
    ...choices.map(([value, text]) => make("option", { value, selected: value === state[key] }, text)));
  return make("label", {}, label, box);
}

// --- interval bars ----------------------------------------------------------------------------------
// A bar from low to high with a dot at the value, on a scale from `from` to `to`; arrows point to what lies outside.
function bar(value, low, high, from, to, zero) {
  const at = (x) => 100 * Math.min(1, Math.max(0, (x - from) / (to - from || 1)));
  const node = make("span", { class: "bar", "aria-hidden": "true" });
  const put = (kind, left, width) => {
    const part = make("i", { class: kind });
    part.style.left = `${left}%`;
    if (width !== undefined) part.style.width = `${width}%`;
    node.append(part);
  };
  if (zero) put("zero", at(0));
  if (low !== null && low <= to && high >= from) put("line", at(low), at(high) - at(low));
  if (value >= from && value <= to) put("dot", at(value));
  if ((low ?? value) < from) put("left", 0);
  if ((high ?? value) > to) put("right", 100);
  return node;
}
function marks(sign, caveats) {
  const parts = [];
  if (sign > 0) parts.push(make("span", { class: "up", role: "img", "aria-label": "above, beyond chance" }, "▲"));
  if (sign < 0) parts.push(make("span", { class: "down", role: "img", "aria-label": "below, beyond chance" }, "▼"));
  for (const text of caveats || [])
    parts.push(make("span", { class: "caveat", role: "img", "aria-label": text.slice(2), title: text.slice(2) }, text[0]));
  return parts;
}

// --- forest plot ------------------------------------------------------------------------------------
function comparisons() { // every kind of other space: [key, text, test]
  const baselines = unique(Object.values(data.scores).flatMap((own) => Object.values(own).flat())
    .filter((one) => one && one[4]).map((one) => one[4][0]));
  const ordered = data.spaces.map(([name]) => name).filter((name) => baselines.includes(name));
  const found = [...ordered.map((name) => [name, `its baseline ${name}`]), ["control", "its control of the same size"],
    ["tuned control", "PCA tuned on the same data"]];
  const has = (key) => Object.values(data.scores[state.measure]?.[state.corpus] || {}).some((one) => difference(one, key));
  return found.filter(([key]) => has(key));
}
function difference(one, key) {
  if (!one || typeof one === "string") return null;
  if (key === "control") return one[5];
  if (key === "tuned control") return one[6];
  return one[4] && one[4][0] === key ? one[4] : null;
}
function drawPlot() {
  const words = (protocol) => data.protocols[protocol][0];
  const compared = (protocol, corpus) => data.scores[protocol][corpus].some((one) => one && (one[4] || one[5]) && one !== String(one));
  const measures = data.tasks.flatMap(([title, , protocols]) =>
    protocols.filter((p) => Object.keys(data.scores[p]).some((c) => compared(p, c))).map((p) => [p, `${title}: ${words(p)}`]));
  if (!measures.length) { $("plot").hidden = true; return; }
  const measure = select("Measure", "measure", measures, drawPlot);
  const corpora = data.order.filter((c) => data.scores[state.measure][c] && compared(state.measure, c));
  const corpus = select("Corpus", "corpus", corpora.map((name) => [name, name]), drawPlot);
  const against = select("Minus the score of", "against", comparisons(), drawPlot);
  const range = select("Scale", "range", ["1", "2", "5", "10", "20", "50"].map((r) => [r, `±${r} points`]), drawPlot);
  const focus = document.activeElement?.name;
  $("plot-controls").replaceChildren(corpus, measure, against, range);
  if (["corpus", "measure", "against", "range"].includes(focus)) $("plot-controls").elements[focus].focus();
  const rows = data.scores[state.measure][state.corpus]
    .map((one, place) => [data.spaces[place][0], one, difference(one, state.against)]).filter(([, , d]) => d)
    .sort((a, b) => b[2][1] - a[2][1]);
  const limit = Number(state.range);
  const axis = make("td", {}, make("div", { class: "axis" }, ...[-1, -0.5, 0, 0.5, 1].map((part) => {
    const tick = make("span", {}, number(part * limit, "", true, Number.isInteger(part * limit) ? 0 : 1));
    tick.style.left = `${50 + 50 * part}%`;
    return tick;
  })));
  const named = state.against.includes("control") ? "its control" : state.against;
  $("plot-rows").replaceChildren(make("table", { class: "forest" },
    make("caption", { class: "skip" }, `Differences on ${state.corpus}`),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "space"), axis, make("th", { scope: "col" }, "points [interval]"))),
    make("tbody", {}, ...rows.map(([space, one, [other, value, low, high, sign]]) =>
      make("tr", { class: sign > 0 ? "up" : sign < 0 ? "down" : "" },
        make("th", { scope: "row" }, space),
        make("td", {}, bar(value, low, high, -limit, limit, true)),
        make("td", {}, make("button", { type: "button", class: "n", "data-number": `score/${space}/${state.corpus}/${state.measure}` },
          `${number(value, state.measure, true)}`), ...marks(sign, one[3]),
          low === null ? null : make("span", { class: "ci" }, ` [${number(low, state.measure, true)}, ${number(high, state.measure, true)}]`)))))));
  const about = data.corpora[state.corpus];
  const size = about.unit && about.unit !== "items" ? `${about.n} items in ${about.units} ${about.unit}` : `${about.n} items`;
  $("plot-about").textContent = `${words(state.measure)} on ${state.corpus} (${size}): the score of each space minus that of ${named}. ` +
    `Right of the line is better. Bars are ${data.confidence} paired bootstrap intervals; an arrow points to what is outside the scale. ` +
    "▲ and ▼ mark differences beyond chance, with all differences of the table of scores judged together.";
}

// --- leaderboard ------------------------------------------------------------------------------------
function boardNumbers(one) { // [value, low, high, sign, caveats] of what is shown
  if (!one || typeof one === "string") return null;
  if (state.show === "score") return [one[0], one[1], one[2], one[4] ? one[4][4] : 0, one[3]];
  const own = one[4 + ROLES.indexOf(state.show)];
  return own && [own[1], own[2], own[3], own[4], one[3]];
}
function drawBoard() {
  $("scores").hidden = data.tasks.length === 0;
  if (!data.tasks.length) return;
  const task = select("Task", "task", data.tasks.map(([title], place) => [String(place), title]), () => {
    writeState({ protocol: data.tasks[Number(state.task)][2][0], sort: "" });
    drawBoard();
  });
  const protocols = data.tasks[Number(state.task)][2];
  const protocol = select("Protocol", "protocol", protocols.map((name) => [name, data.protocols[name][0]]), drawBoard);
  const scores = data.scores[state.protocol];
  const roles = ROLES.filter((_, place) => Object.values(scores).flat().some((one) => one && one !== String(one) && one[4 + place]));
  const show = select("Show", "show", [["score", "scores"], ...roles.map((role) => [role, `difference to the ${role}`])], drawBoard);
  const find = make("input", { type: "search", name: "find", value: state.find, placeholder: "name or method",
    oninput: () => { writeState({ find: find.value }); searchBoard(); } });
  const focus = document.activeElement?.name;
  $("board-controls").replaceChildren(task, protocol, show, make("label", {}, "Search", find));
  if (["task", "protocol", "show"].includes(focus)) $("board-controls").elements[focus].focus();

  const filled = data.order.filter((corpus) => scores[corpus]?.some(boardNumbers));
  const hidden = listOf("hide");
  $("columns").querySelector("fieldset").replaceChildren($("columns").querySelector("legend"), ...filled.map((corpus) => {
    const box = make("input", { type: "checkbox", checked: !hidden.includes(corpus),
      onchange: () => { remember("hide", corpus, !box.checked); drawBoard(); $("columns").querySelector(`input[value="${corpus}"]`).focus(); }, value: corpus });
    return make("label", {}, box, corpus);
  }));
  const blank = data.tasks[Number(state.task)][1].filter((corpus) => !filled.includes(corpus));
  $("columns").querySelector("p").textContent = blank.length ? `Blank, and left out: ${blank.map((corpus) =>
    data.corpora[corpus].absent ? `${corpus} (${data.corpora[corpus].absent})` : corpus).join("; ")}.` : "";
  const corpora = filled.filter((corpus) => !hidden.includes(corpus));
  $("board").replaceChildren(boardTable(corpora, scores));
  sortTable($("board").querySelector("table"), ...state.sort.split(":"));
  searchBoard();
  describeBoard(scores);
}
function boardTable(corpora, scores) {
  const scale = corpora.map((corpus) => {
    const all = scores[corpus].map(boardNumbers).filter(Boolean);
    const usable = all.filter(([, , , , caveats]) => !caveats.some((text) => text[0] === "†"));
    const limits = state.show === "score" ? [Math.min(...all.map((one) => one[1] ?? one[0])), Math.max(...all.map((one) => one[2] ?? one[0]))] : [-5, 5];
    return { corpus, limits, best: Math.max(...usable.map((one) => one[0])) };
  });
  const rows = data.spaces.map(([space, made], place) => [space, made, scale.map(({ corpus }) => scores[corpus][place])])
    .filter(([, , own]) => own.some(boardNumbers));
  const table = make("table", {},
    make("caption", { class: "skip" }, `${data.protocols[state.protocol][0]}, ${state.show}`),
    make("thead", {}, make("tr", {}, header("space"), ...corpora.map((corpus) => header(corpus)))),
    make("tbody", { class: "measured" }, ...rows.map(([space, made, own]) =>
      make("tr", { "data-find": `${space} ${made}`.toLowerCase() }, make("th", { scope: "row", title: made }, space),
        ...own.map((one, place) => boardCell(space, one, scale[place]))))),
    make("tbody", { class: "printed" }, ...(state.show === "score" ? data.printed_rows[state.protocol] || [] : []).map(([name, cells]) =>
      make("tr", { "data-find": name.toLowerCase() }, make("th", { scope: "row", title: name }, name),
        ...corpora.map((corpus) => cells[corpus] ? make("td", { "data-v": cells[corpus][0] }, link(`note/${cells[corpus][1]}`, cells[corpus][0])) : make("td", {}, "–"))))));
  $("board").style.width = `min(100%, ${14 + 8 * corpora.length}rem)`; // few columns need no wide page
  return table;
}
const link = (target, text, title) => make("button", { type: "button", class: "n", "data-number": target, title }, text);
function boardCell(space, one, { corpus, limits, best }) {
  const target = `score/${space}/${corpus}/${state.protocol}`;
  const own = boardNumbers(one);
  if (!own) return make("td", {}, one ? make("button", { type: "button", class: "n", "data-number": target, "aria-label": "blank" }, "–") : make("span", { class: "muted" }, "–"));
  const [value, low, high, sign, caveats] = own;
  const about = data.corpora[corpus];
  const signed = state.show !== "score";
  const hover = `n = ${about.n}${about.unit ? `, ${about.units} ${about.unit}` : ""}${low === null ? "" : `; ${data.confidence} interval ${interval(low, high, state.protocol, signed)}`}`;
  const top = !signed && value === best && !caveats.some((text) => text[0] === "†");
  return make("td", { "data-v": value, class: top ? "best" : null },
    make("button", { type: "button", class: "n", "data-number": target, title: top ? `best of its column; ${hover}` : hover }, number(value, state.protocol, signed)),
    ...marks(sign, caveats), bar(value, low, high, ...limits, signed));
}
function describeBoard(scores) {
  const [shows, caveats, judged] = data.judged[state.protocol]?.[state.show === "score" ? "baseline" : state.show] || [[], [], []];
  const names = unique(Object.values(scores).flat().filter((one) => one && one !== String(one) && one[4]).map((one) => one[4][0]));
  const role = state.show === "score" && names.length ? `▲ and ▼ compare a space with its baseline (${names.join(", ")}). ` : "";
  $("board-about").replaceChildren(
    make("p", { class: "muted" }, `${role}Bars: ${data.confidence} intervals, ` +
      (state.show === "score" ? "each column on its own scale. Bold: the best of a column." : "from −5 to +5 points, with arrows for what is outside.")),
    ...shows.map((text) => paragraph(text)), ...caveats.map((text) => paragraph(text, "muted")),
    judged.length ? make("details", {}, make("summary", {}, "How differences were judged"), ...judged.map((text) => paragraph(text))) : "");
}
function searchBoard() {
  const wanted = state.find.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of $("board").querySelectorAll("tbody tr")) {
    row.hidden = !wanted.every((word) => row.dataset.find.includes(word));
    count += row.hidden ? 0 : 1;
  }
  if (state.find) say(`${count} rows`);
}

// --- sorting: within each group of rows, so that measured and printed ones stay apart -----------------
function header(text) {
  return make("th", { scope: "col" }, make("button", { type: "button", class: "sort" }, text));
}
function sortTable(table, title, direction) {
  const heads = [...table.tHead.rows[0].cells];
  const column = heads.findIndex((head) => head.textContent === title);
  if (column < 0 || !direction) return;
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const key = (row) => column === 0 ? row.cells[0].textContent : row.cells[column].dataset.v === undefined ? null : Number(row.cells[column].dataset.v);
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => !row.classList.contains("group")).map((row) => [key(row), row]);
    rows.sort(([a], [b]) => a === null || b === null ? (a === b ? 0 : a === null ? 1 : -1) // blanks stay last
      : sign * (typeof a === "string" ? a.localeCompare(b, "en") : a - b));
    body.append(...rows.map(([, row]) => row));
  }
}
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.sort");
  if (!button) return;
  const head = button.parentElement, table = head.closest("table");
  const first = head.cellIndex === 0 ? "ascending" : "descending"; // scores: the best first
  const second = first === "ascending" ? "descending" : "ascending";
  const next = head.getAttribute("aria-sort") === first ? second : first;
  sortTable(table, button.textContent, next);
  if (table.closest("#board")) writeState({ sort: `${button.textContent}:${next}` });
  say(`Sorted by ${button.textContent}, ${next}`);
});

// --- tables that are drawn when they are opened -------------------------------------------------------
function folded(name, title, draw) {
  const node = make("details", { id: name, class: "fold" }, make("summary", {}, title));
  const open = () => { if (node.open && node.children.length === 1) node.append(draw()); };
  node.addEventListener("toggle", () => { open(); if (listOf("open").includes(name) !== node.open) remember("open", name, node.open); });
  node.open = listOf("open").includes(name);
  open();
  return node;
}
function drawTable(table) {
  return make("div", {}, paragraph(table.about), ...table.panels.map((panel) => {
    const name = `${table.name}-${panel.letter}`;
    return make("div", {}, make("h3", { id: name }, `(${panel.letter}) `, ...prose(panel.title)),
      make("p", { class: "muted" }, "Protocol: ", ...prose(panel.protocol), "."), ...panel.shows.map((text) => paragraph(text, "shows")),
      ...drawPanel(panel, name), ...panel.caveats.map((text) => paragraph(text, "muted")),
      panel.notes.length ? make("details", {}, make("summary", {}, "How differences were judged"), ...panel.notes.map((text) => paragraph(text))) : "");
  }));
}
function drawPanel(panel, name) {
  const lines = panel.groups.flatMap((group) => group.lines);
  const kept = panel.heads.map((_, place) => place).filter((place) => lines.some(([, , cells]) => cells[place][1]));
  if (!kept.length) return [make("p", {}, "No cell of this table has a number.")];
  const gone = panel.heads.filter((_, place) => !kept.includes(place));
  const empty = ([, , cells]) => cells.every((cell) => !cell[1]);
  const bodies = panel.groups.map((group) => make("tbody", { class: group.printed ? "printed" : "measured" },
    make("tr", { class: "group" }, make("th", { scope: "rowgroup", colspan: kept.length + 1 }, group.title)),
    ...group.lines.map((line) => make("tr", { class: empty(line) ? "empty" : null, hidden: empty(line) },
      make("th", { scope: "row", title: line[1] }, line[0]), ...kept.map((place) => tableCell(line[2][place]))))));
  for (const body of bodies) body.hidden = body.rows.length === 1 + body.querySelectorAll(".empty").length;
  const table = make("table", {}, make("thead", {}, make("tr", {}, header("row"), ...kept.map((place) => header(panel.heads[place])))), ...bodies);
  const blanks = lines.filter(empty).length;
  const more = blanks ? make("button", { type: "button", class: "plain", onclick: () => {
    for (const one of table.querySelectorAll("[hidden]")) one.hidden = false;
    more.remove();
  } }, `Show ${blanks} ${blanks === 1 ? "row" : "rows"} without a number`) : "";
  return [make("div", { class: "scroll", role: "region", tabindex: "0", "aria-labelledby": name }, table), more,
    gone.length ? make("p", { class: "muted" }, `Columns without a number, left out: ${gone.join(", ")}.`) : ""];
}
function tableCell([note, text, bounds, sign, caveats]) {
  if (!text) return make("td", {}, make("button", { type: "button", class: "n", "data-number": `note/${note}`, "aria-label": "blank" }, "–"));
  const value = Number(text);
  return make("td", { "data-v": Number.isNaN(value) ? null : value },
    make("button", { type: "button", class: "n", "data-number": `note/${note}` }, minus(text)), ...marks(sign, caveats),
    bounds ? make("span", { class: "ci" }, minus(bounds)) : "");
}

// --- the map: one corpus in two planes; a sentence that is chosen in one is marked in both ---------------
const PALETTE = 9; // colours of classes
function drawMap() {
  const map = data.map;
  $("map").hidden = !map;
  if (!map) return;
  if (map.reason) {
    $("map-about").textContent = `No map is shown: ${map.reason}. So a plane would put sentences next to each other that are far apart.`;
    return;
  }
  const classes = unique(map.classes).sort((a, b) => a - b);
  const coloured = classes.length > 1 && classes.length <= PALETTE;
  $("map-about").textContent = `${map.rows.length} sentences of ${map.corpus}, drawn by t-SNE from each space on its own. ` +
    "Only nearness has a meaning in a plane; directions, and distances between groups, have none. Point at a sentence: its " +
    `${map.neighbors} nearest sentences in that space are ringed in both planes. Where they are scattered in the other plane, the space moved them apart.` +
    (coloured ? ` Colours are the ${classes.length} classes of ${map.corpus}.` : "");
  const place = make("input", { type: "number", min: "1", max: String(map.rows.length), name: "place", placeholder: "none",
    oninput: () => choosePoint(Number(side.value), place.value === "" ? -1 : Number(place.value) - 1) });
  const side = make("select", { name: "side", onchange: () => choosePoint(Number(side.value), place.value === "" ? -1 : Number(place.value) - 1) },
    ...map.planes.map((plane, at) => make("option", { value: String(at) }, plane.space)));
  $("map-controls").replaceChildren(make("label", {}, `Sentence, 1 to ${map.rows.length}`, place), make("label", {}, "Nearest in", side));
  $("planes").replaceChildren(...map.planes.map((plane, at) => drawPlane(plane, at, coloured ? map.classes.map((own) => classes.indexOf(own)) : [])));
  const [at, chosen] = state.point.split(":").map(Number);
  choosePoint(at || 0, state.point ? chosen : -1);
}
function drawPlane(plane, at, colours) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const about = `${plane.space}: trustworthiness ${plane.trustworthiness.toFixed(2)}`;
  for (const [name, value] of [["viewBox", "-20 -20 1040 1040"], ["role", "img"], ["aria-label", `Plane of ${about}`]]) svg.setAttribute(name, value);
  svg.append(...plane.places.map(([x, y], place) => {
    const dot = document.createElementNS(space, "circle");
    for (const [name, value] of [["cx", x], ["cy", y], ["r", 7], ["class", `k${colours[place] ?? ""}`]]) dot.setAttribute(name, value);
    return dot;
  }));
  const point = (event) => {
    const box = svg.getBoundingClientRect(), scale = 1040 / box.width;
    const x = (event.clientX - box.left) * scale - 20, y = (event.clientY - box.top) * scale - 20;
    const far = plane.places.map(([a, b]) => (a - x) ** 2 + (b - y) ** 2);
    const nearest = far.indexOf(Math.min(...far));
    if (far[nearest] < 60 ** 2 && state.point !== `${at}:${nearest}`) choosePoint(at, nearest);
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  return make("figure", {}, svg, make("figcaption", {}, about));
}
function choosePoint(at, place) { // of plane `at`; -1: none
  const { planes, rows, classes, corpus, neighbors } = data.map;
  const known = at in planes && place >= 0 && place < rows.length;
  const near = known ? planes[at].neighbors[place] : [];
  for (const svg of $("planes").querySelectorAll("svg")) {
    svg.classList.toggle("chosen", known);
    for (const dot of svg.querySelectorAll(".this, .near")) { dot.classList.remove("this", "near"); dot.setAttribute("r", 7); }
    for (const [which, kind, size] of [...near.map((one) => [one, "near", 11]), ...(known ? [[place, "this", 16]] : [])]) {
      svg.children[which].classList.add(kind);
      svg.children[which].setAttribute("r", size);
    }
  }
  writeState({ point: known ? `${at}:${place}` : "" });
  const form = $("map-controls").elements;
  if (document.activeElement !== form.place) form.place.value = known ? String(place + 1) : "";
  form.side.value = String(known ? at : form.side.value);
  const other = known ? planes[1 - at] : null;
  const kept = known ? near.filter((one) => other.neighbors[place].includes(one)).length : 0;
  const own = known && classes.length ? `, class ${classes[place]}` : "";
  $("map-chosen").textContent = known ? `Sentence ${place + 1}: row ${rows[place]} of ${corpus}${own}. ${kept} of its ${neighbors} ` +
    `nearest sentences in ${planes[at].space} are among its ${neighbors} nearest in ${other.space} too.` : "No sentence is chosen.";
}

// --- the papers ---------------------------------------------------------------------------------------
function drawPapers() {
  const tabs = $("tabs");
  if (!tabs) return;
  const names = data.papers.map(([source]) => source);
  if (!names.includes(state.paper)) state.paper = names[0];
  tabs.replaceChildren(...data.papers.map(([source, title]) => make("button", { type: "button", role: "tab", id: `tab-${source}`,
    "aria-selected": String(source === state.paper), "aria-controls": "paper", tabindex: source === state.paper ? "0" : "-1",
    onclick: () => choosePaper(source),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) choosePaper(names[(names.indexOf(source) + step + names.length) % names.length]);
    } }, title)));
  const claims = data.claims.filter((claim) => claim.paper === state.paper);
  const tested = claims.filter((claim) => claim.tested);
  const rest = claims.length - tested.length;
  const box = make("input", { type: "checkbox", checked: state.untested === "1", onchange: () => { writeState({ untested: box.checked ? "1" : "" }); drawPapers(); } });
  $("paper").setAttribute("aria-labelledby", `tab-${state.paper}`);
  const tables = data.tables.filter((table) => table.paper === state.paper);
  $("paper").replaceChildren(
    make("h3", {}, "Claims"), make("p", { class: "muted" }, `${tested.length} of its claims can be tested in this suite.`),
    make("ul", { class: "claims" }, ...(state.untested ? claims : tested).map(drawClaim)),
    rest ? make("label", { class: "check" }, box, `show the ${rest} that cannot be tested here too`) : "",
    tables.length ? make("h3", {}, "Tables, with this suite's rows") : "",
    ...tables.map((table) => folded(table.name, table.title, () => drawTable(table))));
}
function choosePaper(source) {
  writeState({ paper: source });
  drawPapers();
  $(`tab-${source}`).focus();
}
function drawClaim(claim) {
  return make("li", {}, make("details", { class: data.classes[claim.outcome], id: `claim-${claim.name}` },
    make("summary", {}, make("span", { class: "verdict" }, claim.outcome), " ", make("span", {}, ...prose(claim.says))),
    paragraph(claim.about, "muted"),
    ...claim.said.map(([heading, text]) => make("p", {}, heading ? make("b", {}, ...prose(heading)) : "", " ", ...prose(text))),
    make("p", {}, make("code", {}, claim.command))));
}

// --- the side panel -----------------------------------------------------------------------------------
let opener = null;
const plain = (value) => value !== null && typeof value === "object"
  ? Object.entries(value).map(([key, inner]) => `${key} ${plain(inner)}`).join(", ") : String(value);
function showPanel(title, pairs) {
  $("panel-h").textContent = title;
  $("panel").querySelector("dl").replaceChildren(...pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")
    .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ["File", "Command", "Trace"].includes(name) ? make("code", {}, value) : value)]));
  $("panel").hidden = false;
  $("panel").scrollTop = 0;
  $("panel").focus();
}
function facts(space, corpus) { // what a space was made of, and what it was scored on
  const [, made, parameters, sizes] = data.spaces[spaceNumber.get(space)];
  const own = data.corpora[corpus] || {};
  return [
    ["Space", space], ["Made of", made], ["Parameters", plain(parameters)], ["Dimension", sizes[data.order.indexOf(corpus)]],
    ["Corpus", [corpus, own.source, own.text].filter(Boolean).join("; ")], ["Items", own.n],
    ["Resampled by", own.unit ? `${own.units} ${own.unit}, ${Math.round(own.effective)} effective` : null], ["Scheme", own.scheme],
    ["File", `data/${data.suite}/spaces/${space}/${corpus}.parquet`],
  ];
}
function scorePairs(space, corpus, protocol) {
  const one = data.scores[protocol]?.[corpus]?.[spaceNumber.get(space)];
  if (!one) return null;
  if (typeof one === "string") return [["Why this is blank", one], ...facts(space, corpus)];
  const rows = ROLES.map((role, place) => {
    const own = one[4 + place];
    const bounds = own && own[2] !== null ? ` (${interval(own[2], own[3], protocol, true)}, on the same resamples)` : "";
    return own && [`Minus its ${role}`, `${number(own[1], protocol, true)} against ${own[0]}${bounds}${own[4] ? (own[4] > 0 ? "; above, beyond chance" : "; below, beyond chance") : ""}`];
  });
  return [["Score", `${number(one[0], protocol)} (${unitOf(protocol) === "x100" ? "×100" : unitOf(protocol)})`],
    ["Interval", one[1] === null ? null : `${interval(one[1], one[2], protocol)}, ${data.confidence} of ${data.resamples} bootstrap resamples`],
    ...one[3].map((text) => [text[0], text.slice(2)]), ...rows.filter(Boolean),
    ["Protocol", `${data.protocols[protocol][0]} (${protocol})`], ...facts(space, corpus),
    ["Trace", `sentfold trace reports/${data.suite}/tables/scores.csv --row ${space} --column "${corpus} ${protocol}"`],
    ["Command", `sentfold run --suite ${data.suite}`]];
}
function follow(target) { // score/space/corpus/protocol, or note/number
  let [kind, ...rest] = target.split("/");
  const note = kind === "note" ? notes[Number(rest[0])] : null;
  if (note) [kind, ...rest] = note;
  const pairs = kind === "score" ? scorePairs(...rest) : null;
  if (pairs) showPanel(`${rest[0]} on ${rest[1]}`, pairs);
  else if (kind === "printed" && data.printed[rest[0]]) {
    const [paper, table, model, dataset, metric, printed, protocol] = data.printed[rest[0]];
    showPanel(`${model} on ${dataset}`, [["Printed", printed], ["Metric", metric], ["Paper", paper], ["Table", table],
      ["Protocol", protocol], ["Carried in", "pipeline/papers/published.csv"]]);
  } else if (kind === "about") {
    const sources = rest[2].flatMap((where) => facts(...where.split("/")));
    showPanel("A computed number", [["What it is", rest[0]], ["Interval", rest[1] && `${rest[1]}, ${data.confidence} of ${data.resamples} bootstrap resamples`],
      ...sources, ["Command", `sentfold run --suite ${data.suite}`]]);
  } else if (kind === "blank") showPanel("Why this is blank", [["Reason", rest[0]], ["To fill it", rest[1]]]);
  else closePanel();
}
function closePanel() {
  if ($("panel").hidden) return;
  $("panel").hidden = true;
  writeState({ number: "" });
  opener?.focus();
  opener = null;
}
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.n");
  if (!button) return;
  opener = button;
  writeState({ number: button.dataset.number });
  follow(button.dataset.number);
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") closePanel(); });
$("close").addEventListener("click", closePanel);
for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (event) => event.preventDefault());

// --- start ----------------------------------------------------------------------------------------------
function drawPictures() {
  $("figures").hidden = data.pictures.length === 0;
  $("figures").append(...data.pictures.map(({ name, title, caption, svg }) => folded(`figure-${name}`, title, () => {
    const drawing = document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);
    return make("figure", {}, make("div", { class: "art", role: "region", tabindex: "0", "aria-label": title }, drawing), make("figcaption", {}, ...prose(caption)));
  })));
}
function draw() {
  state = readState();
  drawPlot();
  drawBoard();
  drawPapers();
  drawMap();
  for (const node of document.querySelectorAll("#more > details, #figures > details")) node.remove();
  $("more").append(...data.tables.filter((table) => !table.paper).map((table) => folded(table.name, table.title, () => drawTable(table))));
  drawPictures();
  for (const entry of document.querySelectorAll("nav a")) entry.hidden = $(entry.hash.slice(1)).hidden;
  if (state.number) follow(state.number);
}
async function decode(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
async function start() {
  data = await decode($("data").textContent);
  notes = data.notes;
  Object.assign(DEFAULTS, { corpus: data.answer.corpus, measure: data.answer.protocol, against: data.answer.baseline,
    protocol: data.tasks[0]?.[2][0] ?? "", paper: data.papers[0]?.[0] ?? "" });
  spaceNumber = new Map(data.spaces.map(([name], place) => [name, place]));
  draw();
  window.addEventListener("hashchange", () => { if (location.hash.includes("=")) draw(); });
  performance.mark("drawn");
  document.documentElement.dataset.ready = "yes";
}
start();
