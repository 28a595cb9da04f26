// Editors over fields: of JSON over a textarea[data-json-editor], of SQL over [data-sql-editor], of expressions over [data-expressions]. The field stays the
// form's: without this script it just works.
import { closeCompletion } from "@codemirror/autocomplete";
import { linter, lintGutter, setDiagnostics } from "@codemirror/lint";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { HighlightStyle, syntaxHighlighting, syntaxTree, ensureSyntaxTree } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { specCompletion } from "./completion.js";
import { expressionWords, oneLine } from "./expressions.js";
import { sqlWords } from "./query/words.js";

// The style sheet says which colours these are, for light and dark.
const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.keyword], color: "var(--hg-json-key)" },
  { tag: tags.comment, color: "var(--bs-secondary-color)" },
  { tag: tags.string, color: "var(--hg-json-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--hg-json-value)" },
  { tag: tags.invalid, color: "var(--bs-danger-text-emphasis)" },
]);

function mount(textarea, language) {
  const label = document.querySelector(`label[for="${textarea.id}"]`);
  const view = new EditorView({
    parent: textarea.parentElement,
    state: EditorState.create({
      doc: textarea.value,
      extensions: [
        EditorView.cspNonce.of(textarea.dataset.nonce ?? ""),
        basicSetup,
        language,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({
          "aria-label": label?.textContent.trim() ?? "Text",
          "aria-describedby": textarea.getAttribute("aria-describedby") ?? "",
          tabindex: "0", // said outright: not all that look for what can be scrolled by keyboard know contenteditable
        }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          textarea.value = update.state.doc.toString();
          textarea.dispatchEvent(new Event("input", { bubbles: true }));
        }),
        EditorView.domEventHandlers({ blur: () => told(textarea) }),
      ],
    }),
  });
  textarea.hidden = true;
  textarea.removeAttribute("required"); // a hidden field can't be pointed at; the server checks
  label?.addEventListener("click", () => view.focus());
  textarea.dataset.told = textarea.value;
  return view;
}

// As a field of the browser's own says when it is left: once, and if it holds something else than before.
function told(textarea) {
  if (textarea.dataset.told === textarea.value) return;
  textarea.dataset.told = textarea.value;
  textarea.dispatchEvent(new Event("change", { bubbles: true }));
}

// Tab leaves it, as any field: who has no mouse must get past. Ctrl ] and Ctrl [ indent, and Enter keeps the depth.
function mountJson(textarea) {
  const view = mount(textarea, [
    json(),
    textarea.dataset.schema ? specCompletion(textarea.dataset.schema) : [],
    linter(quietWhenEmpty(jsonParseLinter())),
    lintGutter(),
    syntaxHighlighting(colours),
  ]);
  showServerErrors(view, textarea);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-error-pointer]");
    if (!link) return;
    event.preventDefault();
    const { from, to } = place(view.state, link.dataset.errorPointer);
    view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
    view.focus();
  });
}

// Its page runs it: the field hears of that.
function mountSql(textarea) {
  const run = (view) => {
    closeCompletion(view);
    return textarea.dispatchEvent(new Event("headgate:run"));
  };
  const keys = ["Mod-Enter", "Ctrl-Enter"].map((key) => ({ key, run }));
  mount(textarea, [sqlWords(textarea.dataset.words), syntaxHighlighting(colours), Prec.highest(keymap.of(keys)), EditorView.editorAttributes.of({ class: "cm-sql" })]);
}

const quietWhenEmpty = (lint) => (view) => (view.state.doc.length ? lint(view) : []);

// What the server found wrong, marked at its place in the text.
function showServerErrors(view, textarea) {
  const element = document.getElementById(textarea.dataset.errors ?? "");
  const errors = element ? JSON.parse(element.textContent) : [];
  if (!errors.length) return;
  const diagnostics = errors.map(({ pointer, message }) => ({ ...place(view.state, pointer), severity: "error", message }));
  setTimeout(() => view.dispatch(setDiagnostics(view.state, diagnostics)), 900); // after the linter's first run, which clears
}

// From an RFC 6901 pointer to the text it names, or of the nearest thing above it.
function place(state, pointer) {
  const tree = ensureSyntaxTree(state, state.doc.length, 2000) ?? syntaxTree(state);
  let node = tree.topNode.firstChild;
  let named = node;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    const next = node && (node.name === "Array" ? item(node, Number(key)) : property(state, node, key));
    if (!next) break;
    named = next.named;
    node = next.value;
  }
  return named ? { from: named.from, to: named.to } : { from: 0, to: 0 };
}

function property(state, object, key) {
  for (let child = object.firstChild; child; child = child.nextSibling) {
    if (child.name !== "Property") continue;
    const name = child.firstChild;
    if (unquoted(state.sliceDoc(name.from, name.to)) === key) return { named: name, value: child.lastChild };
  }
  return null;
}

function item(array, index) {
  const values = [];
  for (let child = array.firstChild; child; child = child.nextSibling) {
    if (!["[", "]", ","].includes(child.name)) values.push(child);
  }
  return values[index] && { named: values[index], value: values[index] };
}

function unquoted(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  for (const textarea of document.querySelectorAll("textarea[data-json-editor]")) mountJson(textarea);
  for (const textarea of document.querySelectorAll("textarea[data-sql-editor]")) mountSql(textarea);
  for (const field of document.querySelectorAll("[data-expressions]")) {
    const label = document.querySelector(`label[for="${field.id}"]`);
    const small = EditorView.editorAttributes.of({ class: field.matches("input") ? "cm-expression" : "cm-expression cm-several" });
    mount(field, [expressionWords(field), field.matches("input") ? oneLine : [], small]);
    label?.removeAttribute("for"); // of a hidden field; the editor has the name itself
  }
});
