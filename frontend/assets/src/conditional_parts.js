// A part that means something beside some choices alone is there while one of these is chosen; without scripts it always is.
// `data-shown-with`: the name of the form's field, and its values, in words.
function place(form) {
  for (const part of form.querySelectorAll("[data-shown-with]")) {
    const [name, ...values] = part.dataset.shownWith.split(" ");
    part.hidden = !new FormData(form).getAll(name).some((value) => values.includes(value));
  }
}

export function showFitting(root) {
  for (const form of root.querySelectorAll("form:has([data-shown-with])")) place(form);
}

document.addEventListener("change", (event) => event.target.form && place(event.target.form));
