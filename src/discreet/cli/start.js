"use strict";
// Shows the fields of the kind that a column is, and how far a fit has come. Without it every field is there to be filled in.
for (const panel of document.querySelectorAll(".column")) {
  const kind = panel.querySelector("select");
  const show = () => { for (const part of panel.querySelectorAll("[data-kind]")) part.hidden = part.dataset.kind !== kind.value; };
  kind.addEventListener("change", show);
  show();
}
const all = document.getElementById("all-kinds");
if (all) all.addEventListener("change", () => {
  for (const kind of document.querySelectorAll(".column select")) { kind.value = all.value; kind.dispatchEvent(new Event("change")); }
});
const bar = document.getElementById("progress");
if (bar) {
  const token = document.body.dataset.token;
  const look = async () => {
    let found;
    try { found = await (await fetch("/progress", { headers: { "X-Token": token } })).json(); }
    catch { document.getElementById("doing").textContent = "The command has ended; its window says why."; return; }
    if (found.ended) { location.reload(); return; }
    bar.value = found.part;
    document.getElementById("doing").textContent = `${found.step}; ${found.left} of the budget is left`;
    setTimeout(look, 400);
  };
  look();
}
for (const form of document.querySelectorAll("form")) form.addEventListener("submit", () => {
  for (const button of form.querySelectorAll("button")) setTimeout(() => { button.disabled = true; });
});
