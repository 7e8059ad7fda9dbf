// Makes the inspector's page small for browsers: `node scripts/page.mjs FOLDER` writes there what the package ships. The sources run as they
// are, too. The vendored library stays a file of its own, unchanged, with its licences.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "lightningcss";
import { RolldownMagicString, rolldown } from "rolldown";
import { Visitor } from "rolldown/utils";

const source = join(dirname(dirname(fileURLToPath(import.meta.url))), "src/inspector/page");
const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: node scripts/page.mjs FOLDER");

rmSync(folder, { recursive: true, force: true });
mkdirSync(join(folder, "vendor"), { recursive: true });
for (const name of ["icon.svg", ...vendored()]) copyFileSync(join(source, name), join(folder, name));
const { markup, styles } = withOneStylesheet(readFileSync(join(source, "index.html"), "utf8"));
writeFileSync(join(folder, "index.html"), markup.replace(/\n\s+/g, "\n"));
writeFileSync(join(folder, "style.css"), transform({ filename: "style.css", code: styles, minify: true }).code);
writeFileSync(join(folder, "main.js"), await bundled());

/** What a browser or a lawyer reads; the declarations are for the compiler. */
function vendored() {
  return readdirSync(join(source, "vendor"))
    .filter((name) => !name.endsWith(".d.ts"))
    .map((name) => `vendor/${name}`);
}

/** All stylesheets of the page, in its order, in the first one's place. */
function withOneStylesheet(page) {
  const links = [...page.matchAll(/ *<link rel="stylesheet" href="{{path}}\/assets\/(.+)" \/>\n/g)];
  return {
    markup: links.slice(1).reduce((left, [link]) => left.replace(link, ""), page),
    styles: Buffer.concat(links.map(([, name]) => readFileSync(join(source, name)))),
  };
}

/** All modules but the library in one. It stays `main.js`, beside `vendor/`: from its address the page learns where it is mounted. */
async function bundled() {
  const bundle = await rolldown({
    input: join(source, "main.js"),
    external: /\/vendor\//,
    plugins: [{ name: "templates", transform: (code, _id, { ast }) => withoutSpareMarkup(code, ast) }],
    onLog(_level, { message }) {
      throw new Error(message);
    },
  });
  const { output } = await bundle.generate({ format: "esm", minify: true, comments: false });
  await bundle.close();
  const [only, other] = output;
  if (other !== undefined) throw new Error(`The page has become more than one module: ${other.fileName}`);
  return only.code;
}

/**
 * What means nothing to the library that reads the templates: how lines are indented (it drops a line break beside a tag, and a browser
 * shows any other as a space), the name behind `</`, and quotes around one word.
 */
function withoutSpareMarkup(code, ast) {
  const text = new RolldownMagicString(code);
  new Visitor({
    TaggedTemplateExpression({ tag, quasi }) {
      if (tag.name !== "html") return;
      for (const { start, end } of quasi.quasis) {
        const markup = code.slice(start, end);
        const shorten = (pattern, short) => {
          for (const { index, 0: found, ...parts } of markup.matchAll(pattern))
            text.overwrite(start + index, start + index + found.length, short(parts, start + index, found));
        };
        shorten(/\s*\n\s*/g, (_, at, { length }) => (code[at - 1] === ">" || code[at + length] === "<" ? "" : "\n"));
        shorten(/<\/[\w/]+>/g, () => "</>");
        shorten(/(?<=\s[\w-]+=)"([\w-]+)"(?=[\s>])/g, ({ 1: word }) => word);
      }
    },
  }).visit(ast);
  return { code: text.toString() };
}
