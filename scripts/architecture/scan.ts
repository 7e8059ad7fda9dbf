/** Reads imports and literals off TypeScript text: TypeScript 7 has no compiler API, and other checkers see no modules with it. */

/** One module another one is loaded from. */
export interface Import {
  readonly specifier: string;
  /** `import type` or `export type`: gone at run time. */
  readonly typeOnly: boolean;
}

export interface Scan {
  /** The text without comments, and with the insides of strings, templates and regular expressions blanked; same length. */
  readonly bare: string;
  readonly imports: readonly Import[];
  /** The values of all quoted strings. */
  readonly literals: readonly string[];
}

/** Splits `text` into what runs and what is only text in it. */
export function scan(text: string): Scan {
  const literals: { at: number; value: string }[] = [];
  const bare = blank(text, (at, value) => literals.push({ at, value }));
  const byPlace = new Map(literals.map(({ at, value }) => [at, value]));
  return { bare, imports: importsOf(bare, byPlace), literals: literals.map(({ value }) => value) };
}

const LOADS = [
  /\b(?:import|export)\s+(type\s+)?[^;'"`()]*?\bfrom\s*(?=["'])/g,
  /\bimport()\s*(?=["'])/g,
  /\bimport()\s*\(\s*(?=["'])/g,
  /\b[rR]equire()(?:\.resolve)?\s*\(\s*(?=["'])/g,
  /\bcreateRequire()\s*\([^)]*\)\s*\(\s*(?=["'])/g,
];

function importsOf(bare: string, literals: ReadonlyMap<number, string>): Import[] {
  return LOADS.flatMap((pattern) =>
    [...bare.matchAll(pattern)].flatMap((match) => {
      const specifier = literals.get(match.index + match[0].length);
      return specifier === undefined ? [] : [{ specifier, typeOnly: match[1] !== undefined && match[1] !== "" }];
    }),
  );
}

/** Blanks what is not code, and reports each quoted string with the place of its opening quote. */
function blank(text: string, onString: (at: number, value: string) => void): string {
  let out = "";
  let at = 0;
  // One entry per open `${`: how many braces are open inside it.
  const templates: number[] = [];
  const skipTo = (end: number) => {
    out += text.slice(at, end).replace(/[^\n]/g, " ");
    at = end;
  };
  const keep = () => {
    out += text[at];
    at += 1;
  };
  const template = () => {
    const end = endOfTemplateText(text, at);
    skipTo(end);
    if (text.startsWith("${", at)) {
      templates.push(0);
      keep();
    }
    if (at < text.length) keep();
  };
  while (at < text.length) {
    const char = text[at];
    const open = templates.at(-1);
    if (text.startsWith("//", at)) skipTo(lineEnd(text, at));
    else if (text.startsWith("/*", at)) skipTo(after(text, "*/", at + 2));
    else if (char === '"' || char === "'") {
      const end = endOfQuoted(text, at + 1, char);
      onString(at, text.slice(at + 1, end));
      keep();
      skipTo(end);
      keep();
    } else if (char === "`") {
      keep();
      template();
    } else if (char === "}" && open === 0) {
      templates.pop();
      keep();
      template();
    } else if (char === "/" && startsRegExp(out)) {
      keep();
      skipTo(endOfRegExp(text, at));
    } else {
      if (open !== undefined && char === "{") templates[templates.length - 1] = open + 1;
      if (open !== undefined && char === "}") templates[templates.length - 1] = open - 1;
      keep();
    }
  }
  return out;
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

function after(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from);
  return found === -1 ? text.length : found + mark.length;
}

function endOfQuoted(text: string, from: number, quote: string): number {
  let at = from;
  while (at < text.length && text[at] !== quote && text[at] !== "\n") at += text[at] === "\\" ? 2 : 1;
  return Math.min(at, text.length);
}

function endOfTemplateText(text: string, from: number): number {
  let at = from;
  while (at < text.length && text[at] !== "`" && !text.startsWith("${", at)) at += text[at] === "\\" ? 2 : 1;
  return Math.min(at, text.length);
}

/** A slash begins a regular expression where a value may begin; after a value it divides. */
function startsRegExp(before: string): boolean {
  return /(?:^|[(,=:[!&|?{};+\-*%~^<>\n]|\b(?:return|typeof|case|in|of|yield|await))\s*$/.test(before.slice(-40));
}

function endOfRegExp(text: string, from: number): number {
  let at = from;
  let inClass = false;
  while (at < text.length && text[at] !== "\n" && (inClass || text[at] !== "/")) {
    if (text[at] === "[") inClass = true;
    if (text[at] === "]") inClass = false;
    at += text[at] === "\\" ? 2 : 1;
  }
  return Math.min(at, text.length);
}
