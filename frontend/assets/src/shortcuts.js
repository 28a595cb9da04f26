// Keys of one letter, and the sheet that lists them. Off while somebody writes, and altogether where that is chosen.
import { openPalette } from "./palette.js";

const KEY = "headgate-keys";
const LONGEST_PAUSE_MS = 1200; // between g and the letter after it
let wentAt = 0;

function on() {
  try {
    return window.localStorage.getItem(KEY) !== "off";
  } catch {
    return true; // storage is switched off
  }
}

const writes = (element) => element.closest?.("input, textarea, select, [contenteditable], .cm-editor, [role=application]");

function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    if (openPalette()) event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || writes(event.target)) return;
  if (!on() || document.querySelector("dialog[open]")) return;
  const action = wentAt && event.timeStamp - wentAt < LONGEST_PAUSE_MS ? () => go(event.key) : SINGLE[event.key];
  wentAt = 0;
  if (action?.(event)) event.preventDefault();
}

const SINGLE = {
  g: (event) => {
    wentAt = event.timeStamp;
    return true;
  },
  "/": () => {
    const field = document.querySelector("main [role=search] input:not([type=hidden])");
    if (!field) return openPalette();
    field.focus();
    field.select?.();
    return true;
  },
  "?": () => {
    document.getElementById("keys")?.showModal();
    return true;
  },
};

function go(letter) {
  const link = [...document.querySelectorAll("[data-go-key]")].find((one) => one.dataset.goKey === letter);
  link?.click();
  return Boolean(link);
}

document.addEventListener("DOMContentLoaded", () => {
  document.addEventListener("keydown", onKey);
  const choice = document.querySelector("[data-keys-on]");
  if (!choice) return;
  choice.checked = on();
  choice.addEventListener("change", () => {
    try {
      window.localStorage.setItem(KEY, choice.checked ? "on" : "off");
    } catch {
      choice.checked = true;
    }
  });
});
