/** The gate of the proof programmes: CI runs each, and CONTRIBUTING.md has a row for each. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { disagreements, listed } from "../programmes.ts";
import { type Gate, run } from "./gate.ts";

export const programmes: Gate = {
  name: "proof programmes",
  async run({ root }) {
    // Without a name it lists them.
    const { output } = await run(process.execPath, [join(root, ".build", "test", "proofs", "run.js")], { cwd: root });
    const names = listed(output);
    const text = (file: string) => readFileSync(join(root, file), "utf8");
    const problems = disagreements(names, { ci: text(".ci/run"), guide: text("CONTRIBUTING.md") });
    return [{ name: this.name, count: names.length, unit: "programmes", problems }];
  },
};
