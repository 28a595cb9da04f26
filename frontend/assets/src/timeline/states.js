// The line of states above the bars: how each interval stands, and where none lies. Shapes tell them apart, not colours alone.
import * as format from "./format.js";

export const STATE_LABELS = { complete: "Complete", filling: "Still filling", by_hand: "Manual", unknown: "Completeness unknown", compacting: "Being compacted", awaiting: "Waiting for compaction", gap: "Gap" };
const DRAWN = ["complete", "filling", "compacting", "awaiting", "gap"];
const COLOURS = { complete: "--hg-ok-line", filling: "--hg-work-line", compacting: "--hg-chart-text", awaiting: "--hg-chart-text", gap: "--hg-bad-line", ring: "--hg-surface" };

// What compaction does with a bar's intervals now, or is about to.
const mergeOf = (bar) => (bar.compacting && "compacting") || (bar.awaiting && "awaiting") || "";

// As marks: neighbours of one state are one mark, so that a year of days is no picket fence.
export function stateMarks(bars, gaps) {
  const marks = [];
  for (const { start, end, state } of bars) {
    const last = marks.at(-1);
    if (last?.state === state && last.end >= start) last.end = Math.max(last.end, end);
    else marks.push({ start, end, state });
  }
  const merges = bars.filter(mergeOf).map((bar) => ({ start: bar.start, end: bar.end, state: mergeOf(bar) }));
  return [...marks.filter(({ state }) => DRAWN.includes(state)), ...gaps.map(({ start, end }) => ({ start, end, state: "gap" })), ...merges];
}

export const stateColours = (colour) => Object.fromEntries(Object.entries(COLOURS).map(([state, name]) => [state, colour(name)]));

// One mark, as ECharts draws it: full, hollow, a broken line, or over what lies below it a dot with a ring, hollow while it waits.
export function drawState(state, { x, y, width, height }, colours) {
  const colour = colours[state];
  const middle = y + height / 2;
  if (state === "gap") return { type: "line", shape: { x1: x, y1: middle, x2: x + width, y2: middle }, style: { stroke: colour, lineWidth: 2, lineDash: [4, 3] } };
  if (state === "filling") return { type: "rect", shape: { x: x + 0.5, y: y + 0.5, width: Math.max(1, width - 1), height: height - 1 }, style: { fill: "transparent", stroke: colour, lineWidth: 1.5 } };
  if (state === "compacting") return { type: "circle", shape: { cx: x + width / 2, cy: middle, r: height / 2 + 1 }, style: { fill: colour, stroke: colours.ring, lineWidth: 1.5 } };
  if (state === "awaiting") return { type: "circle", shape: { cx: x + width / 2, cy: middle, r: height / 2 }, style: { fill: colours.ring, stroke: colour, lineWidth: 1.5 } };
  return { type: "rect", shape: { x, y, width, height }, style: { fill: colour } };
}

// What is in view, in words, for who does not see the drawing: the legend shows no more than that.
export function statesTold(bars, gaps) {
  const count = (test) => bars.filter(test).reduce((sum, bar) => sum + bar.intervals, 0);
  const found = { complete: count((bar) => bar.state === "complete"), filling: count((bar) => bar.state === "filling"), by_hand: count((bar) => bar.state === "by_hand"), unknown: count((bar) => bar.state === "unknown"), compacting: bars.filter((bar) => bar.compacting).length, awaiting: bars.filter((bar) => mergeOf(bar) === "awaiting").length, gap: gaps.length };
  return Object.fromEntries(Object.entries(found).filter(([, number]) => number > 0).map(([state, number]) => [state, format.count(number)]));
}

export const stateOf = (bar) => [bar.state, mergeOf(bar)].filter(Boolean).map((state, place) => (place ? STATE_LABELS[state].toLowerCase() : STATE_LABELS[state])).join(", ");
