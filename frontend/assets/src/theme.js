// Loaded in <head>, before anything is drawn: the system's theme, unless the user has chosen one.
const KEY = "headgate-theme";
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

apply();
dark.addEventListener("change", apply);
window.addEventListener("storage", (event) => event.key === KEY && apply());
document.addEventListener("DOMContentLoaded", apply);
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-theme-choice]");
  if (!button) return;
  try {
    window.localStorage.setItem(KEY, button.dataset.themeChoice);
  } catch {
    document.documentElement.dataset.bsTheme = button.dataset.themeChoice;
  }
  apply();
});
