// Keeps the parts of a page fresh that name what they show: <div data-live="supervisor:orders" hx-get="…" hx-trigger="live">.
//
// One stream for the page says which topics have changed; the parts that name them ask for themselves again. Where no
// stream comes through, all parts ask every few seconds. A hidden page asks for nothing, and for everything once it is
// looked at again.

import { onEnded } from "./session.js";

const POLL_MS = 4_000;
const BLOCKED_AFTER = 3; // tries without an answer
const OPENS_MS = 10_000; // something in between may keep a stream back, and never answer
const HIDDEN_MS = 20_000; // a glance at another tab ends nothing
const EVERYTHING = "*";
const LATER_MS = 2_000;
const SURE_MS = 120_000; // a stream may lose a message: nothing that is shown as live is older than this

let source = null;
let through = false; // its first event has come
let opening = null;
let failures = 0;
let polling = null;
let hiding = null;
let freshAt = Date.now();
let gone = false;
let ended = false; // nobody is logged in any more
let heard = ""; // the event that came last
let because = ""; // the event that a part is asked for because of: the server may answer with what it made since
const missed = new Set(); // topics that changed while a part was on its way, or in use

const parts = () => [...document.querySelectorAll("[data-live]")];
const topicsOf = (part) => (part.dataset.live ?? "").split(" ").filter(Boolean);
const chosen = () => [...new Set(parts().flatMap(topicsOf))].sort();

function refresh(topics, told = "") {
  if (ended) return;
  because = told;
  const all = topics.includes(EVERYTHING);
  const changed = parts().filter((part) => all || topicsOf(part).some((topic) => topics.includes(topic)));
  // A part inside one that is replaced comes with it.
  const outer = changed.filter((part) => !changed.some((other) => other !== part && other.contains(part)));
  for (const part of outer) {
    // A part that is asked for already comes as it was then; what is asked again meanwhile would go with it.
    if (busy(part) || part.classList.contains("htmx-request")) topicsOf(part).forEach((topic) => missed.add(topic));
    else ask(part);
  }
  because = "";
}

function catchUp() {
  if (document.hidden) return;
  const topics = Date.now() - freshAt > SURE_MS ? [EVERYTHING] : [...missed];
  if (topics[0] === EVERYTHING) freshAt = Date.now(); // not again at once if the server does not answer
  missed.clear();
  if (topics.length) refresh(topics, topics[0] === EVERYTHING ? "" : heard);
}

function ask(part) {
  if (part.hasAttribute("hx-get")) window.htmx?.trigger(part, "live");
  else part.dispatchEvent(new CustomEvent("live"));
}

// Nobody is interrupted while they press, write, choose or answer a question.
function busy(part) {
  const focused = document.activeElement;
  const writes = part.contains(focused) && focused.matches("input, select, textarea");
  return writes || part.matches(":active") || part.querySelector("dialog[open], .dropdown-menu.show, input[type=checkbox]:checked") !== null;
}

function open() {
  const topics = chosen();
  if (source || polling || gone || document.hidden || !topics.length) return;
  const address = document.body.dataset.liveUrl ?? "/-/live/";
  source = new EventSource(`${address}?${topics.map((topic) => `t=${encodeURIComponent(topic)}`).join("&")}`);
  // The browser says so of an answer that has begun; the server sends an event of this name.
  source.addEventListener("open", (event) => {
    failures = 0;
    through ||= event instanceof MessageEvent;
  });
  opening = setTimeout(() => through || instead(), OPENS_MS);
  source.addEventListener("changed", (event) => {
    heard = event.lastEventId;
    refresh(JSON.parse(event.data), heard);
  });
  source.addEventListener("gone", () => {
    gone = true; // who may not see it any more is told so by the page itself
    close();
    refresh([EVERYTHING]);
  });
  source.addEventListener("error", onError);
}

function onError() {
  failures += 1;
  const refused = source?.readyState === EventSource.CLOSED; // an answer that is no stream: it would be so again
  if (!refused && failures < BLOCKED_AFTER) return; // the browser comes back by itself, and says what it heard last
  instead();
}

function instead() {
  close();
  poll();
}

function end() {
  gone = ended = true;
  close();
  clearTimeout(polling);
  showAge();
}

function poll() {
  if (gone) return;
  const next = () => POLL_MS * (0.8 + 0.4 * Math.random());
  const turn = () => {
    if (!document.hidden) refresh([EVERYTHING]);
    polling = setTimeout(turn, next());
  };
  polling = setTimeout(turn, next());
}

function close() {
  clearTimeout(opening);
  source?.close();
  source = null;
  through = false;
}

function onVisibility() {
  clearTimeout(hiding);
  if (document.hidden) {
    hiding = setTimeout(close, HIDDEN_MS);
    return;
  }
  if (!source) refresh([EVERYTHING]);
  open();
}

// How old what is shown is, quietly: nobody is read this aloud.
function showAge() {
  const mark = document.querySelector("[data-live-mark]");
  if (!mark) return;
  const seconds = Math.round((Date.now() - freshAt) / 1000);
  const kept = through && source?.readyState === EventSource.OPEN;
  mark.dataset.state = kept ? "live" : polling && !ended ? "polling" : "still";
  mark.textContent = kept ? "Live" : seconds < 10 ? "Up to date" : `${age(seconds)} old`;
  mark.title = ended ? "You are logged out, so the page does not update." : kept ? "The page updates automatically." : "The live connection is down. The page reloads its data every few seconds.";
}

function age(seconds) {
  return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

function addMark() {
  const foot = document.querySelector(".site-foot");
  if (!foot || document.querySelector("[data-live-mark]")) return;
  const mark = document.createElement("span");
  mark.className = "live-mark";
  mark.dataset.liveMark = "";
  foot.prepend(mark);
}

document.addEventListener("DOMContentLoaded", () => {
  if (!chosen().length) return;
  addMark();
  open();
  showAge();
  setInterval(showAge, 2_000);
  setInterval(catchUp, LATER_MS);
  document.addEventListener("visibilitychange", onVisibility);
  onEnded(end);
  document.body.addEventListener("htmx:configRequest", (event) => {
    if (because) event.detail.headers["Last-Event-ID"] = because;
  });
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const part = event.target;
    if (!part.matches("[data-live]:active")) return;
    event.detail.shouldSwap = false; // between press and release: the browser would count no click
    topicsOf(part).forEach((topic) => missed.add(topic));
  });
  document.body.addEventListener("htmx:afterOnLoad", (event) => {
    // The element that asked: it has been replaced by what came.
    if (event.detail.successful && event.detail.requestConfig.elt.closest("[data-live]")) freshAt = Date.now();
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return; // from the browser's memory of pages
    refresh([EVERYTHING]);
    open();
  });
});
