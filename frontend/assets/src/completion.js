// Names and values of a spec's fields, offered while it is written: from its JSON Schema, with what the reference says.
import { jsonLanguage } from "@codemirror/lang-json";
import { syntaxTree } from "@codemirror/language";

const VALUES = ["String", "Number", "True", "False", "Null"];

export function specCompletion(address) {
  let asked = null; // once, when first needed
  const known = () => (asked ??= fetch(address).then((answer) => (answer.ok ? answer.json() : null)).catch(() => null));
  return jsonLanguage.data.of({ autocomplete: (context) => complete(context, known) });
}

async function complete(context, known) {
  const place = placeOf(context);
  if (!place) return null;
  const told = await known();
  if (!told) return null;
  const objects = objectsAt(told.schema, place.path, context.state);
  const options = place.kind === "name" ? names(told, place, objects) : values(told, objects, place.name);
  return options.length ? { from: place.from, to: place.to, options, filter: true } : null;
}

// Whether a name or a value is being written, and which objects lead there.
function placeOf(context) {
  const node = syntaxTree(context.state).resolveInner(context.pos, -1);
  if (node.name === "PropertyName" && node.parent.name === "Property") {
    const object = node.parent.parent;
    return { kind: "name", from: node.from, to: node.to, object, path: pathTo(object, context.state), state: context.state };
  }
  const property = VALUES.includes(node.name) ? node.parent : node;
  if (property.name === "Property") {
    const written = VALUES.includes(node.name);
    if (!written && !context.explicit) return null;
    const name = text(property.firstChild, context.state);
    const at = written ? { from: node.from, to: node.to } : { from: context.pos, to: context.pos };
    return { kind: "value", ...at, name, path: pathTo(property.parent, context.state) };
  }
  const object = node.name === "Object" ? node : node.name === "{" || node.name === "," ? node.parent : null;
  if (object?.name !== "Object" || !context.explicit) return null;
  return { kind: "name", from: context.pos, to: context.pos, object, path: pathTo(object, context.state), state: context.state };
}

// The objects and arrays around it, from the outermost: each with the name under which it stands.
function pathTo(object, state) {
  const path = [];
  for (let node = object; node; node = node.parent) {
    if (node.name !== "Object" && node.name !== "Array") continue;
    const name = node.parent?.name === "Property" ? text(node.parent.firstChild, state) : null;
    path.unshift({ node, name });
  }
  return path;
}

// The schemas that the innermost object may have.
function objectsAt(root, path, state) {
  let schemas = [root];
  path.forEach(({ node, name }, depth) => {
    if (depth && name !== null) schemas = schemas.flatMap((s) => propertyOf(s, name, root, depth === 1));
    else if (depth) schemas = schemas.flatMap((s) => (s.items ? [s.items] : []));
    schemas = chosen(schemas.flatMap((s) => alternatives(s, root)), node, state);
  });
  return schemas;
}

function propertyOf(schema, name, root, outermost) {
  const found = schema.properties?.[name] ?? (outermost ? flat(root)[name] : undefined);
  if (found) return [found];
  return typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [];
}

// In the flat form the spec's parts stand outermost.
const flat = (root) => alternatives(root.properties.spec, root)[0]?.properties ?? {};

function alternatives(schema, root, depth = 0) {
  if (depth > 8) return [];
  if (schema.$ref) return alternatives(root.$defs[schema.$ref.split("/").pop()], root, depth + 1);
  const several = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  return several ? several.flatMap((s) => alternatives(s, root, depth + 1)) : [schema];
}

// Of several the one whose type is written.
function chosen(schemas, node, state) {
  const type = node.name === "Object" ? written(node, "type", state) : undefined;
  const fitting = schemas.filter((s) => valuesOf(s.properties?.type).includes(type));
  return fitting.length ? fitting : schemas;
}

function names(told, place, objects) {
  const used = new Set(namesIn(place.object, place.state));
  const own = place.to > place.from ? text({ from: place.from, to: place.to }, place.state) : "";
  const outermost = place.path.length === 1 ? [{ properties: flat(told.schema) }] : [];
  const found = new Map();
  for (const schema of [...objects, ...outermost]) {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      if (!found.has(name) && (name === own || !used.has(name))) found.set(name, { schema, property });
    }
  }
  const follows = place.state.sliceDoc(place.to, place.to + 20).trimStart().startsWith(":");
  return [...found].map(([name, { schema, property }]) => ({
    label: JSON.stringify(name),
    type: "property",
    detail: kindOf(property, told.schema),
    info: description(told.described, place.path, name, schema),
    apply: JSON.stringify(name) + (follows ? "" : ": "),
  }));
}

// What the reference says: by the whole path, or under the type of the object that it stands in.
function description(described, path, name, schema) {
  const names_ = path.map((p) => p.name).filter((n) => n !== null && n !== "spec");
  const whole = path.slice(1).reduce((all, p) => (p.name === null ? `${all}[]` : p.name === "spec" ? all : all ? `${all}.${p.name}` : p.name), "");
  const types = valuesOf(schema.properties?.type);
  const keys = [whole ? `${whole}.${name}` : name, ...types.map((t) => `${t}.${name}`), `${names_.at(-1)}.${name}`];
  return keys.map((key) => described[key]).find(Boolean);
}

function values(told, objects, name) {
  const found = objects.flatMap((s) => (s.properties?.[name] ? alternatives(s.properties[name], told.schema) : []));
  const literal = found.flatMap((s) => (s.type === "boolean" && !valuesOf(s).length ? [true, false] : valuesOf(s)));
  return [...new Set(literal.map((v) => JSON.stringify(v)))].map((label) => ({ label, type: "enum" }));
}

const valuesOf = (schema) => (schema?.enum ?? (schema && "const" in schema ? [schema.const] : [])).filter((v) => v !== null);

function kindOf(property, root) {
  const kinds = alternatives(property, root).map((s) => (valuesOf(s).length ? "one of several" : s.type)).filter((t) => t && t !== "null");
  return [...new Set(kinds)].join(" or ");
}

function* namesIn(object, state) {
  for (let child = object.firstChild; child; child = child.nextSibling) {
    if (child.name === "Property") yield text(child.firstChild, state);
  }
}

function written(object, name, state) {
  for (let child = object.firstChild; child; child = child.nextSibling) {
    if (child.name === "Property" && text(child.firstChild, state) === name) return text(child.lastChild, state);
  }
  return undefined;
}

function text(node, state) {
  const found = state.sliceDoc(node.from, node.to);
  try {
    return JSON.parse(found);
  } catch {
    return found.replace(/^"/, "").replace(/"$/, "");
  }
}
