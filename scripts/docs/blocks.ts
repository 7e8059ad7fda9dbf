/** Takes the examples out of the documentation. The markers are described in CONTRIBUTING.md. */

/** One programme: a block, or several that continue each other. */
export interface Example {
  /** No other document has one of the same name. */
  readonly name: string;
  readonly language: "ts" | "js";
  /** `README.md:12`, of its first block. */
  readonly place: string;
  readonly code: string;
  /** Set when it is only type-checked, or not even that, with the reason given there. */
  readonly leftOut?: { readonly from: "run" | "check"; readonly reason: string };
  /** The path it answers webhooks on, when it is a server. */
  readonly serves?: string;
  /** Whose webhooks it serves, if not the messaging service's. */
  readonly servesFor?: "stripe";
  /** It needs the packages of `test/proofs/hosts`, and is checked there. */
  readonly isForHosts?: true;
  /** It talks to the service: an emulator runs beside it. */
  readonly needsEmulator?: true;
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

const IN_HOSTS = { from: "check", reason: "npm run prove -- hosts compiles and runs it" } as const;

type Marking = Pick<Example, "name" | "leftOut" | "serves" | "servesFor" | "needsEmulator" | "isForHosts"> & {
  readonly continued?: true;
};

function marked(before: string, place: string): Marking {
  const [, kind, value = ""] = MARKER.exec(before) ?? [];
  if (kind === undefined) return { name: nameOf(place) };
  if (value === "") throw new Error(`${place}: the marker says no name or reason`);
  if (kind !== "example")
    return { name: nameOf(place), leftOut: { from: kind === "no-run" ? "run" : "check", reason: value } };
  const [name = "", ...words] = value.split(/,\s*/);
  let marking: Marking = { name: `${nameOf(place.replace(/:\d+$/, ""))}-${name}` };
  for (const word of words) marking = { ...marking, ...said(word, place) };
  return marking;
}

/** Each example becomes a file of its name. */
function nameOf(place: string): string {
  return place.replace(/[^\w]+/g, "-").toLowerCase();
}

function said(word: string, place: string): Omit<Marking, "name"> {
  if (word === "continued") return { continued: true };
  if (word === "with emulator") return { needsEmulator: true };
  if (word === "in test/proofs/hosts") return { isForHosts: true, leftOut: IN_HOSTS };
  const [, serves, source] = /^serves (\/\S*)( for stripe)?$/.exec(word) ?? [];
  if (serves === undefined) throw new Error(`${place}: unknown words: "${word}"`);
  return source === undefined ? { serves } : { serves, servesFor: "stripe" };
}
