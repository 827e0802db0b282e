"use strict";
const token = new URLSearchParams(location.search).get("token");
const columns = JSON.parse(document.getElementById("columns-data").textContent);
const given = new Map();
const panels = new Map();
let before = null, turn = 0, asked = 0;
const element = (tag, name, text) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
};

for (const column of columns) {
  const panel = element("section", "panel levels");
  panel.id = `panel-${panels.size}`;
  const why = element("details", "why"), said = element("p");
  why.append(element("summary", "", "beware"), said);
  why.hidden = true;
  panel.append(element("h3", "", column.name), why);
  const rows = column.labels.map((label, code) => {
    const row = element("div", "level"), track = element("span", "track");
    const name = element("span", "", label), fill = element("span", "fill"), mark = element("span", "before");
    const whisker = element("span", "whisker");
    name.title = label;
    track.append(fill, mark, whisker);
    const number = element("span", "number");
    row.append(name, track, number);
    row.setAttribute("role", "button");
    row.tabIndex = 0;
    row.dataset.column = column.name;
    row.dataset.label = label;
    const toggle = () => {
      if (given.get(column.name) === label) given.delete(column.name); else given.set(column.name, label);
      refresh();
    };
    row.addEventListener("click", toggle);
    row.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); toggle(); } });
    panel.append(row);
    return { row, fill, mark, whisker, number };
  });
  panels.set(column.name, { panel, rows, labels: column.labels, why, said });
  document.getElementById("columns").append(panel);
}
for (const node of document.querySelectorAll(".node")) {
  node.addEventListener("click", () => {
    const { panel } = panels.get(node.dataset.column);
    panel.scrollIntoView({ behavior: "smooth", block: "center" });
    panel.classList.add("aimed");
    setTimeout(() => panel.classList.remove("aimed"), 1500);
  });
}

async function post(path, body) {
  const reply = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json", "X-Token": token }, body: JSON.stringify(body) });
  const said = await reply.json();
  if (!reply.ok) throw new Error(said.problem || "the page was refused");
  return said;
}
const problem = (text) => { document.getElementById("problem").textContent = text; };

async function refresh() {
  const mine = ++turn;
  let found;
  try {
    found = await post("/beliefs", { given: Object.fromEntries(given) });
  } catch (error) {
    if (mine === turn) problem(error.message);
    return;
  }
  if (mine !== turn) return; // a later click has been answered, or will be
  problem("");
  before ??= found.marginals;
  for (const [name, { panel, rows, labels, why }] of panels) {
    const fixed = given.get(name);
    why.hidden = true; // it goes with the noise
    panel.classList.toggle("given", fixed !== undefined);
    rows.forEach(({ row, fill, mark, whisker, number }, code) => {
      const p = fixed === undefined ? found.marginals[name][code] : Number(labels[code] === fixed);
      fill.style.width = `${100 * p}%`;
      mark.style.left = `${100 * before[name][code]}%`;
      mark.hidden = given.size === 0;
      whisker.hidden = true; // until it is known how far noise can have moved this one
      number.textContent = fixed === undefined ? found.texts[name][code] : (p ? "given" : "");
      row.setAttribute("aria-pressed", String(labels[code] === fixed));
    });
  }
  for (const node of document.querySelectorAll(".node")) node.classList.toggle("given", given.has(node.dataset.column));
  const chips = document.getElementById("given");
  chips.replaceChildren(...[...given].map(([name, label]) => {
    const chip = element("button", "chip", `${name} = ${label} ×`);
    chip.type = "button";
    chip.addEventListener("click", () => { given.delete(name); refresh(); });
    return chip;
  }));
  const how = found.method === "exact" ? "" : ` Computed approximately (${found.method}).`;
  document.getElementById("evidence").textContent =
    (given.size ? `What is given has probability ${found.probability}.` : "Nothing is given.") + how;
  document.body.dataset.turn = String(mine);
  await showNoise(mine);
}

async function showNoise(mine) {
  let found;
  try {
    found = (await post("/noise", { given: Object.fromEntries(given) })).noise ?? {};
  } catch (error) {
    if (mine === turn) problem(error.message);
    return;
  }
  if (mine !== turn) return;
  for (const [name, { texts, lower, upper, why }] of Object.entries(found)) {
    panels.get(name).why.hidden = why === "";
    panels.get(name).said.textContent = why;
    panels.get(name).rows.forEach(({ whisker, number }, code) => {
      number.textContent = texts[code];
      whisker.style.left = `${100 * lower[code]}%`;
      whisker.style.width = `${100 * (upper[code] - lower[code])}%`;
      whisker.hidden = false;
    });
  }
  document.body.dataset.noise = String(mine);
}

const place = document.getElementById("answer");
function show(text, wrong) { // an answer, or what was wrong with the question: never both, and never an older answer
  place.querySelector("pre").textContent = text;
  place.classList.toggle("wrong", wrong);
  place.hidden = text === "";
}
async function answer(path, body) {
  const mine = ++asked;
  show("", false);
  let text, wrong = false;
  try {
    text = (await post(path, body)).text;
  } catch (error) {
    [text, wrong] = [error.message, true];
  }
  if (mine !== asked) return;
  show(text, wrong);
  place.scrollIntoView({ block: "nearest" });
}
document.getElementById("close").addEventListener("click", () => show("", false));
document.getElementById("clear").addEventListener("click", () => { given.clear(); refresh(); });
document.getElementById("likely").addEventListener("click", () => answer("/map", { given: Object.fromEntries(given) }));
document.getElementById("asking").addEventListener("submit", (e) => {
  e.preventDefault();
  answer("/ask", { question: document.getElementById("ask").value });
});
refresh();
