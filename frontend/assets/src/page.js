// Small helps on top of pages that work without them.
import { placeDetails, placed, rememberDetails } from "./details.js";
import "./shortcuts.js";
import "./messages.js";
import { showFitting } from "./conditional_parts.js";
import "./tables.js";

import "./live.js";
import { isEnded, sayEnded } from "./session.js";

// Times are written in UTC; on hover also as the reader's own clock has them.
function nameLocalTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const time = new Date(element.dateTime);
    if (Number.isNaN(time.getTime())) continue;
    element.dataset.local = "";
    element.title = `${element.dateTime}\nYour time: ${time.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" })}`;
  }
}

// A log stays at its end, unless the reader has scrolled up.
const tails = new Map();
function rememberTails() {
  for (const element of document.querySelectorAll("[data-tail]")) {
    if (!placed.has(element)) continue;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    tails.set(element.id, atEnd ? null : element.scrollTop);
  }
}
function placeTails(root) {
  for (const element of root.querySelectorAll("[data-tail]")) {
    element.scrollTop = tails.get(element.id) ?? element.scrollHeight;
    placed.add(element);
  }
}

// What a live part says about itself, once for each change: the part itself is replaced every few seconds.
function announce() {
  const from = document.querySelector("[data-announce]");
  const to = document.getElementById("announcer");
  if (from && to && to.textContent !== from.dataset.announce) to.textContent = from.dataset.announce;
}

function onClick(event) {
  const opener = event.target.closest("[data-dialog]");
  const dialog = opener && document.getElementById(opener.dataset.dialog);
  if (dialog?.showModal) {
    event.preventDefault();
    dialog.showModal();
    return;
  }
  const asked = event.target.closest("[data-dialog-close]")?.closest("dialog"); // on a page of its own it is a link
  if (asked) {
    event.preventDefault();
    asked.close();
    return;
  }
  if (event.target instanceof HTMLDialogElement) event.target.close(); // the backdrop
  const copier = event.target.closest("[data-copy], [data-copy-text]");
  if (copier) copy(copier);
}

async function copy(button) {
  const text = button.dataset.copyText ?? document.getElementById(button.dataset.copy)?.textContent ?? "";
  const inside = [...button.childNodes];
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Could not copy";
  }
  setTimeout(() => button.replaceChildren(...inside), 1500);
}

// One click, one task: the second submit of the same form is held back.
function onSubmit(event) {
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (event.target.dataset.sent) {
    event.preventDefault();
    return;
  }
  event.target.dataset.sent = "1";
  event.submitter?.classList.add("disabled");
}
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("button.disabled")) button.classList.remove("disabled");
  }
});

// A form with unsaved text asks before it is left.
function warnBeforeLeaving() {
  const form = document.querySelector("form[data-warn-unsaved]");
  if (!form) return;
  let changed = false;
  form.addEventListener("input", () => (changed = true));
  form.addEventListener("submit", () => (changed = false));
  window.addEventListener("beforeunload", (event) => changed && event.preventDefault());
}

// Which part of a thing is shown can be seen, also where its tabs do not fit and after a phone was turned. Only the tabs move.
function showTab() {
  const tab = document.querySelector(".tab-bar .active");
  const bar = tab?.closest(".tab-bar");
  if (bar) bar.scrollLeft += tab.getBoundingClientRect().left - bar.getBoundingClientRect().left - (bar.clientWidth - tab.offsetWidth) / 2;
}

document.addEventListener("DOMContentLoaded", () => {
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit);
  nameLocalTimes(document);
  placeTails(document);
  placeDetails();
  announce();
  warnBeforeLeaving();
  showFitting(document);
  showTab();
  window.addEventListener("resize", showTab);
  document.body.addEventListener("htmx:beforeSwap", () => {
    rememberTails();
    rememberDetails();
  });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    nameLocalTimes(document);
    placeDetails();
    showFitting(document);
    placeTails(event.target.parentElement ?? document);
    announce();
  });
  // A part that can't be refreshed says so, and tries again; the rest of the page stays.
  const offline = (shown) => document.getElementById("offline")?.toggleAttribute("hidden", !shown);
  document.body.addEventListener("htmx:sendError", () => offline(true));
  document.body.addEventListener("htmx:responseError", (event) => (isEnded(event.detail.xhr) ? sayEnded() : offline(true)));
  document.body.addEventListener("htmx:afterOnLoad", (event) => event.detail.successful && offline(false));
});
