// The drawing: lag above, rows and redeliveries a second below, on one UTC time axis.
import { LineChart } from "echarts/charts";
import { AxisPointerComponent, DataZoomInsideComponent, GridComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import * as format from "../timeline/format.js";
import { line, nearest } from "./data.js";

echarts.use([LineChart, GridComponent, TooltipComponent, AxisPointerComponent, DataZoomInsideComponent, MarkLineComponent, CanvasRenderer]);

const GLYPHS = { spec: "▲", scale: "◆", restart: "●", failure: "✕" };
const NARROWEST = 2; // percent of the window

export class LagChart {
  #echart;
  #element;
  #points = [];

  constructor(element) {
    this.#element = element;
    this.#echart = echarts.init(element, null, { renderer: "canvas" });
    this.#echart.setOption(this.#options());
    this.restyle();
    new ResizeObserver(() => this.#echart.resize()).observe(element);
  }

  get points() {
    return this.#points;
  }

  // Of the window, in percent.
  get zoom() {
    const { start, end } = this.#echart.getOption().dataZoom[0];
    return { start, end };
  }

  // factor: of what is shown, less than 1 to look closer; null for the whole.
  zoomBy(factor) {
    const { start, end } = this.zoom;
    const half = factor === null ? 50 : Math.min(50, Math.max(NARROWEST / 2, ((end - start) * factor) / 2));
    const middle = factor !== null && factor < 1 && end - start >= 100 ? 75 : (start + end) / 2; // first towards now
    const from = Math.min(Math.max(0, middle - half), 100 - 2 * half);
    this.#echart.dispatchAction({ type: "dataZoom", start: from, end: from + 2 * half });
  }

  show({ start, end, resolution, points, marks = [] }) {
    this.#points = points;
    this.#marks(marks);
    this.#echart.setOption({
      xAxis: [{ min: start, max: end }, { min: start, max: end }],
      series: [
        { id: "lag", data: line(points, resolution, (point) => point.lag) },
        { id: "rows", data: line(points, resolution, (point) => point.rows) },
        { id: "redelivered", data: line(points, resolution, (point) => point.redelivered) },
      ],
    });
  }

  #marks(marks) {
    const style = getComputedStyle(this.#element);
    const colour = (name) => style.getPropertyValue(name).trim();
    const data = marks.map(({ at, kind }) => ({
      xAxis: at,
      lineStyle: { color: colour(kind === "failure" ? "--hg-bad-line" : "--hg-chart-line"), type: "dashed", width: 1 },
      label: { formatter: GLYPHS[kind], color: colour(kind === "failure" ? "--hg-bad" : "--hg-chart-text"), fontSize: 11, distance: 2 },
    }));
    this.#echart.setOption({ series: [{ id: "lag", markLine: { silent: true, symbol: "none", animation: false, data } }] });
  }

  // Marks one point and shows what it holds; -1 for none.
  choose(index) {
    const point = this.#points[index];
    if (!point) {
      this.#echart.dispatchAction({ type: "hideTip" });
      return;
    }
    const [x, y] = this.#echart.convertToPixel({ gridIndex: 0 }, [point.at, point.lag]);
    this.#echart.dispatchAction({ type: "showTip", x, y: Math.max(y, 40) });
  }

  // Colours come from the page's style sheet, so that light and dark are decided in one place.
  restyle() {
    const style = getComputedStyle(this.#element);
    const colour = (name) => style.getPropertyValue(name).trim();
    const text = { color: colour("--hg-chart-text"), fontFamily: style.fontFamily };
    const rule = { lineStyle: { color: colour("--hg-chart-line") } };
    const axis = { axisLabel: text, axisLine: rule, axisTick: rule, nameTextStyle: text, splitLine: { lineStyle: { color: colour("--hg-chart-grid") } } };
    const drawn = (id, name, dashed = false) => ({ id, lineStyle: { color: colour(name), width: 2, type: dashed ? "dashed" : "solid" }, itemStyle: { color: colour(name) } });
    this.#echart.setOption({
      xAxis: [0, 1].map(() => ({ ...axis, splitLine: { show: false } })),
      yAxis: [0, 1].map(() => axis),
      axisPointer: { lineStyle: { color: colour("--hg-chart-line") } },
      tooltip: { backgroundColor: colour("--hg-chart-tip"), borderColor: colour("--hg-chart-line"), textStyle: { ...text, color: colour("--hg-chart-tip-text"), fontSize: 13 } },
      series: [
        { ...drawn("lag", "--hg-chart-bar"), areaStyle: { color: colour("--hg-chart-bar"), opacity: 0.2 } },
        drawn("rows", "--hg-chart-bar"),
        drawn("redelivered", "--hg-chart-bar-chosen", true),
      ],
    });
  }

  #options() {
    const x = (gridIndex, labels) => ({ type: "time", gridIndex, splitNumber: 6, axisLabel: { hideOverlap: true, show: labels }, axisTick: { show: labels } });
    const y = (gridIndex, name) => ({ type: "value", gridIndex, name, min: 0, minInterval: 1, splitNumber: 3, nameGap: 10, nameLocation: "end", nameTextStyle: { align: "left" }, axisLabel: { formatter: format.compact } });
    const series = (id, index) => ({ id, type: "line", xAxisIndex: index, yAxisIndex: index, showSymbol: false, symbolSize: 7, data: [] });
    return {
      useUTC: true,
      animation: false,
      grid: [
        { left: 56, right: 20, top: 30, height: "40%" },
        { left: 56, right: 20, top: "64%", bottom: 30 },
      ],
      axisPointer: { link: [{ xAxisIndex: "all" }] },
      dataZoom: [{ type: "inside", xAxisIndex: [0, 1], zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, moveOnMouseWheel: false, minSpan: NARROWEST, filterMode: "none" }],
      tooltip: { trigger: "axis", confine: true, padding: [8, 12], formatter: (hits) => describe(this.#points[nearest(this.#points, hits[0].axisValue)]) },
      xAxis: [x(0, false), x(1, true)],
      yAxis: [y(0, "Lag, offsets"), y(1, "Per second")],
      series: [{ ...series("lag", 0), areaStyle: {} }, series("rows", 1), series("redelivered", 1)],
    };
  }
}

const rate = (value) => (value === null ? "–" : format.count(Math.round(value * 10) / 10));

export const spoken = (point) => `${format.time(point.at)} UTC: lag ${format.count(point.lag)}, ${rate(point.rows)} rows per second`;

// Only numbers and times of our own making: nothing here needs escaping.
function describe(point) {
  if (!point) return "";
  const entry = (name, value) => `<div class="timeline-tip-line"><span>${name}</span><b>${value}</b></div>`;
  const parts = [entry("Lag", format.count(point.lag)), entry("Held by indexers", format.count(point.held)), entry("Rows/s", rate(point.rows)), entry("Redelivered/s", rate(point.redelivered))];
  return `<div class="timeline-tip"><div>${format.time(point.at)} UTC</div>${parts.join("")}</div>`;
}
