// Loaded in <head>, before anything is drawn: the system's theme, unless the user has chosen one, and whether the
// navigation is narrow.
const KEY = "headgate-theme";
const NAV = "headgate-nav";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function chosen() {
  try {
    const value = window.localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // storage is switched off
  }
}

function apply() {
  const choice = chosen();
  document.documentElement.dataset.bsTheme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    const active = button.dataset.themeChoice === choice;
    button.setAttribute("aria-pressed", String(active));
    button.classList.toggle("active", active);
  }
  document.dispatchEvent(new CustomEvent("headgate:theme"));
}

function fold(narrow) {
  document.documentElement.dataset.nav = narrow ? "narrow" : "wide";
  for (const button of document.querySelectorAll("[data-nav-fold]")) button.setAttribute("aria-pressed", String(narrow));
}

function folded() {
  try {
    return window.localStorage.getItem(NAV) === "narrow";
  } catch {
    return false;
  }
}

document.documentElement.classList.add("scripts");
fold(folded());
apply();
dark.addEventListener("change", apply);
window.addEventListener("storage", (event) => event.key === KEY && apply());
document.addEventListener("DOMContentLoaded", () => {
  apply();
  fold(folded());
});
document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-nav-fold]")) {
    const narrow = document.documentElement.dataset.nav !== "narrow";
    fold(narrow);
    try {
      window.localStorage.setItem(NAV, narrow ? "narrow" : "wide");
    } catch {
      // storage is switched off: it lasts as long as the page
    }
  }
  const button = event.target.closest?.("[data-theme-choice]");
  if (!button) return;
  try {
    window.localStorage.setItem(KEY, button.dataset.themeChoice);
  } catch {
    document.documentElement.dataset.bsTheme = button.dataset.themeChoice;
  }
  apply();
});
