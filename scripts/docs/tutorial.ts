/** Takes the steps out of a tutorial: files to write, commands to run, and what they print. The markers are described in CONTRIBUTING.md. */

/** A step; `place` is `docs/tutorials/hono.md:12`. */
export type Step = { readonly place: string } & (
  | { readonly kind: "file"; readonly name: string; readonly content: string }
  | { readonly kind: "commands"; readonly commands: string; readonly exitCode: number }
  | { readonly kind: "keeps running"; readonly commands: string }
  | { readonly kind: "prints"; readonly lines: readonly string[] }
  | { readonly kind: "not followed"; readonly reason: string }
);

const BLOCK = /(?:^<!--[ \t]*(.*?)[ \t]*-->\n)?^```(\w*)\n([\s\S]*?)^```[ \t]*$/gm;

/** The steps of one tutorial, in their order. Throws on a block that is none, because nobody would follow it. */
export function stepsOf(file: string, text: string): Step[] {
  return [...text.matchAll(BLOCK)].map(([whole, marker = "", language = "", content = ""], index, all) => {
    const place = `${file}:${text.slice(0, all[index]?.index).split("\n").length}`;
    const [, key = marker, value = ""] = /^([\w ]+):\s*(.*)$/.exec(marker) ?? [];
    if (key === "not followed" && value !== "") return { kind: key, place, reason: value };
    if (key === "file" && value !== "") return { kind: key, place, name: value, content };
    const [, exitCode = key === "" ? "0" : undefined] = /^exits with (\d+)$/.exec(key) ?? [];
    if (language === "sh" && exitCode !== undefined)
      return { kind: "commands", place, commands: content, exitCode: Number(exitCode) };
    if (language === "sh" && key === "keeps running") return { kind: key, place, commands: content };
    if (language === "text" && key === "") return { kind: "prints", place, lines: content.trimEnd().split("\n") };
    throw new Error(`${place} is not a step: ${whole.split("\n")[0]}`);
  });
}

/**
 * Whether a programme printed these lines, in this order; others may stand between them. `…` stands for anything, as do the
 * milliseconds of a delivery and the width of a gap between columns.
 */
export function isPrinted(expected: readonly string[], printed: readonly string[]): boolean {
  let next = 0;
  for (const line of printed) {
    const wanted = expected[next];
    if (wanted !== undefined && patternOf(wanted).test(line.trim())) next += 1;
  }
  return next === expected.length;
}

function patternOf(line: string): RegExp {
  const escaped = line.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(
    `^${escaped
      .replace(/\b\d+ ms\b/g, "\\d+ ms")
      .replaceAll("…", ".*")
      .replace(/ +/g, " +")}$`,
  );
}
