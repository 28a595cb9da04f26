// The drawing of a result: lines over time, bars otherwise. The page says what, with an event.
import { BarChart, LineChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import * as format from "../timeline/format.js";

echarts.use([BarChart, LineChart, GridComponent, LegendComponent, TooltipComponent, CanvasRenderer]);

const COLOURS = ["--hg-chart-bar", "--hg-chart-bar-chosen", "--hg-json-text", "--hg-json-key", "--hg-bad-line", "--hg-chart-text"];

// shown: {isTime, series: [{name, points: [[x, y], …]}]}
function draw(chart, place, { isTime, series }) {
  const style = getComputedStyle(place);
  const colour = (name) => style.getPropertyValue(name).trim();
  const text = { color: colour("--hg-chart-text"), fontFamily: style.fontFamily };
  const rule = { lineStyle: { color: colour("--hg-chart-line") } };
  const axis = { axisLabel: { ...text, hideOverlap: true }, axisLine: rule, axisTick: rule, splitLine: { lineStyle: { color: colour("--hg-chart-grid") } } };
  chart.setOption(
    {
      useUTC: true,
      animation: false,
      color: COLOURS.map(colour),
      grid: { left: 8, right: 16, top: 40, bottom: 8, containLabel: true },
      legend: { type: "scroll", top: 0, textStyle: text },
      tooltip: { trigger: "axis", confine: true, renderMode: "richText", backgroundColor: colour("--hg-chart-tip"), borderColor: colour("--hg-chart-line"), textStyle: { ...text, color: colour("--hg-chart-tip-text") } },
      xAxis: { ...axis, type: isTime ? "time" : "category", splitLine: { show: false } },
      yAxis: { ...axis, type: "value", axisLabel: { ...text, formatter: format.compact } },
      series: series.map(({ name, points }) => ({ name, type: isTime ? "line" : "bar", showSymbol: points.length < 60, data: points })),
    },
    true,
  );
}

document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll("[data-query-canvas]")) {
    let chart = null;
    let shown = null;
    place.addEventListener("headgate:chart", ({ detail }) => {
      shown = detail;
      if (!chart) new ResizeObserver(() => chart.resize()).observe(place);
      chart ??= echarts.init(place, null, { renderer: "canvas" });
      draw(chart, place, shown);
    });
    document.addEventListener("headgate:theme", () => chart && draw(chart, place, shown));
  }
});
