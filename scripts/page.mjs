// Builds the inspector's page for browsers: index.html, main.js, style.css and icon.svg.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "lightningcss";
import { rolldown } from "rolldown";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, "src/tools/inspector/page");
/** Later rules win, so the order counts. */
const STYLES = ["style.css", "views.css"];

/**
 * Writes the page to `folder`.
 * @param {string} folder
 * @returns {Promise<string>} the folder of the library that the page contains
 */
export async function buildPage(folder) {
  const library = dirname(createRequire(import.meta.url).resolve("preact/package.json"));
  mkdirSync(folder, { recursive: true });
  for (const name of ["index.html", "icon.svg"]) copyFileSync(join(source, name), join(folder, name));
  writeFileSync(join(folder, "style.css"), styles());
  writeFileSync(join(folder, "main.js"), await script(library));
  return library;
}

function styles() {
  const code = Buffer.concat(STYLES.map((name) => readFileSync(join(source, name))));
  return transform({ filename: "style.css", code, minify: true }).code;
}

/** One module with everything, and the licence of the library that it contains. */
async function script(library) {
  const bundle = await rolldown({
    input: join(source, "main.tsx"),
    platform: "browser",
    tsconfig: join(root, "tsconfig.page.json"),
    onLog(_level, { message }) {
      throw new Error(message);
    },
  });
  const { output } = await bundle.generate({ format: "esm", minify: true, comments: false });
  await bundle.close();
  const [only, other] = output;
  if (other !== undefined) throw new Error(`The page must be one module, but there is ${other.fileName} too.`);
  const strays = only.moduleIds.filter(
    (id) => !id.startsWith(source + sep) && !id.startsWith(library + sep) && !id.startsWith("\0"),
  );
  if (strays.length > 0) throw new Error(`The page must contain no server code, but it contains ${strays.join(", ")}.`);
  const licence = readFileSync(join(library, "LICENSE"), "utf8").trim();
  return `/*!\nContains Preact.\n\n${licence}\n*/\n${only.code}`;
}
