// Bundles the package: `node scripts/bundle.mjs OUT DECLARATIONS` writes to OUT what npm publishes as dist/. DECLARATIONS holds what
// TypeScript emitted of src and adapters; without it, only the code is written. Why it is bundled, and what with: docs/decisions/0037-the-package-is-bundled.md.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, dirname, isAbsolute, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { esmExternalRequirePlugin } from "rolldown/plugins";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import { buildPage } from "./page.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const json = (file) => JSON.parse(readFileSync(join(root, file), "utf8"));
const manifest = json("package.json");
const sources = json("tsconfig.json").compilerOptions.paths;

/** `oncehook/express` -> `express`, the name of its file; its source is adapters/express.ts. */
const entries = Object.entries(manifest.exports).flatMap(([entry, target]) => {
  if (typeof target === "string") return [];
  const [source] = sources[`oncehook${entry.slice(1)}`];
  return [{ name: basename(target.default, ".js"), source }];
});
const command = Object.values(manifest.bin).map((file) => ({
  name: basename(file, ".js"),
  source: "src/tools/cli/main.ts",
}));

const peers = Object.keys(manifest.peerDependencies);
const isPeer = (id) => peers.some((peer) => id === peer || id.startsWith(`${peer}/`));
const isBuiltin = (id) => id.startsWith("node:") || builtinModules.includes(id);

/**
 * Code that every entry shares. Without these groups there is a chunk for each combination of entries. The names are read:
 * src/internal/foreign-error.ts finds oncehook's own folder by the second one.
 */
const GROUPS = [
  { name: "zod", test: /[\\/]node_modules[\\/]zod[\\/]/ },
  { name: "oncehook-internal", test: /[\\/]src[\\/](?:internal[\\/]|errors\.ts$)/ },
  { name: "core", test: /[\\/]src[\\/](?:sources[\\/][^\\/]+$|service[\\/]|inbox[\\/]|receiver[\\/]|create\.ts$)/ },
];

/** raw-body asks it for text, which the receiver never wants; it would be a third of the package. */
const WITHOUT_ICONV = {
  name: "without iconv-lite",
  resolveId: (id) => (id === "iconv-lite" ? "\0iconv-lite" : null),
  load: (id) => (id === "\0iconv-lite" ? "module.exports = {};" : null),
};

/** The command loads what it needs when it needs it, which is often in a chunk that is there anyway. And a busy machine is slow. */
const HARMLESS = ["INEFFECTIVE_DYNAMIC_IMPORT", "PLUGIN_TIMINGS"];

const [out, declarations] = process.argv.slice(2);
if (out === undefined) throw new Error("usage: node scripts/bundle.mjs OUT [DECLARATIONS]");
mkdirSync(out, { recursive: true });
const packages = await writeCode();
if (declarations !== undefined) await writeDeclarations();
packages.add(await buildPage(join(out, "page")));
writeFileSync(join(out, "third-party-licenses.txt"), licences([...packages].sort()));

/** Returns the folders of the packages that the code contains. */
async function writeCode() {
  const bundle = await rolldown({
    input: Object.fromEntries([...entries, ...command].map(({ name, source }) => [name, join(root, source)])),
    platform: "node",
    external: isPeer,
    plugins: [WITHOUT_ICONV, esmExternalRequirePlugin({ external: [/^node:/, ...builtinModules] })],
    tsconfig: join(root, "tsconfig.json"),
    onLog(_level, { code, message }) {
      if (!HARMLESS.includes(code)) throw new Error(message);
    },
  });
  const { output } = await bundle.write({
    dir: out,
    format: "esm",
    chunkFileNames: "[name]-[hash].js",
    comments: { jsdoc: false },
    codeSplitting: { groups: GROUPS },
  });
  await bundle.close();
  const modules = output.flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []));
  return new Set(modules.flatMap((id) => folderOfPackage(id) ?? []));
}

function folderOfPackage(id) {
  const parts = id.split(`${sep}node_modules${sep}`);
  if (parts.length === 1) return undefined;
  const name = /^(?:@[^\\/]+[\\/])?[^\\/]+/.exec(parts.pop())?.[0] ?? "";
  return [...parts, name].join(`${sep}node_modules${sep}`);
}

/** A declaration must name nothing that a user does not install: their compiler would not find it. */
async function writeDeclarations() {
  const bundle = await rollup({
    input: Object.fromEntries(
      entries.map(({ name, source }) => [name, join(declarations, source.replace(/\.ts$/, ".d.ts"))]),
    ),
    plugins: [dts({ tsconfig: join(root, "tsconfig.json") })],
    external: (id) => !id.startsWith(".") && !isAbsolute(id),
    onwarn({ message }) {
      // Types that no entry exports, of which users never write the name.
      if (!message.includes("private shared type exports")) throw new Error(message);
    },
  });
  const { output } = await bundle.write({
    dir: out,
    format: "esm",
    entryFileNames: "[name].d.ts",
    chunkFileNames: ({ name }) => `${name.replace(/\.d$/, "")}-[hash].d.ts`,
  });
  await bundle.close();
  const own = new Set(output.map(({ fileName }) => fileName));
  const strays = output.flatMap(({ fileName, imports }) =>
    imports.filter((id) => !own.has(id) && !isPeer(id) && !isBuiltin(id)).map((id) => `${fileName} names ${id}`),
  );
  if (strays.length > 0) throw new Error(`Users do not install what their compiler must read:\n${strays.join("\n")}`);
}

function licences(folders) {
  const texts = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e(?:\.\w+)?$/i.test(each));
    if (file === undefined) throw new Error(`${name} has no licence file`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return `oncehook contains code of these packages.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}
