/** Finds the statements that begin or end a transaction, however they are written, before they are sent. */

/**
 * What a text asks of the transaction that it is sent in. `isolation`: another level than READ COMMITTED. `other`: what has no
 * counterpart inside a transaction, such as `commit and chain`, or a `commit` among other statements.
 */
export type TransactionControl = "begin" | "begin read only" | "commit" | "rollback" | "isolation" | "other";

const FIRST_WORDS = new Set(["begin", "start", "commit", "end", "abort", "rollback", "prepare", "set"]);
const FIRST_WORD = /^\s*([a-z]+)/i;
const ANY_WORD = new RegExp(`\\b(?:${[...FIRST_WORDS].join("|")})\\b`, "i");

/** Null for every other statement. Runs on each query of an effect: most are recognised by their first word. */
export function transactionControlOf(text: string): TransactionControl | null {
  if (!text.includes(";")) {
    const word = FIRST_WORD.exec(text)?.[1];
    if (word !== undefined && !FIRST_WORDS.has(word.toLowerCase())) return null;
  }
  if (!ANY_WORD.test(text)) return null;
  const statements = statementsOf(text);
  const controls = statements.flatMap((words) => controlOf(words.join(" ")) ?? []);
  if (controls.length > 0 && statements.length > 1) return "other";
  return controls[0] ?? null;
}

const BEGIN = /^(?:begin(?: work| transaction)?|start transaction)(?<modes>| .*)$/;
const SET_MODES = /^set (?:local |session )?transaction(?<modes> .*)$/;
/** The modes that the inbox's own transaction has, or can take on for a part of it. */
const MODES = /^(?:(?: ,)? (?:isolation level read (?:un)?committed|read only|read write|(?:not )?deferrable))*$/;
const END = /^(?<end>commit|end|rollback|abort)(?: work| transaction)?(?: and no chain)?$/;
const TO_SAVEPOINT = /^rollback (?:work |transaction )?to /;
const OTHER = /^(?:begin|start transaction|commit|end|rollback|abort|prepare transaction)(?: |$)/;

/** @param words - of one statement, in lower case, with a blank between them */
function controlOf(words: string): TransactionControl | null {
  if (TO_SAVEPOINT.test(words)) return null;
  const begin = BEGIN.exec(words)?.groups?.modes;
  if (begin !== undefined && MODES.test(begin)) return begin.includes("read only") ? "begin read only" : "begin";
  const modes = begin ?? SET_MODES.exec(words)?.groups?.modes ?? "";
  if (/ isolation level (?:serializable|repeatable read)(?: |$)/.test(modes)) return "isolation";
  const end = END.exec(words)?.groups?.end;
  if (end !== undefined) return end === "commit" || end === "end" ? "commit" : "rollback";
  return OTHER.test(words) ? "other" : null;
}

/** No statement that matters here is longer. */
const MOST_WORDS = 20;
const ROUTINE = /^create (?:or replace )?(?:function|procedure)$/;
const SPACE_OR_COMMENT = /^(?:\s|--|\/\*)/;
const WORD = /[a-z_\u0080-\uffff][\w$\u0080-\uffff]*/iy;

/** The first words of each statement that is not empty. What is neither a word nor punctuation is `?`. */
function statementsOf(text: string): string[][] {
  const statements: string[][] = [];
  let words: string[] = [];
  // A routine's body in standard SQL, BEGIN ATOMIC … END, has semicolons of its own.
  let blocks = 0;
  for (let at = 0; at < text.length; ) {
    const end = endOfToken(text, at);
    const token = text.slice(at, end);
    at = end;
    if (token === ";" && blocks === 0) {
      if (words.length > 0) statements.push(words);
      words = [];
    } else if (!SPACE_OR_COMMENT.test(token)) {
      const word = wordOf(token);
      if (words.length < MOST_WORDS) words.push(word);
      if (word === "begin" && words.length > 1 && isRoutine(words)) blocks++;
      else if (word === "case" && blocks > 0) blocks++;
      else if (word === "end" && blocks > 0) blocks--;
    }
  }
  if (words.length > 0) statements.push(words);
  return statements;
}

function wordOf(token: string): string {
  WORD.lastIndex = 0;
  const isWord = WORD.test(token) && WORD.lastIndex === token.length;
  if (isWord) return token.toLowerCase();
  return token.length === 1 ? token : "?";
}

function isRoutine(words: readonly string[]): boolean {
  return ROUTINE.test(words.slice(0, 2).join(" ")) || ROUTINE.test(words.slice(0, 4).join(" "));
}

/** The server's lexical rules, with `standard_conforming_strings` on. What is not closed reaches to the end of the text. */
function endOfToken(text: string, at: number): number {
  const char = text[at];
  const next = text[at + 1];
  if (char === "-" && next === "-") return after(text, /[\n\r]/g, at);
  if (char === "/" && next === "*") return endOfComment(text, at);
  if (char === "'" || char === '"') return after(text, char === "'" ? /'/g : /"/g, at + 1);
  if ((char === "e" || char === "E") && next === "'") return endOfEscapes(text, at + 2);
  if (char === "$") return endOfDollars(text, at);
  WORD.lastIndex = at;
  return WORD.test(text) ? WORD.lastIndex : at + 1;
}

/** Behind the next match; a doubled quote is two strings in a row here, which makes no difference. */
function after(text: string, pattern: RegExp, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : text.length;
}

/** Comments nest. */
function endOfComment(text: string, at: number): number {
  const mark = /\/\*|\*\//g;
  let depth = 0;
  mark.lastIndex = at;
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return mark.lastIndex;
  }
  return text.length;
}

/** E'…', in which a backslash escapes a quote; it goes on behind a doubled quote, and on a later line. */
function endOfEscapes(text: string, at: number): number {
  const end = /\\[\s\S]|'(?:'|\s*[\n\r]\s*')?/g;
  end.lastIndex = at;
  for (let found = end.exec(text); found !== null; found = end.exec(text)) {
    if (found[0] === "'") return end.lastIndex;
  }
  return text.length;
}

/** $tag$ … $tag$; or the number of a parameter. */
function endOfDollars(text: string, at: number): number {
  const tag = /\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/iy;
  tag.lastIndex = at;
  const opening = tag.exec(text)?.[0];
  if (opening === undefined) return at + 1;
  const closing = text.indexOf(opening, at + opening.length);
  return closing === -1 ? text.length : closing + opening.length;
}
