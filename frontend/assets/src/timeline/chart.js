// The drawing: one rectangle per bar on a UTC time axis, a slider with the whole range below.
import { CustomChart, LineChart } from "echarts/charts";
import { DataZoomInsideComponent, DataZoomSliderComponent, GridComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { heat, outline } from "./data.js";
import * as format from "./format.js";
import { drawState, stateColours, stateMarks, stateOf } from "./states.js";

echarts.use([CustomChart, LineChart, GridComponent, TooltipComponent, DataZoomInsideComponent, DataZoomSliderComponent, CanvasRenderer]);

export const MEASURES = {
  rows: { label: "Rows", value: (bar) => bar.rows, format: format.compact },
  segments: { label: "Segments", value: (bar) => bar.segments, format: format.compact },
  size: { label: "Bytes", value: (bar) => bar.size, format: format.bytes },
};
const SHORTEST_WINDOW_MS = 2_000;
const LINE_PX = 9; // a line of marks: that of the states, and above it one of each layer
const LAYER_COLOURS = { unused: "--hg-quiet-line", merged: "--hg-ok-line", late: "--hg-need-line" };

export class TimelineChart {
  #echart;
  #element;
  #bars = [];
  #measure = "rows";
  #tipX = 0;
  #chosenColour = "";
  #heatColour = "";
  #heated = false;
  #layerColours = {};
  #stateColours = {};
  #layerNames = []; // by line

  constructor(element) {
    this.#element = element;
    this.#echart = echarts.init(element, null, { renderer: "canvas" });
    this.#echart.setOption(this.#options());
    this.restyle();
    new ResizeObserver(() => this.#echart.resize()).observe(element);
  }

  get bars() {
    return this.#bars;
  }

  // What of the axis is in view, in ms.
  get window() {
    const { startValue, endValue } = this.#echart.getOption().dataZoom[0];
    return { start: startValue, end: endValue };
  }

  onZoom(callback) {
    this.#echart.on("datazoom", callback);
  }

  // The bar below the pointer goes to `hover` (or -1), a click on it to `click`.
  onPointer(hover, click) {
    const surface = this.#echart.getZr();
    surface.on("mousemove", (event) => hover(this.#barAt(event), event));
    surface.on("globalout", () => hover(-1));
    surface.on("click", (event) => click(this.#barAt(event)));
  }

  #barAt({ offsetX, offsetY }) {
    if (!this.#echart.containPixel({ gridIndex: 0 }, [offsetX, offsetY])) return -1;
    const at = this.#echart.convertFromPixel({ xAxisIndex: 0 }, offsetX);
    const near = (this.window.end - this.window.start) * (3 / this.#element.clientWidth);
    const inside = this.#bars.findIndex((bar) => bar.start <= at && at < bar.end);
    return inside >= 0 ? inside : this.#bars.findIndex((bar) => bar.start - near <= at && at < bar.end + near);
  }

  zoomTo(start, end) {
    this.#echart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, startValue: start, endValue: end });
  }

  // Everything there is: sets the axis and the slider's shadow.
  setWhole(domain, bars) {
    this.#echart.setOption({
      xAxis: { min: domain.start, max: domain.end },
      dataZoom: [{ minValueSpan: SHORTEST_WINDOW_MS }, { minValueSpan: SHORTEST_WINDOW_MS }],
      series: [{ id: "outline", data: outline(bars, domain, MEASURES[this.#measure].value) }],
    });
  }

  // Lines of marks above the bars: how intervals stand, then each layer in the order given. `heated`: bars of many
  // small segments stand out.
  setLines(bars, gaps, layers, heated) {
    this.#heated = heated;
    const lines = layers.filter(({ marks }) => marks?.length > 0);
    this.#layerNames = ["", ...lines.map(({ name }) => name)];
    const states = stateMarks(bars, gaps).map(({ start, end, state }) => [start, end, 0, state]);
    const data = lines.flatMap(({ marks }, line) => marks.map(({ start, end }) => [start, end, line + 1]));
    const height = LINE_PX * (lines.length + 1);
    this.#echart.setOption({ grid: { top: 34 + height }, yAxis: [{ nameGap: 8 + height }, {}], series: [{ id: "layers", data: [...states, ...data] }] });
  }

  setBars(bars, measure) {
    this.#bars = bars;
    this.#measure = measure;
    const { label, value, format: axisFormat } = MEASURES[measure];
    const interval = measure === "size" ? binaryStep(Math.max(...bars.map(value), 1)) : null;
    this.#echart.setOption({
      yAxis: [{ name: label, axisLabel: { formatter: axisFormat }, minInterval: interval ? 0 : 1, interval, max: interval && (({ max }) => Math.ceil(max / interval) * interval) }, {}],
      series: [{ id: "bars", data: bars.map((bar) => [bar.start, bar.end, value(bar), heat(bar)]) }],
    });
  }

  // Marks one bar and shows what it holds; -1 for none.
  choose(index, x) {
    this.#echart.dispatchAction({ type: "downplay", seriesId: "bars" });
    if (index < 0) {
      this.#echart.dispatchAction({ type: "hideTip" });
      return;
    }
    const bar = this.#bars[index];
    this.#tipX = x ?? this.#echart.convertToPixel({ xAxisIndex: 0 }, (bar.start + bar.end) / 2);
    this.#echart.dispatchAction({ type: "highlight", seriesId: "bars", dataIndex: index });
    this.#echart.dispatchAction({ type: "showTip", seriesIndex: 1, dataIndex: index });
  }

  // Colours come from the page's style sheet, so that light and dark are decided in one place.
  restyle() {
    const style = getComputedStyle(this.#element);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.#chosenColour = colour("--hg-chart-bar-chosen");
    this.#heatColour = colour("--hg-bad-line");
    this.#layerColours = Object.fromEntries(Object.entries(LAYER_COLOURS).map(([name, variable]) => [name, colour(variable)]));
    this.#stateColours = stateColours(colour);
    const text = { color: colour("--hg-chart-text"), fontFamily: style.fontFamily };
    const line = { lineStyle: { color: colour("--hg-chart-line") } };
    const axis = { axisLabel: text, axisLine: line, axisTick: line, nameTextStyle: text, splitLine: { lineStyle: { color: colour("--hg-chart-grid") } } };
    this.#echart.setOption({
      xAxis: { ...axis, splitLine: { show: false } },
      yAxis: [axis, {}],
      tooltip: { backgroundColor: colour("--hg-chart-tip"), borderColor: colour("--hg-chart-line"), textStyle: { ...text, color: colour("--hg-chart-tip-text"), fontSize: 13 } },
      dataZoom: [{}, this.#sliderStyle(colour, text)],
      series: [
        { id: "outline" },
        { id: "bars", itemStyle: { color: colour("--hg-chart-bar") } },
        { id: "layers" },
      ],
    });
  }

  #mark(params, api) {
    const { x: least, y: top, width } = params.coordSys;
    const left = Math.max(least, Math.round(api.coord([api.value(0), 0])[0]));
    const right = Math.min(least + width, Math.round(api.coord([api.value(1), 0])[0]));
    if (right < least || left > least + width) return null;
    const line = api.value(2);
    const name = this.#layerNames[line];
    const y = top - LINE_PX * (line + 1);
    const state = line === 0 && api.value(3);
    if (state) return drawState(state, { x: left, y, width: Math.max(2, right - left - 1), height: LINE_PX - 3 }, this.#stateColours);
    return { type: "rect", shape: { x: left, y, width: Math.max(2, right - left - 1), height: LINE_PX - 3 }, style: { fill: this.#layerColours[name] } };
  }

  // Never over the bar it is about.
  #beside(point, params, dom, rect, { contentSize }) {
    const left = this.#tipX > this.#element.clientWidth / 2 ? this.#tipX - contentSize[0] - 16 : this.#tipX + 16;
    return [Math.max(4, left), 26];
  }

  #sliderStyle(colour, text) {
    const shadow = { lineStyle: { color: colour("--hg-chart-bar"), opacity: 0.5, width: 1 }, areaStyle: { color: colour("--hg-chart-bar"), opacity: 0.25 } };
    return {
      borderColor: colour("--hg-chart-grid"),
      fillerColor: colour("--hg-chart-window"),
      backgroundColor: "transparent",
      textStyle: text,
      handleStyle: { color: colour("--hg-chart-tip"), borderColor: colour("--hg-chart-bar") },
      moveHandleStyle: { color: colour("--hg-chart-line"), opacity: 0.6 },
      dataBackground: shadow,
      selectedDataBackground: { ...shadow, areaStyle: { ...shadow.areaStyle, opacity: 0.5 } },
    };
  }

  #options() {
    const hidden = { lineStyle: { opacity: 0 }, itemStyle: { opacity: 0 }, showSymbol: false, silent: true, animation: false };
    return {
      useUTC: true,
      animation: false,
      grid: { left: 16, right: 20, top: 34, bottom: 76, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
      tooltip: { trigger: "item", triggerOn: "none", confine: true, position: (...place) => this.#beside(...place), padding: [8, 12], formatter: ({ dataIndex }) => describe(this.#bars[dataIndex]) },
      xAxis: { type: "time", splitNumber: 8, axisLabel: { hideOverlap: true }, axisTick: { show: true } },
      yAxis: [{ type: "value", min: 0, nameLocation: "end", nameGap: 12, splitNumber: 4 }, { type: "value", show: false, min: 0 }],
      dataZoom: [
        { type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: true, moveOnMouseMove: true, throttle: 30 },
        { type: "slider", filterMode: "weakFilter", height: 34, bottom: 12, left: 24, right: 24, showDetail: false, brushSelect: true, throttle: 30 },
      ],
      series: [
        { id: "outline", type: "line", yAxisIndex: 1, data: [], ...hidden },
        { id: "bars", type: "custom", encode: { x: [0, 1], y: 2 }, data: [], renderItem: (...item) => drawBar(...item, this.#chosenColour, this.#heated && this.#heatColour), clip: true },
        { id: "layers", type: "custom", silent: true, encode: { x: [0, 1], y: -1 }, data: [], renderItem: (params, api) => this.#mark(params, api) },
      ],
    };
  }
}

// A step of the axis for sizes: a power of two, so that its labels are whole units.
const binaryStep = (largest) => 2 ** Math.ceil(Math.log2(largest / 4));

// At least one pixel wide; wide enough ones keep a gap to their neighbour.
function drawBar(params, api, chosenColour, heatColour) {
  const [left, top] = api.coord([api.value(0), api.value(2)]);
  const [right, bottom] = api.coord([api.value(1), 0]);
  const gap = right - left > 2.5 ? 1 : 0;
  const x = Math.round(left); // whole pixels: neighbours meet without a seam
  const shape = echarts.graphic.clipRectByRect(
    { x, y: Math.min(top, bottom - 1), width: Math.max(1, Math.round(right) - x - gap), height: Math.max(1, bottom - top) },
    params.coordSys,
  );
  if (!shape) return null;
  const bar = { type: "rect", shape, style: { fill: api.visual("color") }, emphasis: { style: { fill: chosenColour } } };
  const warmth = heatColour ? api.value(3) : 0;
  if (warmth === 0) return bar;
  return { type: "group", children: [bar, { type: "rect", silent: true, shape, style: { fill: heatColour, opacity: 0.25 + 0.75 * warmth } }] };
}

// Only numbers and times of our own making: nothing here needs escaping.
export function describe(bar) {
  if (!bar) return "";
  const line = (name, value) => `<div class="timeline-tip-line"><span>${name}</span><b>${value}</b></div>`;
  const merged = bar.intervals > 1 ? line("Intervals", format.count(bar.intervals)) : "";
  return `<div class="timeline-tip"><div>${format.span(bar.start, bar.end)}</div>${merged}${line("State", stateOf(bar))}${line("Rows", format.count(bar.rows))}${line("Segments", format.count(bar.segments))}${line("Size", format.bytes(bar.size))}${line("Of a segment", format.bytes(Math.round(bar.size / Math.max(1, bar.segments))))}</div>`;
}
