// The command palette: a dialog with a combobox. What it offers is the server's answer to what is written.
const PAUSE_MS = 120;
let hits = [];
let chosen = 0;
let pending = null;
let timer = 0;

const palette = () => document.getElementById("palette");
const field = () => document.getElementById("palette-input");
const list = () => document.getElementById("palette-list");

export function openPalette() {
  const dialog = palette();
  if (!dialog?.showModal) return false;
  if (dialog.open) return true;
  document.querySelector("#site-drawer.show [data-bs-dismiss]")?.click();
  field().value = "";
  dialog.showModal();
  ask();
  return true;
}

async function ask() {
  pending?.abort();
  pending = new AbortController();
  const status = document.querySelector("[data-palette-status]");
  try {
    const address = `${palette().dataset.url}?${new URLSearchParams({ q: field().value })}`;
    const answer = await fetch(address, { signal: pending.signal, headers: { Accept: "application/json" } });
    if (answer.redirected) return window.location.reload(); // the session has ended
    if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
    ({ hits } = await answer.json());
    show();
    status.textContent = hits.length ? "" : "No page, object or action matches.";
  } catch (error) {
    if (error.name !== "AbortError") status.textContent = `The search failed. ${error.message}`;
  }
}

function show() {
  list().replaceChildren(...hits.map(item));
  choose(0);
}

function item(hit, index) {
  const row = document.createElement("li");
  row.id = `palette-hit-${index}`;
  row.className = "palette-hit";
  row.setAttribute("role", "option");
  row.append(icon(hit.icon), text("palette-name", hit.name), text("palette-hint", hit.hint));
  row.addEventListener("click", () => follow(index));
  row.addEventListener("mousemove", () => chosen !== index && choose(index));
  return row;
}

function text(kind, words) {
  const span = document.createElement("span");
  span.className = kind;
  span.textContent = words;
  return span;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${palette().dataset.icons}#${name}`);
  svg.append(use);
  return svg;
}

function choose(index) {
  chosen = Math.max(0, Math.min(index, hits.length - 1));
  [...list().children].forEach((row, number) => row.setAttribute("aria-selected", String(number === chosen)));
  const row = list().children[chosen];
  if (row) {
    field().setAttribute("aria-activedescendant", row.id);
    row.scrollIntoView({ block: "nearest" });
  } else field().removeAttribute("aria-activedescendant");
}

function follow(index) {
  const hit = hits[index];
  if (!hit) return;
  palette().close();
  window.location.assign(hit.url);
}

function onKey(event) {
  const keys = {
    ArrowDown: () => choose(chosen + 1 < hits.length ? chosen + 1 : 0),
    ArrowUp: () => choose(chosen > 0 ? chosen - 1 : hits.length - 1),
    Home: () => choose(0),
    End: () => choose(hits.length - 1),
    Enter: () => follow(chosen),
  };
  const action = !event.isComposing && keys[event.key];
  if (!action || ((event.key === "Home" || event.key === "End") && field().value)) return;
  event.preventDefault();
  action();
}

document.addEventListener("DOMContentLoaded", () => {
  if (!palette()) return;
  for (const opener of document.querySelectorAll("[data-palette-open]")) opener.addEventListener("click", openPalette);
  field().addEventListener("keydown", onKey);
  field().addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
});
