// Brings a [data-timeline] section to life: what is drawn follows the window, finer data is fetched when a zoom ends.
import { TimelineChart } from "./chart.js";
import { askedWindow, keepWindow, openingWindow, withLayers, withRange, withWindow } from "./address.js";
import { domain, fetchTimeline } from "./data.js";
import * as format from "./format.js";
import { Layers } from "./layers.js";
import { STATE_LABELS, stateOf, statesTold } from "./states.js";

const SETTLE_MS = 180;
const LIVE_MS = 10_000;

class Timeline {
  #chosen = -1;
  #measure = "rows";
  #whole = null; // {domain, bars} of everything
  #content = "";
  #pending = {}; // what is being fetched: the whole range, the window
  #askedAt = 0;
  #timer = 0;
  #asked = null; // the window that the address asks for, until it is drawn

  constructor(section) {
    this.section = section;
    this.surface = section.querySelector("[data-timeline-chart]");
    this.status = section.querySelector("[data-timeline-status]");
    this.layerStatus = section.querySelector("[data-timeline-layers]");
    this.table = section.querySelector("[data-timeline-table]");
    this.query = section.querySelector("[data-timeline-query]");
    this.legend = [...section.querySelectorAll("[data-timeline-state]")];
    this.announcer = section.querySelector("[data-timeline-announce]");
    this.chart = new TimelineChart(this.surface.querySelector("[data-timeline-canvas]"));
    this.layers = new Layers(section, () => this.#relayer());
    this.#listen();
    this.#asked = askedWindow() ?? openingWindow(this.section);
    this.#loadWhole();
    section.addEventListener("live", () => this.#late());
  }

  // It grows a little all the time: it is not asked for with each publish.
  #late() {
    if (Date.now() - this.#askedAt < LIVE_MS) return;
    this.#askedAt = Date.now();
    this.#loadWhole();
  }

  #listen() {
    this.chart.onZoom(() => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#loadWindow(), SETTLE_MS);
    });
    this.chart.onPointer(
      (index, event) => this.#choose(index, event?.offsetX),
      (index) => this.#open(index),
    );
    this.surface.addEventListener("keydown", (event) => this.#key(event));
    this.surface.addEventListener("blur", () => this.#choose(-1));
    this.section.addEventListener("click", (event) => this.#button(event.target.closest("[data-timeline-do]")));
    this.section.querySelector("[data-timeline-measure]")?.addEventListener("change", (event) => {
      this.#measure = event.target.value;
      this.#draw(this.chart.bars);
      if (this.#whole?.domain) this.chart.setWhole(this.#whole.domain, this.#whole.bars);
    });
    document.addEventListener("headgate:theme", () => this.chart.restyle());
  }

  get #isWhole() {
    if (!this.#whole?.domain) return true;
    const { start, end } = this.chart.window;
    const tolerance = (this.#whole.domain.end - this.#whole.domain.start) * 0.001;
    return Math.abs(start - this.#whole.domain.start) <= tolerance && Math.abs(end - this.#whole.domain.end) <= tolerance;
  }

  // The window that is shown; null for the whole.
  get #zoomed() {
    return this.#isWhole ? null : this.chart.window;
  }

  async #fetch(what, range = {}) {
    this.#pending[what]?.abort();
    this.#pending[what] = new AbortController();
    this.section.dataset.loading = "1";
    try {
      const answer = await fetchTimeline(this.section.dataset.url, { ...range, width: this.surface.clientWidth / 2, layers: this.layers.fetched }, this.#pending[what].signal);
      delete this.section.dataset.loading;
      return answer;
    } catch (error) {
      if (error.name !== "AbortError") {
        delete this.section.dataset.loading;
        this.status.textContent = `The timeline could not be loaded. ${error.message}`;
      }
      return null;
    }
  }

  async #loadWhole() {
    const kept = this.#zoomed;
    const answer = await this.#fetch("whole");
    // Drawing the same again would only take the pointer's bar away.
    const content = answer && JSON.stringify([answer.bars, answer.gaps, answer.layers]);
    if (!answer || content === this.#content) return;
    this.#content = content;
    this.#whole = { bars: answer.bars, gaps: answer.gaps, layers: answer.layers, domain: domain(answer.bars) };
    this.section.toggleAttribute("data-empty", answer.bars.length === 0);
    if (!this.#whole.domain) {
      this.status.textContent = "";
      return;
    }
    this.chart.setWhole(this.#whole.domain, answer.bars);
    const asked = this.#asked;
    this.#asked = null;
    if (asked) this.#zoom(asked.start, asked.end);
    else if (kept) this.chart.zoomTo(kept.start, kept.end); // and with it, its own finer data
    else this.#show(answer);
  }

  async #loadWindow() {
    if (!this.#whole?.domain) return;
    keepWindow(this.#zoomed);
    if (this.#isWhole) {
      this.#show(this.#whole);
      return;
    }
    const { start, end } = this.chart.window;
    const answer = await this.#fetch("window", { from: Math.floor(start), to: Math.ceil(end) });
    if (answer) this.#show(answer);
  }

  // A layer was switched on or off.
  async #relayer() {
    this.#content = "";
    await this.#loadWhole();
  }

  #show({ bars, gaps, layers }) {
    this.chart.setLines(bars, gaps, layers, this.layers.heat);
    this.#draw(bars);
    this.#explain(statesTold(bars, gaps));
    this.table.href = withLayers(withWindow(this.table.href, this.#zoomed), this.layers.fetched);
    if (this.query) this.query.href = withRange(this.query.href, this.#zoomed);
    const total = (key) => bars.reduce((sum, bar) => sum + bar[key], 0);
    const { start, end } = this.#isWhole && bars.length ? { start: bars[0].start, end: bars.at(-1).end } : this.chart.window;
    const intervals = total("intervals");
    const merged = intervals > bars.length ? `, drawn as ${format.plural(bars.length, "bar")}` : "";
    const parts = [format.plural(intervals, "interval") + merged, format.plural(total("rows"), "row"), format.plural(total("segments"), "segment"), format.bytes(total("size"))];
    const told = this.layers.told(layers, bars);
    if (this.layerStatus) this.layerStatus.textContent = told.join("; ");
    this.status.textContent = `${format.span(Math.round(start / 1000) * 1000, Math.round(end / 1000) * 1000)}: ${parts.join(", ")}`;
    Object.assign(this.section.dataset, { bars: bars.length, rows: total("rows"), segments: total("segments"), intervals, layers: this.layers.on.join(" ") });
  }

  // The legend: of each state that is in view, how many intervals; of gaps and what is compacted, how many there are.
  #explain(told) {
    for (const entry of this.legend) {
      const { timelineState: state } = entry.dataset;
      entry.hidden = !(state in told);
      entry.querySelector("[data-timeline-state-text]").textContent = `${STATE_LABELS[state]}: ${told[state] ?? 0}`;
    }
  }

  #draw(bars) {
    this.#choose(-1);
    this.chart.setBars(bars, this.#measure);
  }

  #choose(index, x) {
    if (index === this.#chosen && index < 0) return;
    this.#chosen = index;
    this.chart.choose(index, x);
    this.surface.classList.toggle("timeline-over-bar", index >= 0);
  }

  #open(index) {
    const bar = this.chart.bars[index];
    if (!bar) return;
    if (bar.intervals > 1) {
      this.#zoom(bar.start, bar.end);
      return;
    }
    const query = new URLSearchParams({ from: new Date(bar.start).toISOString(), to: new Date(bar.end).toISOString() });
    window.location.assign(`${this.section.dataset.segmentsUrl}?${query}`);
  }

  // The rows of one bar.
  #ask(index) {
    const bar = this.chart.bars[index];
    if (bar && this.query) window.location.assign(withRange(this.query.href, bar));
  }

  #zoom(start, end) {
    const { domain: whole } = this.#whole ?? {};
    if (!whole) return;
    const width = Math.min(end - start, whole.end - whole.start);
    const from = Math.min(Math.max(start, whole.start), whole.end - width);
    this.chart.zoomTo(from, from + width);
  }

  // So long back from the newest rows, those apart that lie far ahead.
  #last(length) {
    if (!this.#whole?.domain) return;
    const opening = openingWindow(this.section);
    const end = Math.min(opening?.end ?? this.#whole.domain.end, Math.max(...this.#whole.bars.map((bar) => bar.end)));
    this.#zoom(end - length, end);
  }

  #scale(factor) {
    const { start, end } = this.chart.window;
    const bar = this.chart.bars[this.#chosen];
    const centre = bar ? (bar.start + bar.end) / 2 : (start + end) / 2;
    const half = ((end - start) * factor) / 2;
    this.#zoom(centre - half, centre + half);
  }

  #pan(share) {
    const { start, end } = this.chart.window;
    this.#zoom(start + (end - start) * share, end + (end - start) * share);
  }

  #step(by) {
    const { start, end } = this.chart.window;
    const bars = this.chart.bars;
    const visible = bars.findIndex((bar) => bar.end > start && bar.start < end);
    if (visible < 0) return;
    const next = this.#chosen < 0 ? visible : Math.min(Math.max(this.#chosen + by, 0), bars.length - 1);
    const bar = bars[next];
    if (bar.end <= start || bar.start >= end) this.#pan(by * 0.5);
    this.#choose(next);
    this.announcer.textContent = `${format.span(bar.start, bar.end)}: ${format.plural(bar.rows, "row")}, ${format.plural(bar.segments, "segment")}, ${stateOf(bar).toLowerCase()}`;
  }

  #button(button) {
    const actions = {
      in: () => this.#scale(0.5),
      out: () => this.#scale(2),
      earlier: () => this.#pan(-0.5),
      later: () => this.#pan(0.5),
      hour: () => this.#last(3_600_000),
      day: () => this.#last(86_400_000),
      week: () => this.#last(7 * 86_400_000),
      whole: () => this.#whole?.domain && this.#zoom(this.#whole.domain.start, this.#whole.domain.end),
    };
    actions[button?.dataset.timelineDo]?.();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowLeft: () => (event.shiftKey ? this.#pan(-0.5) : this.#step(-1)),
      ArrowRight: () => (event.shiftKey ? this.#pan(0.5) : this.#step(1)),
      "+": () => this.#scale(0.5),
      "=": () => this.#scale(0.5),
      "-": () => this.#scale(2),
      0: () => this.#zoom(this.#whole.domain.start, this.#whole.domain.end),
      Home: () => this.#zoom(this.#whole.domain.start, this.#whole.domain.end),
      Enter: () => (event.shiftKey ? this.#ask(this.#chosen) : this.#open(this.#chosen)),
      Escape: () => this.#choose(-1),
    };
    const action = this.#whole?.domain && keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

document.addEventListener("DOMContentLoaded", () => {
  for (const section of document.querySelectorAll("[data-timeline]")) new Timeline(section);
});
