// Tables of a result, a page at a time. All texts are set as texts: rows are somebody else's.
import { count, bytes } from "../timeline/format.js";
import { text } from "./rows.js";

const PAGE = 100; // rows
const LONGEST = 300; // characters of a cell

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const isNumber = ({ type }) => /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL(\(.*\))?)$/.test(type);

function table(label, heads, rows) {
  const row = (cells) => element("tr", {}, ...cells.map((cell, index) => element("td", heads[index].number ? { class: "number" } : {}, cell)));
  const head = ({ name, type, number }) => element("th", { scope: "col", ...(number ? { class: "number" } : {}) }, element("code", {}, name), element("span", { class: "fw-normal text-body-secondary" }, type ? ` ${type}` : ""));
  const made = element("table", { class: "table table-hover table-sm" }, element("caption", { class: "visually-hidden" }, label), element("thead", {}, element("tr", {}, ...heads.map(head))), element("tbody", {}, ...rows.map(row)));
  return element("div", { class: "table-responsive rows-table", tabindex: "0", role: "region", "aria-label": `${label}, as a table` }, made);
}

function cell(value) {
  const whole = text(value);
  const shown = whole.length > LONGEST ? `${whole.slice(0, LONGEST)}…` : whole;
  return element("span", value === null ? { class: "text-body-secondary" } : { class: "cell", title: whole.slice(0, 10 * LONGEST) }, shown);
}

export function showRows(place, { columns, rows }, first = 0) {
  const last = Math.min(first + PAGE, rows.length);
  const heads = columns.map((column) => ({ ...column, number: isNumber(column) }));
  const turn = (label, to, possible) => {
    const button = element("button", { class: "btn btn-sm btn-outline-secondary", type: "button", ...(possible ? {} : { disabled: "" }) }, label);
    button.addEventListener("click", () => {
      showRows(place, { columns, rows }, to);
      place.querySelector("[role=region]").focus();
    });
    return button;
  };
  const where = element("span", {}, `Rows ${count(first + 1)} to ${count(last)} of ${count(rows.length)}`);
  const pages = element("nav", { class: "d-flex gap-2 align-items-center mt-2", "aria-label": "Pages of the result" }, turn("Previous", first - PAGE, first > 0), where, turn("Next", last, last < rows.length));
  place.replaceChildren(table("Result", heads, rows.slice(first, last).map((row) => row.map(cell))), ...(rows.length > PAGE ? [pages] : []));
}

export function showPlan(place, { tables, plan }) {
  const heads = [{ name: "Datasource" }, { name: "From (UTC)" }, { name: "To (UTC)" }, { name: "Files", number: true }, { name: "Rows", number: true }, { name: "Size", number: true }];
  const rows = tables.map((t) => [`${t.team}.${t.datasource}`, t.start ?? "no bound", t.end ?? "no bound", count(t.files), count(t.rows), bytes(t.size_bytes)]);
  const details = element("details", { class: "mt-2" }, element("summary", {}, "Plan of DuckDB"), element("pre", { class: "text code", tabindex: "0", "aria-label": "Plan of DuckDB" }, JSON.stringify(plan, null, 1)));
  place.replaceChildren(table("Files that are read", heads, rows), details);
}
