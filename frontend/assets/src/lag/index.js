// Brings a [data-lag] section to life: draws the chosen window, and again when its supervisor has changed.
import * as format from "../timeline/format.js";
import { LagChart, spoken } from "./chart.js";
import { fetchLag } from "./data.js";

const LIVE_MS = 10_000;

class Lag {
  #askedAt = 0;
  #chosen = -1;
  #pending = null;
  #asked = { span: "1h", partition: "" };

  constructor(section) {
    this.section = section;
    this.surface = section.querySelector("[data-lag-chart]");
    this.status = section.querySelector("[data-lag-status]");
    this.announcer = section.querySelector("[data-lag-announce]");
    this.chart = new LagChart(this.surface.querySelector("[data-lag-canvas]"));
    section.querySelector("[data-lag-window]").addEventListener("change", (event) => {
      this.#asked.span = event.target.value;
      this.#load();
    });
    section.querySelector("[data-lag-partition]")?.addEventListener("change", (event) => {
      this.#asked.partition = event.target.value;
      this.#load();
    });
    for (const button of section.querySelectorAll("[data-lag-zoom]")) button.addEventListener("click", () => this.#zoom(button.dataset.lagZoom));
    this.surface.addEventListener("keydown", (event) => this.#key(event));
    this.surface.addEventListener("blur", () => this.#choose(-1));
    document.addEventListener("headgate:theme", () => this.chart.restyle());
    this.#load();
    section.addEventListener("live", () => this.#chosen < 0 && this.#late());
  }

  // The series has a sample every few seconds: it is not asked for more often.
  #late() {
    if (Date.now() - this.#askedAt >= LIVE_MS) this.#load();
  }

  async #load() {
    this.#askedAt = Date.now();
    this.#pending?.abort();
    this.#pending = new AbortController();
    try {
      this.#show(await fetchLag(this.section.dataset.url, this.#asked, this.#pending.signal));
    } catch (error) {
      if (error.name !== "AbortError") this.status.textContent = `The lag could not be loaded. ${error.message}`;
    }
  }

  #show(answer) {
    const { points } = answer;
    this.section.toggleAttribute("data-empty", points.length === 0);
    this.section.dataset.points = points.length;
    this.#choose(-1);
    this.chart.show(answer);
    if (points.length === 0) {
      this.status.textContent = "";
      return;
    }
    const most = Math.max(...points.map((point) => point.lag));
    this.status.textContent = `The last lag seen is ${format.count(points.at(-1).lag)}, the largest ${format.count(most)}, in ${format.plural(points.length, "sample")}.`;
  }

  #zoom(how) {
    this.chart.zoomBy({ in: 0.5, out: 2 }[how] ?? null);
    const { start, end } = this.chart.zoom;
    this.section.dataset.zoom = `${Math.round(start)}-${Math.round(end)}`;
  }

  #choose(index) {
    this.#chosen = index;
    this.chart.choose(index);
    if (index >= 0) this.announcer.textContent = spoken(this.chart.points[index]);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.chart.points.length - 1;
    const step = (by) => this.#choose(this.#chosen < 0 ? last : Math.min(Math.max(this.#chosen + by, 0), last));
    const keys = {
      ArrowLeft: () => step(event.shiftKey ? -10 : -1),
      ArrowRight: () => step(event.shiftKey ? 10 : 1),
      Home: () => this.#choose(0),
      End: () => this.#choose(last),
      Escape: () => this.#choose(-1),
      "+": () => this.#zoom("in"),
      "-": () => this.#zoom("out"),
      0: () => this.#zoom("whole"),
    };
    const action = last >= 0 && keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

document.addEventListener("DOMContentLoaded", () => {
  for (const section of document.querySelectorAll("[data-lag]")) new Lag(section);
});
