// Brings a [data-lag] section to life: draws the chosen window, and again every few seconds while a task may run.
import * as format from "../timeline/format.js";
import { LagChart, spoken } from "./chart.js";
import { fetchLag } from "./data.js";

const LIVE_MS = 10_000;

class Lag {
  #chosen = -1;
  #pending = null;
  #span = "1h";

  constructor(section) {
    this.section = section;
    this.surface = section.querySelector("[data-lag-chart]");
    this.status = section.querySelector("[data-lag-status]");
    this.announcer = section.querySelector("[data-lag-announce]");
    this.chart = new LagChart(this.surface.querySelector("[data-lag-canvas]"));
    section.querySelector("[data-lag-window]").addEventListener("change", (event) => {
      this.#span = event.target.value;
      this.#load();
    });
    this.surface.addEventListener("keydown", (event) => this.#key(event));
    this.surface.addEventListener("blur", () => this.#choose(-1));
    document.addEventListener("headgate:theme", () => this.chart.restyle());
    this.#load();
    if (section.dataset.live) setInterval(() => !document.hidden && this.#chosen < 0 && this.#load(), LIVE_MS);
  }

  async #load() {
    this.#pending?.abort();
    this.#pending = new AbortController();
    try {
      this.#show(await fetchLag(this.section.dataset.url, this.#span, this.#pending.signal));
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
