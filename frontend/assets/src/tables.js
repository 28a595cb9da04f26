// What a reader has chosen for a table: which columns, and how dense. Kept in this browser, by the table's name.
const storage = {
  read(key) {
    try {
      return JSON.parse(window.localStorage.getItem(key) ?? "null");
    } catch {
      return null;
    }
  },
  write(key, value) {
    try {
      window.localStorage.setItem(key, JSON.stringify(value));
    } catch {
      // storage is switched off: the choice lasts as long as the page
    }
  },
};
const DENSITY = "headgate-density";
const hiddenBy = new Map();
const key = (name) => `headgate-columns-${name}`;

function hidden(view) {
  const name = view.dataset.tableView;
  if (!hiddenBy.has(name)) {
    const optional = [...view.querySelectorAll("[data-column]:not(:checked)")].map((box) => box.dataset.column);
    hiddenBy.set(name, new Set(storage.read(key(name)) ?? optional));
  }
  return hiddenBy.get(name);
}

export function applyTables() {
  const density = storage.read(DENSITY) === "airy" ? "airy" : "dense";
  document.documentElement.dataset.density = density;
  for (const view of document.querySelectorAll("[data-table-view]")) {
    const away = hidden(view);
    for (const box of view.querySelectorAll("[data-column]")) box.checked = !away.has(box.dataset.column);
    for (const radio of view.querySelectorAll("[data-density-choice]")) radio.checked = radio.value === density;
    const table = document.querySelector(`[data-table="${CSS.escape(view.dataset.tableView)}"]`);
    for (const cell of table?.querySelectorAll("[data-col]") ?? []) cell.hidden = away.has(cell.dataset.col);
  }
}

function onChange({ target }) {
  const view = target.closest?.("[data-table-view]");
  if (!view) return;
  if (target.dataset.column) {
    const away = hidden(view);
    if (target.checked) away.delete(target.dataset.column);
    else away.add(target.dataset.column);
    storage.write(key(view.dataset.tableView), [...away]);
  } else if (target.matches("[data-density-choice]")) storage.write(DENSITY, target.value);
  applyTables();
}

document.addEventListener("DOMContentLoaded", () => {
  document.addEventListener("change", onChange);
  applyTables();
  document.body.addEventListener("htmx:afterSettle", applyTables);
});
