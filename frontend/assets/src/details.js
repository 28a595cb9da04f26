// What can be unfolded stays so when a live part is replaced; what lies over the page closes with a click beside it.
const open = new Map();
// What has just come, and is not placed yet, says nothing of what people did: another part may come meanwhile.
export const placed = new WeakSet();

export function rememberDetails() {
  for (const one of document.querySelectorAll("details[id]")) if (placed.has(one)) open.set(one.id, one.open);
}

export function placeDetails() {
  for (const one of document.querySelectorAll("details[id]")) {
    if (open.has(one.id)) one.open = open.get(one.id);
    placed.add(one);
  }
}

function closeOthers(target) {
  for (const one of document.querySelectorAll("details:is(.page-rest, .table-view)[open]")) {
    if (!one.contains(target)) one.open = false;
  }
}

// A click on a part that was just replaced counts: htmx and placeDetails set its attributes again a moment later.
function rememberClick(target) {
  const one = target.closest("summary")?.parentElement;
  if (one?.id) open.set(one.id, !one.open);
}

document.addEventListener("click", (event) => {
  rememberClick(event.target);
  closeOthers(event.target);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const one = document.querySelector("details:is(.page-rest, .table-view)[open]");
  if (!one) return;
  one.open = false;
  one.querySelector("summary").focus();
});
