// An answer of REST's SQL, read while it comes: its lines are a head, a row each, and an end.
const LARGEST = 10_000; // rows that a page holds

// {columns, masked, rows, cut, complete}; {tables, plan} for EXPLAIN. stop() ends a query whose first rows are enough.
export async function readAnswer(answer, stop) {
  if (!answer.headers.has("X-Headgate-Query-Id")) return answer.json();
  const result = { rows: [], cut: false, complete: false };
  try {
    for await (const line of lines(answer.body)) {
      if (!result.columns) Object.assign(result, JSON.parse(`${line}]}`));
      else if (line.startsWith("[")) result.rows.push(JSON.parse(line.replace(/,$/, ""), exact));
      else if (line.startsWith("]")) Object.assign(result, { complete: true, cut: JSON.parse(`{${line.slice(line.indexOf(",") + 1)}`).truncated });
      if (result.rows.length > LARGEST) {
        result.rows.pop();
        Object.assign(result, { cut: true, complete: true });
        stop();
        break;
      }
    }
  } catch (error) {
    if (error.name === "SyntaxError" || !result.columns) throw error; // otherwise the connection was closed
  }
  return result;
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const found = (rest + part.value).split("\n");
    rest = found.pop();
    yield* found;
  }
  if (rest) yield rest;
}

// A whole number that JavaScript would round stays as it is written.
const exact = (_, value, context) => (typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? context.source : value);

export const text = (value) => (value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value));
