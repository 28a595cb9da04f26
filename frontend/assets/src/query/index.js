// The query page: runs the statement through REST, and shows what it answers.
import { isEnded, sayEnded } from "../session.js";
import { plural } from "../timeline/format.js";
import { readAnswer } from "./rows.js";
import { choices, seriesOf } from "./series.js";
import { element, showPlan, showRows } from "./table.js";

const LONGEST_LINK = 8_000; // characters that servers take
const INCOMPLETE = "The answer ended before its last row. Run the query again, or read fewer rows.";

class Query {
  #running = null; // {id, controller, cancelled}
  #result = null;

  constructor(section) {
    this.section = section;
    this.form = section.querySelector("form");
    this.statement = this.form.elements.statement;
    this.part = (name) => section.querySelector(`[data-query-${name}]`);
    const actions = { run: () => this.#run(this.statement.value), explain: () => this.#explain(), cancel: () => this.#cancel(), download: () => this.#download() };
    for (const [name, act] of Object.entries(actions)) section.querySelector(`[data-query-do=${name}]`).addEventListener("click", act);
    for (const button of section.querySelectorAll("[data-query-view]")) button.addEventListener("click", () => this.#view(button.dataset.queryView));
    this.statement.addEventListener("headgate:run", actions.run);
    this.statement.addEventListener("input", () => this.#link());
    this.axes = ["x", "y"].map((name) => document.getElementById(`query-${name}`));
    for (const select of this.axes) select.addEventListener("change", () => this.#draw());
    this.#link();
  }

  // The page's address with the statement.
  #link() {
    const address = `${window.location.origin}${window.location.pathname}?${new URLSearchParams({ statement: this.statement.value })}`;
    this.part("link").dataset.copyText = address;
    this.part("link").disabled = address.length > LONGEST_LINK || !this.statement.value.trim();
    this.part("link").title = address.length > LONGEST_LINK ? "The statement is too long for a link. Save it instead." : "";
  }

  #explain() {
    return this.#run(/^\s*explain\b/i.test(this.statement.value) ? this.statement.value : `EXPLAIN ${this.statement.value}`);
  }

  async #run(statement) {
    const began = performance.now();
    const result = await this.#ask(statement, "json", (answer, { controller }) => readAnswer(answer, () => controller.abort()));
    if (!result) return;
    this.#result = result.rows ? result : null;
    const seconds = `${((performance.now() - began) / 1000).toFixed(2)} s`;
    if (!result.rows) {
      showPlan(this.part("table"), result);
      this.#say(`Explained in ${seconds}`, result);
      return;
    }
    this.part("views").hidden = false;
    showRows(this.part("table"), result);
    this.#offer();
    this.#say(result.complete ? `${plural(result.rows.length, "row")} in ${seconds}` : `Stopped after ${plural(result.rows.length, "row")} and ${seconds}`, result);
    if (!result.complete) this.#fail(result.cancelled ? "The query was cancelled." : INCOMPLETE);
  }

  async #download() {
    const format = document.getElementById("query-format").value;
    const file = await this.#ask(this.statement.value, format, (answer) => answer.blob());
    if (!file) return;
    const link = element("a", { href: URL.createObjectURL(file), download: `query.${format}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    this.part("status").textContent = `Downloaded query.${format}`;
  }

  // What read makes of a good answer; null if there is none. Only one runs at a time.
  async #ask(statement, format, read) {
    if (this.#running || !statement.trim()) {
      if (!this.#running) this.#fail("Write a statement first.");
      return null;
    }
    const running = { id: [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join(""), controller: new AbortController(), cancelled: false };
    const done = this.#begin(running);
    try {
      const body = JSON.stringify({ query: statement, format, query_id: running.id });
      const answer = await this.#send("POST", this.section.dataset.url, running.controller.signal, body);
      if (answer.ok) return Object.assign(await read(answer, running), { cancelled: running.cancelled });
      if (answer.status === 401) sayEnded();
      const problem = await answer.json().catch(() => ({}));
      this.#fail(problem.detail ?? `The server answered ${answer.status}.`);
    } catch (error) {
      this.#fail(running.cancelled ? "The query was cancelled." : error.name === "TypeError" ? INCOMPLETE : error.message);
    } finally {
      done();
    }
    return null;
  }

  #begin(running) {
    const began = performance.now();
    this.#running = running;
    for (const name of ["problem", "note", "empty"]) this.part(name).hidden = true;
    this.part("table").replaceChildren();
    this.part("views").hidden = true;
    this.#result = null;
    this.#view("table");
    this.part("status").textContent = "Running…";
    this.#buttons();
    const timer = setInterval(() => (this.part("elapsed").textContent = `${((performance.now() - began) / 1000).toFixed(1)} s`), 100);
    return () => {
      clearInterval(timer);
      this.part("elapsed").textContent = "";
      this.part("status").textContent = "";
      this.#running = null;
      this.#buttons();
    };
  }

  #buttons() {
    for (const button of this.section.querySelectorAll("[data-query-do]")) button.disabled = (button.dataset.queryDo === "cancel") !== Boolean(this.#running);
  }

  async #cancel() {
    const running = this.#running;
    if (!running) return;
    running.cancelled = true;
    const answer = await this.#send("DELETE", `${this.section.dataset.url}${running.id}/`).catch(() => null);
    if (!answer?.ok) running.controller.abort(); // then the server ends it when it next writes
  }

  async #send(method, url, signal, body) {
    const headers = { "X-CSRFToken": this.form.elements.csrfmiddlewaretoken.value, ...(body ? { "Content-Type": "application/json" } : {}) };
    const answer = await fetch(url, { method, headers, body, signal, credentials: "same-origin" });
    if (isEnded(answer)) sayEnded();
    return answer;
  }

  #fail(text) {
    this.part("problem").replaceChildren(element("pre", { class: "text mb-0" }, text));
    this.part("problem").hidden = false;
  }

  #say(text, { masked = {}, cut = false }) {
    this.part("status").textContent = text;
    const columns = Object.entries(masked).map(([column, role]) => `${column} (role ${role})`);
    const parts = [cut ? "There are more rows. Only the first are shown; Download has all of them, up to a million." : "", columns.length ? `Masked columns, which are NULL for you: ${columns.join(", ")}.` : ""].filter(Boolean);
    this.part("note").textContent = parts.join(" ");
    this.part("note").hidden = parts.length === 0;
  }

  #offer() {
    const { across, values } = choices(this.#result.columns);
    const option = ({ name, index }) => element("option", { value: index }, name);
    this.axes[0].replaceChildren(...across.map(option));
    this.axes[1].replaceChildren(element("option", { value: "" }, "all numbers"), ...values.map(option));
  }

  #view(name) {
    for (const button of this.section.querySelectorAll("[data-query-view]")) {
      button.classList.toggle("active", button.dataset.queryView === name);
      button.setAttribute("aria-pressed", String(button.dataset.queryView === name));
    }
    this.part("table").hidden = name !== "table";
    this.part("chart").hidden = name !== "chart";
    if (name === "chart") this.#draw();
  }

  #draw() {
    const [x, y] = this.axes.map((select) => select.value);
    const { values } = choices(this.#result.columns);
    const shown = seriesOf(this.#result, Number(x), y ? [Number(y)] : values.map(({ index }) => index));
    document.getElementById("query-chart-text").textContent = shown.sentence;
    this.part("canvas").hidden = !shown.series.length;
    if (shown.series.length) this.part("canvas").dispatchEvent(new CustomEvent("headgate:chart", { detail: shown }));
  }
}

document.addEventListener("DOMContentLoaded", () => {
  for (const section of document.querySelectorAll("[data-query]")) new Query(section);
});
