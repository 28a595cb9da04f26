// The window that is zoomed to stands in the page's address: whoever gets the link sees the same.
export function askedWindow() {
  const query = new URLSearchParams(window.location.search);
  const [start, end] = ["from", "to"].map((name) => Date.parse(query.get(name) ?? ""));
  return start < end ? { start, end } : null;
}

// Where the page says that it opens: where nearly all rows lie.
export function openingWindow({ dataset }) {
  const [start, end] = [dataset.opensFrom, dataset.opensTo].map((time) => Date.parse(time ?? ""));
  return start < end ? { start, end } : null;
}

export function keepWindow(shown) {
  window.history.replaceState(window.history.state, "", withWindow(window.location.href, shown));
}

// An address with the window, in whole milliseconds that cover it; without any for the whole.
export function withWindow(href, shown) {
  const address = new URL(href);
  for (const [name, time] of [["from", shown && Math.floor(shown.start)], ["to", shown && Math.ceil(shown.end)]]) {
    if (time === null) address.searchParams.delete(name);
    else address.searchParams.set(name, new Date(time).toISOString());
  }
  return address;
}

// An address whose statement is for the rows of a range; for all without one.
export function withRange(href, range) {
  const address = new URL(href);
  const iso = (time) => new Date(time).toISOString();
  const where = range ? `WHERE __time >= '${iso(Math.floor(range.start))}' AND __time < '${iso(Math.ceil(range.end))}'\n` : "";
  address.searchParams.set("statement", address.searchParams.get("statement").replace(/(WHERE .*\n)?(?=ORDER BY)/, where));
  return address;
}

// So do the layers that are switched on.
export function withLayers(href, names) {
  const address = new URL(href);
  address.searchParams.delete("layers");
  if (names.length > 0) address.searchParams.set("layers", names.join(","));
  return address;
}

export function askedLayers() {
  const query = new URLSearchParams(window.location.search);
  return new Set(query.getAll("layers").flatMap((part) => part.split(",")).filter(Boolean));
}

export function keepLayers(names) {
  window.history.replaceState(window.history.state, "", withLayers(window.location.href, names));
}
