// The switches of the layers: what is on stands in the address, and is drawn above the bars, a line for each.
import { askedLayers, keepLayers } from "./address.js";
import { heat } from "./data.js";
import * as format from "./format.js";

export const HEAT = "small"; // colours the bars, and needs nothing of the server

export class Layers {
  #switches;

  constructor(section, changed) {
    this.#switches = [...section.querySelectorAll("[data-timeline-layer]")];
    const asked = askedLayers();
    for (const one of this.#switches) {
      one.checked = asked.has(one.dataset.timelineLayer);
      one.addEventListener("change", () => {
        keepLayers(this.on);
        changed();
      });
    }
  }

  get on() {
    return this.#switches.filter((one) => one.checked).map((one) => one.dataset.timelineLayer);
  }

  // What the server is asked for.
  get fetched() {
    return this.on.filter((name) => name !== HEAT);
  }

  get heat() {
    return this.on.includes(HEAT);
  }

  label(name) {
    return this.#switches.find((one) => one.dataset.timelineLayer === name)?.labels[0]?.textContent.trim() ?? name;
  }

  // What they hold, for who does not see the drawing.
  told(layers, bars) {
    return [...(this.heat ? [this.#smallTold(bars)] : []), ...layers.map((layer) => this.#layerTold(layer))];
  }

  #smallTold(bars) {
    const coloured = bars.filter((bar) => heat(bar) > 0).length;
    const said = coloured > 0 ? `${format.count(coloured)} of ${format.plural(bars.length, "bar")} coloured; a stronger colour means more segments than needed` : "no bar has more segments than it needs";
    return `${this.label(HEAT)}: ${said}`;
  }

  #layerTold({ name, marks }) {
    if (marks === null) return `${this.label(name)}: too many to be drawn, zoom in`;
    if (marks.length === 0) return `${this.label(name)}: none in view`;
    const segments = marks.reduce((sum, mark) => sum + mark.segments, 0);
    return `${this.label(name)}: ${format.plural(segments, "segment")} of ${format.plural(marks.length, "interval")}`;
  }
}
