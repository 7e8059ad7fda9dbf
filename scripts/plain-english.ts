/**
 * `node scripts/run.mjs scripts/plain-english.ts [FILE...]`: sentences that must be read twice. Looks at Markdown, and at the comments and
 * messages of code, for words of a dialect that this project once had, and at the length of the sentences of pages for users.
 */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { filesUnder } from "./gates/gate.ts";

export interface Finding {
  readonly line: number;
  readonly found: string;
  readonly better: string;
}

/** What is looked for, and what to write in its place. */
const DIALECT: readonly (readonly [pattern: RegExp, better: string])[] = [
  [/\bmend(?:s|ed|ing)?\b/i, "fix"],
  [/\bhanded? out\b|\bhands out\b/i, "passed to the handler"],
  [/\bbut for\b/i, "except"],
  [/\bbeside\b/i, "next to, besides, in addition to"],
  [/\bwhoever\b/i, "name who: the caller, the process"],
  [/\bin the(?:ir|ts)? midst\b/i, "in the middle of"],
  [/(?<!\bthere )\bis no (?!longer\b|more\b|way\b|match\b|effect\b)\w+/i, "is not a …"],
  [/\bnone that\b/i, "not …"],
  [/\btell(?:s|ing)? of\b|\b(?:is|are) told\b|\btold in\b/i, "reports, logs, receives"],
  [/\bwhat is (?:given|left|taken|there|held|due|kept|asked|shown)\b/i, "name the thing"],
  [/(?:^|[.;:,]\s+)else\b(?! if)/i, "otherwise"],
  [/\bcomes? to (?:an end|nothing|pass)\b/i, "ends"],
  [/\bof (?:one's|somebody's) own\b/i, "your own"],
  [/(?:^|[,;:.(]\s*|\b(?:for|by|and|that)\s)who (?:asks|watches|waits|reads|rotates|takes|is)\b/i, "name who"],
  [/\bas found\b|\bsays of\b|\bsettle of\b/i, "plain words"],
];

/** Places of `text` in the dialect. Code in backticks is not prose in Markdown; of code, only comments and messages count. */
export function dialectOf(text: string, isMarkdown: boolean): readonly Finding[] {
  return text.split("\n").flatMap((whole, index) => {
    if (!isMarkdown && !speaks(whole)) return [];
    const prose = isMarkdown ? whole.replace(/`[^`]*`/g, "``") : whole;
    return DIALECT.flatMap(([pattern, better]) => {
      const found = pattern.exec(prose)?.[0].trim();
      return found === undefined ? [] : [{ line: index + 1, found, better }];
    });
  });
}

/** A line of code with a comment or a message on it. */
function speaks(line: string): boolean {
  return /^\s*(?:\/\/|\*|\/\*)|\s\/\/ |["'`].* .*["'`]/.test(line);
}

/** The sentences of a Markdown page: a paragraph, a list item and a table cell end one, with or without a full stop. Code is left out. */
export function sentencesOf(page: string): readonly string[] {
  const lines = page
    .replace(/```[\s\S]*?```/g, "\n")
    .split("\n")
    .filter((line) => !/^\s*(?:#|<!--|\|[-: |]+$)/.test(line))
    .map((line) =>
      /^\s*\|/.test(line) ? line.replace(/(?<!\\)\|/g, "\n\n") : line.replace(/^\s*(?:[-*+]|\d+\.)\s+/, "\n\n"),
    );
  return lines
    .join("\n")
    .split(/\n\s*\n/)
    .map((block) => block.replace(/\s+/g, " ").replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1"))
    .flatMap((block) => block.replace(/\b(?:e\.g|i\.e)\./g, "eg").split(/(?<=[.!?])\s+/))
    .map((sentence) => sentence.trim())
    .filter((sentence) => wordsIn(sentence) > 2);
}

function wordsIn(sentence: string): number {
  // A type in backticks is one word, however many spaces it has.
  return sentence.replace(/`[^`]*`/g, "``").split(/\s+/).length;
}

/** Words of a sentence on average, in a page. */
const LONGEST_AVERAGE = 18;
/** Words of any sentence. */
const LONGEST = 40;
/** Where these limits hold: the README and the pages for users, not decisions, the specification and the rows of benchmarks. */
const FOR_USERS =
  /^(?:README\.md|docs\/(?!benchmarks\.md)(?:(?:guides|tutorials|reference)\/)?[^/]+\.md|examples\/.*\.md)$/;
/** Where what users and contributors read lies. */
const READ = ["src", "adapters", "docs", "examples", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];

export interface Reading {
  readonly files: number;
  readonly problems: readonly string[];
}

/** Reads what users and contributors meet, or only `files`, paths from `root`. */
export function readAloud(root: string, files = READ.flatMap((place) => proseUnder(root, place))): Reading {
  const problems = files.flatMap((file) => {
    const text = readFileSync(`${root}/${file}`, "utf8");
    const isMarkdown = file.endsWith(".md");
    const words = dialectOf(text, isMarkdown).map(({ line, found, better }) => `${file}:${line} "${found}": ${better}`);
    return isMarkdown && FOR_USERS.test(file) ? [...words, ...tooLong(file, text)] : words;
  });
  return { files: files.length, problems };
}

function tooLong(file: string, page: string): readonly string[] {
  const sentences = sentencesOf(page);
  const long = sentences.filter((sentence) => wordsIn(sentence) > LONGEST);
  const average = sentences.reduce((total, sentence) => total + wordsIn(sentence), 0) / sentences.length;
  const problems = long.map(
    (sentence) => `${file}: ${wordsIn(sentence)} words, at most ${LONGEST}: "${sentence.slice(0, 60)} …"`,
  );
  if (sentences.length < 10 || average <= LONGEST_AVERAGE) return problems;
  return [...problems, `${file}: ${average.toFixed(1)} words a sentence on average, at most ${LONGEST_AVERAGE}`];
}

function proseUnder(root: string, place: string): readonly string[] {
  if (place.endsWith(".md")) return [place];
  return filesUnder(`${root}/${place}`)
    .map((file) => `${place}/${file}`)
    .filter((file) => /\.(?:md|tsx?)$/.test(file) && !/node_modules|\.next|\.vitepress|\/spec\/|\.d\.ts$/.test(file));
}

if (process.argv[1]?.endsWith("plain-english.js")) {
  const root = process.cwd();
  const named = process.argv.slice(2).map((file) => relative(root, file));
  const { files, problems } = named.length > 0 ? readAloud(root, named) : readAloud(root);
  for (const problem of problems) console.log(problem);
  console.log(`${files} files, ${problems.length} problems`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
