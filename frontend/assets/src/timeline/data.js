// The server's answer, as bars in time order. Times are milliseconds since 1970; ranges are half-open.
import { isEnded, sayEnded } from "../session.js";

export async function fetchTimeline(url, { from, to, width, layers = [] }, signal) {
  const query = new URLSearchParams({ width: String(Math.max(200, Math.round(width))) });
  if (from !== undefined) query.set("from", new Date(from).toISOString());
  if (to !== undefined) query.set("to", new Date(to).toISOString());
  if (layers.length > 0) query.set("layers", layers.join(","));
  const answer = await fetch(`${url}?${query}`, { signal, headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (isEnded(answer)) {
    sayEnded();
    throw new Error("You are logged out.");
  }
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  const body = await answer.json();
  const marks = Object.entries(body.layers).map(([name, found]) => ({ name, marks: found?.map(([start, end, segments, rows, size]) => ({ start, end, segments, rows, size })) ?? null }));
  return { ...body, layers: marks, gaps: body.gaps.map(([start, end]) => ({ start, end })), bars: body.bars.map(([start, end, rows, segments, size, intervals, state, compacting, awaiting]) => ({ start, end, rows, segments, size, intervals, state, compacting, awaiting })) };
}

// The range that the axis shows: all bars with room beside them; few bars stay narrow enough to look like bars.
export function domain(bars) {
  if (bars.length === 0) return null;
  const start = bars[0].start;
  const end = Math.max(...bars.map((bar) => bar.end));
  const narrowest = Math.min(...bars.map((bar) => bar.end - bar.start));
  const missing = Math.max(0, narrowest * 12 - (end - start));
  const room = Math.max((end - start) * 0.01, Math.min(narrowest, (end - start) * 0.1), missing / 2);
  return { start: start - room, end: end + room, narrowest };
}

// The tallest bar in each of a few hundred columns over the whole range: the shadow in the slider. Empty columns are gaps.
export function outline(bars, { start, end }, value, columns = 300) {
  const width = (end - start) / columns;
  const tallest = new Array(columns).fill(null);
  for (const bar of bars) {
    const first = Math.max(0, Math.floor((bar.start - start) / width));
    const last = Math.min(columns - 1, Math.ceil((bar.end - start) / width) - 1);
    for (let column = first; column <= last; column += 1) tallest[column] = Math.max(tallest[column] ?? 0, value(bar));
  }
  const points = tallest.flatMap((height, column) => [
    [start + column * width, height ?? "-"],
    [start + (column + 1) * width - 1, height ?? "-"],
  ]);
  return [[start, 0], ...points, [end, 0]];
}

// How small a bar's segments are for what they hold: 0 where they are few enough, up to 1 where thousands would be one.
const WANTED_BYTES = 512 * 1024 * 1024;
export function heat({ segments, size, intervals }) {
  const needed = Math.max(intervals, Math.ceil(size / WANTED_BYTES));
  return Math.min(1, Math.log10(Math.max(1, segments / needed)) / 3);
}
