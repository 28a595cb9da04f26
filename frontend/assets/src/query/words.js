// SQL in an editor: DuckDB's words, and completion of tables, of their columns and of functions.
import { PostgreSQL, SQLDialect, keywordCompletionSource, schemaCompletionSource } from "@codemirror/lang-sql";
import { syntaxTree } from "@codemirror/language";
import { called } from "../expressions.js";

const TEXTS = new Set(["String", "LineComment", "BlockComment", "Number"]);
// Without the words of PostgreSQL's own language of procedures.
const KEYWORDS = PostgreSQL.spec.keywords.split(" ").filter((word) => !word.includes("_"));
const keywords = [...KEYWORDS, "qualify", "asof", "semi", "anti", "positional", "exclude"].join(" ");
const dialect = SQLDialect.define({ ...PostgreSQL.spec, keywords, caseInsensitiveIdentifiers: true });
const FUNCTIONS = SQL_FUNCTIONS.map(called); // the build has them from the allow-list
// Names that DuckDB reads otherwise without quotes.
const RESERVED = new Set(
  `all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default deferrable desc
  describe distinct do else end except false fetch for foreign from group having in initially intersect into lambda lateral leading
  limit not null offset on only or order pivot placing primary qualify references returning select show some summarize symmetric table
  then to trailing true union unique unpivot using variadic when where window with`.split(/\s+/),
);

export function sqlWords(address) {
  const asked = new Map();
  const ask = (query) => {
    if (!asked.has(query)) asked.set(query, fetch(`${address}?${query}`).then((answer) => (answer.ok ? answer.json() : null), () => null));
    return asked.get(query).then((answer) => answer ?? (asked.delete(query), {})); // what failed is asked for again
  };
  const complete = (context) => offered(context, ask);
  return [dialect.extension, [complete, keywordCompletionSource(dialect, true)].map((autocomplete) => dialect.language.data.of({ autocomplete }))];
}

async function offered(context, ask) {
  const node = syntaxTree(context.state).resolveInner(context.pos, -1);
  if (TEXTS.has(node.name)) return null;
  const tables = await knownTables(context, ask);
  const { sys = {} } = await ask("");
  const written = namesIn(context.state);
  const ofSys = written.includes("sys") ? written.flatMap((name) => sys[name] ?? []) : [];
  const named = written.filter((name) => tables.some((table) => table.name.toLowerCase() === name));
  const { columns = {} } = named.length ? await ask(new URLSearchParams(named.map((name) => ["table", exact(tables, name)])).toString()) : {};
  const found = schemaCompletionSource({ dialect, schema: namespace(tables, columns, sys) })(context);
  const word = context.matchBefore(/[\p{L}_][\p{L}\p{N}_]*/u);
  const from = word?.from ?? context.pos;
  if (context.state.sliceDoc(from - 1, from).match(/[."]/)) return found;
  if (!word && !context.explicit) return null;
  const more = [...Object.values(columns).flat(), ...ofSys].map(columnOption);
  return { from, options: [...more, ...(found?.options ?? []), ...FUNCTIONS], validFor: /^[\p{L}\p{N}_]*$/u };
}

// A site has thousands: if the first list is cut, those that begin as the word does are asked for.
async function knownTables(context, ask) {
  const all = await ask("");
  const word = context.matchBefore(/[\w.-]+/)?.text.split(".").at(-1) ?? "";
  const more = all.cut && word.length > 1 ? ((await ask(new URLSearchParams({ search: word }).toString())).tables ?? []) : [];
  return [...(all.tables ?? []), ...more];
}

const exact = (tables, name) => tables.find((table) => table.name.toLowerCase() === name).name;

// Identifiers of the text, in lower case and without quotes: those that are tables matter.
function namesIn(state) {
  const names = new Set();
  syntaxTree(state).iterate({
    enter: ({ name, from, to }) => {
      if (/Identifier$/.test(name)) names.add(state.sliceDoc(from, to).replace(/^"|"$/g, "").replaceAll('""', '"').toLowerCase());
    },
  });
  return [...names].slice(0, 500);
}

function namespace(tables, columns, sys) {
  const escape = (name) => name.replaceAll(".", "\\.");
  const found = {};
  for (const { team, name } of tables) (found[escape(team)] ??= {})[escape(name)] = (columns[name] ?? []).map(columnOption);
  for (const { name } of tables) found[escape(name)] ??= (columns[name] ?? []).map(columnOption);
  for (const [name, list] of Object.entries(sys)) (found.sys ??= {})[name] = list.map(columnOption);
  return found;
}

function columnOption({ name, type }) {
  const plain = /^[a-z_]\w*$/i.test(name) && !RESERVED.has(name.toLowerCase());
  return { label: name, type: "property", detail: type, apply: plain ? name : `"${name.replaceAll('"', '""')}"`, boost: 1 };
}
