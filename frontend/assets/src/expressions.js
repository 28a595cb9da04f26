// Names of fields and functions, offered while an expression is written: in a [data-expressions] of plain text.
import { EditorState } from "@codemirror/state";

// The build has the names of Druid's from the reference, which says which of them mean the same here.
const FUNCTIONS = {
  druid: DRUID_FUNCTIONS,
  sql: ["CASE WHEN", "THEN", "ELSE", "END", "coalesce", "date_trunc", "length", "lower", "replace", "round", "substr", "trim", "upper"],
};
const WORD = /[\p{L}_][\p{L}\p{N}_]*/u;

export function expressionWords(field) {
  const columns = JSON.parse(document.getElementById(field.dataset.expressions)?.textContent ?? "[]");
  const language = () => field.form?.elements.language?.value ?? "druid";
  const data = [{ autocomplete: (context) => complete(context, columns, language()) }]; // one source, known again by itself
  return EditorState.languageData.of(() => data);
}

function complete(context, columns, language) {
  const word = context.matchBefore(WORD);
  if (!word && !context.explicit) return null;
  const options = [
    ...columns.map((name) => ({ label: name, type: "property", detail: "field", apply: quoted(name), boost: 1 })),
    ...(FUNCTIONS[language] ?? []).map((name) => (/[A-Z]/.test(name) ? { label: name } : called(name))),
  ];
  return { from: word?.from ?? context.pos, options, validFor: /^[\p{L}\p{N}_]*$/u };
}

const quoted = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

export function called(name) {
  const apply = (view, _, from, to) => view.dispatch({ changes: { from, to, insert: `${name}()` }, selection: { anchor: from + name.length + 1 } });
  return { label: name, type: "function", detail: "function", apply };
}

// A field that is one line long stays so.
export const oneLine = EditorState.transactionFilter.of((change) => (change.newDoc.lines > 1 ? [] : change));
