// Messages in the corner: what went well leaves by itself, unless it is being read; what failed stays.
const SHOWN_MS = 9_000;

document.addEventListener("DOMContentLoaded", () => {
  for (const message of document.querySelectorAll("[data-message]")) {
    message.querySelector("[data-message-close]")?.addEventListener("click", () => message.remove());
    if (message.dataset.message === "success" || message.dataset.message === "info") leave(message);
  }
});

function leave(message) {
  setTimeout(() => (message.matches(":hover, :focus-within") ? leave(message) : message.remove()), SHOWN_MS);
}
