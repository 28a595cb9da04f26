// The drawing: lag above, rows and redeliveries a second below, on one UTC time axis.
import { LineChart } from "echarts/charts";
import { AxisPointerComponent, GridComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import * as format from "../timeline/format.js";
import { line, nearest } from "./data.js";

echarts.use([LineChart, GridComponent, TooltipComponent, AxisPointerComponent, CanvasRenderer]);

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

  show({ start, end, resolution, points }) {
    this.#points = points;
    this.#echart.setOption({
      xAxis: [{ min: start, max: end }, { min: start, max: end }],
      series: [
        { id: "lag", data: line(points, resolution, (point) => point.lag) },
        { id: "rows", data: line(points, resolution, (point) => point.rows) },
        { id: "redelivered", data: line(points, resolution, (point) => point.redelivered) },
      ],
    });
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
      tooltip: { trigger: "axis", confine: true, padding: [8, 12], formatter: (hits) => describe(this.#points[nearest(this.#points, hits[0].axisValue)]) },
      xAxis: [x(0, false), x(1, true)],
      yAxis: [y(0, "Lag, offsets"), y(1, "A second")],
      series: [{ ...series("lag", 0), areaStyle: {} }, series("rows", 1), series("redelivered", 1)],
    };
  }
}

const rate = (value) => (value === null ? "–" : format.count(Math.round(value * 10) / 10));

export const spoken = (point) => `${format.time(point.at)} UTC: lag ${format.count(point.lag)}, ${rate(point.rows)} rows a second`;

// Only numbers and times of our own making: nothing here needs escaping.
function describe(point) {
  if (!point) return "";
  const entry = (name, value) => `<div class="timeline-tip-line"><span>${name}</span><b>${value}</b></div>`;
  const parts = [entry("Lag", format.count(point.lag)), entry("Held by indexers", format.count(point.held)), entry("Rows a second", rate(point.rows)), entry("Redelivered a second", rate(point.redelivered))];
  return `<div class="timeline-tip"><div>${format.time(point.at)} UTC</div>${parts.join("")}</div>`;
}
