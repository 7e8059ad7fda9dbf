/** Takes the examples out of the documentation. The markers are described in CONTRIBUTING.md. */

/** One programme: a block, or several that continue each other. */
export interface Example {
  readonly name: string;
  readonly language: "ts" | "js";
  /** `README.md:12`, of its first block. */
  readonly place: string;
  readonly code: string;
  /** Set when it is only type-checked, or not even that, with the reason given there. */
  readonly leftOut?: { readonly from: "run" | "check"; readonly reason: string };
  /** The path it answers webhooks on, when it is a server. */
  readonly serves?: string;
}

const FENCE = /^```(ts|js)\s*\n([\s\S]*?)^```\s*$/gm;
const MARKER = /<!--\s*(example|no-run|no-check):\s*([^>]*?)\s*-->\s*$/;

/** The examples of one document. Throws on a marker without a name or a reason. */
export function examplesOf(file: string, text: string): Example[] {
  const examples = new Map<string, Example>();
  for (const match of text.matchAll(FENCE)) {
    const before = text.slice(0, match.index);
    const place = `${file}:${before.split("\n").length}`;
    const language = match[1] === "js" ? "js" : "ts";
    const code = match[2] ?? "";
    const example = { ...marked(before, place), language, place, code } as const;
    const first = examples.get(example.name);
    if (first !== undefined && !example.continued)
      throw new Error(`${place} has the name of ${first.place}: ${example.name}`);
    if (first === undefined && example.continued)
      throw new Error(`${place} continues ${example.name}, which does not exist`);
    examples.set(example.name, first === undefined ? example : { ...first, code: `${first.code}\n${code}` });
  }
  return [...examples.values()];
}

function marked(before: string, place: string): Omit<Example, "language" | "place" | "code"> & { continued?: boolean } {
  const name = place.replace(/[^\w]+/g, "-").toLowerCase();
  const [, kind, value = ""] = MARKER.exec(before) ?? [];
  if (kind === undefined) return { name };
  if (value === "") throw new Error(`${place}: the marker says no name or reason`);
  if (kind !== "example") return { name, leftOut: { from: kind === "no-run" ? "run" : "check", reason: value } };
  const [given = "", ...words] = value.split(/,\s*/);
  const serves = words.map((word) => /^serves (\/\S*)$/.exec(word)?.[1]).find((path) => path !== undefined);
  const continued = words.includes("continued");
  if (words.length !== (serves === undefined ? 0 : 1) + (continued ? 1 : 0))
    throw new Error(`${place}: unknown words in "${value}"`);
  return { name: given, ...(serves === undefined ? {} : { serves }), ...(continued ? { continued } : {}) };
}
