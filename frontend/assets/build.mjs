// Writes ../static/headgate: our scripts and styles bundled, Bootstrap copied, the icons that pages name as one sprite, the
// licences of what is inside; and in built.json of which sources all that is made, so that a test sees what is stale.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";

const OUT = path.resolve("../static/headgate");
const COPIED = ["bootstrap", "bootstrap-icons", "@popperjs/core"]; // Popper is inside Bootstrap's bundle
const TEMPLATES = path.resolve("../../templates");
const CODE = path.resolve("..");
const SPEC_PAGES = ["specs", "data-schema", "metrics", "sketches", "filters-and-expressions", "io-config", "bounded-reads", "input-formats", "flatten-spec", "tuning-config", "positions"];

await rm(OUT, { recursive: true, force: true });
await mkdir(path.join(OUT, "vendor"), { recursive: true });

// The names of a table's functions in the reference's section on Druid's language.
async function druidFunctions() {
  const page = await readFile("../../docs/reference/filters-and-expressions.md", "utf8");
  const [, section] = page.split("### In Druid's language");
  const rows = section.split("### In SQL")[0].matchAll(/^\| ((?:`[^`]+` ?)+)\|/gm);
  return [...rows].flatMap(([, names]) => [...names.matchAll(/`([A-Za-z]\w*)`/g)].map(([, name]) => name)).sort();
}

// The names on the allow-list of SQL's functions, without operators.
async function sqlFunctions() {
  const blocks = { "query/functions": "_MORE_SCALARS _AGGREGATES _WINDOWS _SKETCHES", "decode/scalar_functions": "_NUMBERS _TEXTS _TIMES _VALUES" };
  const names = new Set();
  for (const [file, wanted] of Object.entries(blocks)) {
    const code = await readFile(`../../ingestion/${file}.py`, "utf8");
    for (const block of wanted.split(" ")) {
      const [, words] = new RegExp(`^${block} = """([^"]*)"""`, "m").exec(code);
      for (const word of words.split(/\s+/)) if (word) names.add(word);
    }
  }
  return [...names].sort();
}

const bundled = await build({
  entryPoints: {
    charts: "src/charts.js",
    editor: "src/editor.js",
    page: "src/page.js",
    passkey: "src/passkey.js",
    query: "src/query/index.js",
    theme: "src/theme.js",
    headgate: "src/headgate.css",
  },
  outdir: OUT,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  define: { DRUID_FUNCTIONS: JSON.stringify(await druidFunctions()), SQL_FUNCTIONS: JSON.stringify(await sqlFunctions()) },
});

await cp("src/static", OUT, { recursive: true });
await writeFile(path.join(OUT, "icons.svg"), await sprite([...(await iconsNamed())].sort()));
await copyWithoutMap("css/bootstrap.min.css");
await copyWithoutMap("js/bootstrap.bundle.min.js");
await writeFile(path.join(OUT, "spec-fields.json"), JSON.stringify(await described(), null, 1));
await writeFile(path.join(OUT, "vendor", "LICENSES.txt"), await licences([...packages(bundled.metafile), ...COPIED]));
const built = { sources: await digests(".", await sources()), reference: await rowsOfReference(), functions: await sqlFunctions(), files: await digests(OUT, await filesIn(OUT)) };
await writeFile(path.join(OUT, "built.json"), JSON.stringify(built, null, 1) + "\n");

// By name, each file's SHA-256.
async function digests(folder, names) {
  const digest = async (name) => [name, sha256(await readFile(path.join(folder, name)))];
  return Object.fromEntries(await Promise.all(names.sort().map(digest)));
}

function sha256(data) {
  return createHash("sha256").update(data).digest("hex");
}

async function filesIn(folder) {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)));
}

async function sources() {
  const own = (await filesIn("src")).map((name) => path.join("src", name));
  return ["build.mjs", "package.json", "package-lock.json", ...own];
}

// By page, of all rows that name something: what spec-fields.json and the completion of expressions are made of.
async function rowsOfReference() {
  const digest = async (name) => {
    const page = await readFile(path.join("../../docs/reference", `${name}.md`), "utf8");
    return [name, sha256(page.split("\n").filter((line) => line.startsWith("| `")).join("\n"))];
  };
  return Object.fromEntries(await Promise.all(SPEC_PAGES.map(digest)));
}

// What the reference says of each field of a spec, by its path: shown while a spec is written.
async function described() {
  const found = {};
  for (const file of SPEC_PAGES) {
    const page = await readFile(path.join("../../docs/reference", `${file}.md`), "utf8");
    for (const [, name, text] of page.matchAll(/^\| `([\w.[\]]+)` \|(?:[^|\n]*\|){2} (.*?) \|$/gm)) {
      if (text.trim()) found[name] ??= text.replaceAll("`", "").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    }
  }
  return found;
}

// The comment that names a source map would make browsers' tools ask for a file that is not here.
async function copyWithoutMap(file) {
  const text = await readFile(path.join("node_modules/bootstrap/dist", file), "utf8");
  await writeFile(path.join(OUT, "vendor", path.basename(file)), text.replace(/\n?\/[/*]# sourceMappingURL=.*?(\*\/)?\n?$/, "\n"));
}

function packages(metafile) {
  const names = Object.keys(metafile.inputs).map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  return [...new Set(names.filter(Boolean))];
}

async function licences(names) {
  const parts = [];
  for (const name of names.sort()) {
    const folder = path.join("node_modules", name);
    const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    const texts = (await readdir(folder, { withFileTypes: true }))
      .filter((entry) => entry.isFile() && /^(licen[cs]e|notice)/i.test(entry.name))
      .map((entry) => entry.name)
      .sort();
    const bodies = await Promise.all(texts.map((file) => readFile(path.join(folder, file), "utf8")));
    parts.push(`${name} ${version} (${license})\n\n${bodies.map((body) => body.trim()).join("\n\n")}\n`);
  }
  return parts.join(`\n${"=".repeat(100)}\n\n`);
}

// {% icon "name" %} and {% empty_state "…" icon="name" %} of templates, and icon="name" of the pages' Python.
async function iconsNamed() {
  const names = new Set();
  const inside = async (folder, ending, pattern) => {
    for (const file of await readdir(folder, { recursive: true })) {
      if (!file.endsWith(ending) || file.includes("node_modules")) continue;
      for (const found of (await readFile(path.join(folder, file), "utf8")).matchAll(pattern)) names.add(found[1]);
    }
  };
  await inside(TEMPLATES, ".html", /\bicon[ =]"([a-z0-9-]+)"/g);
  await inside(CODE, ".py", /\bicon(?:: str)? ?= ?"([a-z0-9-]+)"/g);
  return names;
}

async function sprite(names) {
  const symbols = names.map(async (name) => {
    const svg = await readFile(path.join("node_modules/bootstrap-icons/icons", `${name}.svg`), "utf8");
    const [, box, inside] = /viewBox="([^"]+)">([\s\S]*)<\/svg>/.exec(svg);
    return `<symbol id="${name}" viewBox="${box}">${inside.replace(/\s*\n\s*/g, "")}</symbol>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg">\n${(await Promise.all(symbols)).join("\n")}\n</svg>\n`;
}
