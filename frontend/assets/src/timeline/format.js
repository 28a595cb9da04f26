// Numbers and times as the pages write them: thousands separators, units, UTC.
const whole = new Intl.NumberFormat("en-US");
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export const count = (value) => whole.format(value);
export const compact = (value) => short.format(value);

export function bytes(value) {
  let unit = 0;
  let left = value;
  while (left >= 1024 && unit < UNITS.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? left : left.toFixed(1)} ${UNITS[unit]}`;
}

export function time(ms) {
  const text = new Date(ms).toISOString();
  if (ms % 86_400_000 === 0) return text.slice(0, -14);
  return `${text.slice(0, -14)} ${text.slice(-13, ms % 60_000 === 0 ? -8 : -5)}`;
}

export const span = (start, end) => `${time(start)} – ${time(end)} UTC`;
export const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
