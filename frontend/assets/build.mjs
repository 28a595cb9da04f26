// Writes ../static/headgate: our scripts and styles bundled, Bootstrap copied, the licences of what is inside.
import { build } from "esbuild";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";

const OUT = path.resolve("../static/headgate");
const COPIED = ["bootstrap", "@popperjs/core"]; // Popper is inside Bootstrap's bundle

await rm(OUT, { recursive: true, force: true });
await mkdir(path.join(OUT, "vendor"), { recursive: true });

const bundled = await build({
  entryPoints: {
    charts: "src/charts.js",
    editor: "src/editor.js",
    page: "src/page.js",
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
});

await cp("src/static", OUT, { recursive: true });
await copyWithoutMap("css/bootstrap.min.css");
await copyWithoutMap("js/bootstrap.bundle.min.js");
await writeFile(path.join(OUT, "vendor", "LICENSES.txt"), await licences([...packages(bundled.metafile), ...COPIED]));

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
