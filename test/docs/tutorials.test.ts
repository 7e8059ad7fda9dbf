/** Tutorials show the files of the examples as they are, and the README of an example names what its code reads from the environment. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { stepsOf } from "../../scripts/docs/tutorial.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const pages = readdirSync(join(ROOT, "docs/tutorials")).filter((file) => file.endsWith(".md"));
const examples = readdirSync(join(ROOT, "examples")).filter((name) =>
  existsSync(join(ROOT, "examples", name, "package.json")),
);

/** The example of a tutorial, where it has another name. */
const EXAMPLES: Readonly<Record<string, string>> = { "express-sqlite.md": "express" };

it("has the six tutorials and the ten examples that are asked for", () => {
  expect(pages).toHaveLength(6);
  expect(examples.length).toBeGreaterThanOrEqual(10);
});

describe.each(pages)("docs/tutorials/%s", (page) => {
  const example = EXAMPLES[page] ?? page.replace(".md", "");
  const steps = stepsOf(page, read(`docs/tutorials/${page}`));

  it("shows the files of its example", () => {
    const files = steps.filter((step) => step.kind === "file");
    expect(files.length).toBeGreaterThan(0);
    for (const { name, content } of files) expect(content).toBe(read(`examples/${example}/${name}`));
  });

  it("sends a signed event, shows that it is handled, and says what to read next", () => {
    const text = steps.flatMap((step) => (step.kind === "commands" ? step.commands : [])).join("");
    expect(text).toContain("npx oncehook trigger");
    expect(steps.some((step) => step.kind === "prints" && step.lines.some((line) => /handled/.test(line)))).toBe(true);
    expect(read(`docs/tutorials/${page}`)).toMatch(/\n## What to read next\n[^#]*\]\(/);
  });
});

describe.each(examples)("examples/%s", (name) => {
  const files = readdirSync(join(ROOT, "examples", name), { recursive: true, encoding: "utf8" }).filter(
    (file) => /\.(?:tsx?|mjs)$/.test(file) && !/node_modules|\.next|generated/.test(file),
  );
  const sources = files.map((file) => read(`examples/${name}/${file}`)).join("\n");

  it("imports nothing from other folders", () => {
    expect(sources).not.toMatch(/from "(?:\.\.\/)+(?:shared|servers|express|src)\//);
    expect(read(`examples/${name}/package.json`)).toContain('"oncehook": "file:../.."');
  });

  it("has a row of its README for each variable that it reads", () => {
    const plain = [...sources.matchAll(/process\.env\.(\w+)/g)].map(([, variable]) => variable);
    const taken = [...sources.matchAll(/const \{([^}]+)\} = process\.env/g)].flatMap(
      ([, list = ""]) => list.match(/[A-Z_]{4,}/g) ?? [],
    );
    const variables = new Set([...plain, ...taken]);
    expect(variables.size).toBeGreaterThan(0);
    const rows = read(`examples/${name}/README.md`)
      .split("\n")
      .filter((line) => line.startsWith("| `"));
    for (const variable of variables) expect(rows.join("\n")).toContain(`\`${variable}\``);
  });
});
