// What of a result is drawn: a column across, and columns of numbers; and the same in a sentence.
import { count, plural } from "../timeline/format.js";
import { text } from "./rows.js";
import { isNumber } from "./table.js";

const MOST_BARS = 200;
const MOST_SERIES = 6;

const isTime = ({ type }) => /^(TIMESTAMP|DATE)/.test(type) && !type.endsWith("[]");
const NO_ZONE = /^\d{4,}-\d\d-\d\d(T[\d:.]+)?$/; // a DATE or a TIMESTAMP: they are UTC's

// The columns that can be chosen, by number: {across: […], values: […]}; the first across is the best.
export function choices(columns) {
  const all = columns.map((column, index) => ({ ...column, index }));
  const rank = (column) => (isTime(column) ? 0 : isNumber(column) ? 2 : 1);
  return { across: all.toSorted((a, b) => rank(a) - rank(b)), values: all.filter(isNumber) };
}

export function seriesOf({ columns, rows }, across, chosen) {
  const time = isTime(columns[across]);
  const values = chosen.filter((index) => index !== across).slice(0, MOST_SERIES);
  const at = (value) => (time ? Date.parse(NO_ZONE.test(value) ? `${value.length > 10 ? value : `${value}T00:00`}Z` : value) : text(value));
  let drawn = rows.filter((row) => !time || row[across] !== null).map((row) => [at(row[across]), row]);
  if (time) drawn.sort(([a], [b]) => a - b);
  else drawn = drawn.slice(0, MOST_BARS);
  const number = (value) => (value === null || Number.isNaN(Number(value)) ? null : Number(value));
  const series = values.map((index) => ({ name: columns[index].name, points: drawn.map(([x, row]) => [x, number(row[index])]) }));
  return { isTime: time, series, sentence: sentence(columns[across].name, time, series, rows.length - drawn.length) };
}

function sentence(across, time, series, left) {
  const points = series[0]?.points ?? [];
  if (!points.length) return "A chart needs a column of numbers beside the column across.";
  const name = (x) => (time ? new Date(x).toISOString() : x);
  const ranges = series.map(({ name: of, points: all }) => {
    const known = all.map(([, y]) => y).filter((y) => y !== null);
    return known.length ? `${of} is between ${count(known.reduce((a, b) => Math.min(a, b)))} and ${count(known.reduce((a, b) => Math.max(a, b)))}` : `${of} is null`;
  });
  const rest = left ? ` ${plural(left, "row")} ${left === 1 ? "is" : "are"} not drawn.` : "";
  return `${time ? "Lines" : "Bars"} across ${across}: ${plural(points.length, "point")} from ${name(points[0][0])} to ${name(points.at(-1)[0])}. ${ranges.join("; ")}.${rest}`;
}
