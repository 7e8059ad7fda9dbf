/** Compiles before the tests when something changed, because child processes cannot run TypeScript on Node 20. */

/** Leaves `dist/` (the package) and `.build/` (everything, by its path: `.build/test/proofs/child.js`) up to date. */
export default async function setup(): Promise<void> {
  const { build } = (await import(new URL("../../scripts/build.mjs", import.meta.url).href)) as Builder;
  build("dist", { quiet: true });
  build("tools", { quiet: true });
}

interface Builder {
  build(target: "dist" | "tools", options: { quiet: boolean }): boolean;
}
