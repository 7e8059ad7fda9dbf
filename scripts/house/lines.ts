/** Lines of code: which lines of a text hold at least one token. Pure. */
import ts from "@typescript/typescript6";

/** Sources that count, by their ending. A declaration (`.d.ts`) is a source here: somebody wrote it. */
const CODE = /\.(?:tsx?|js|css)$/;
/** The suites that a store's author runs: a text of tests that is published. Printed, and part of no sum. */
const CONTRACTS = /^test\/contracts\//;

export interface LineSums {
  /** Code lines of src and adapters. */
  readonly code: number;
  /** Code lines of the contracts. */
  readonly contracts: number;
  /** All lines of test. */
  readonly tests: number;
}

/** @param texts - by their paths from the root */
export function sumsOf(texts: ReadonlyMap<string, string>): LineSums {
  const sums = { code: 0, contracts: 0, tests: 0 };
  for (const [path, text] of texts) {
    if (CONTRACTS.test(path)) sums.contracts += codeLines(path, text);
    else if (/^(?:src|adapters)\//.test(path) && CODE.test(path)) sums.code += codeLines(path, text);
    else if (/^test\/.*\.(?:[mc]?[jt]s|tsx)$/.test(path)) sums.tests += text.split("\n").length - 1;
  }
  return sums;
}

/** Lines with code on them, blanks and comments left out, JSX's too. The text of a template is code, its blank lines are not. */
export function codeLines(path: string, text: string): number {
  const lines = text.split("\n");
  const found = new Set<number>();
  if (path.endsWith(".css")) return withoutCssComments(text).filter((line) => line.trim() !== "").length;
  const source = parse(path, text);
  const mark = (node: ts.Node) => {
    if (ts.isJSDoc(node) || (ts.isJsxExpression(node) && node.expression === undefined)) return;
    if (node.getChildCount(source) > 0) return node.getChildren(source).forEach(mark);
    if (node.getEnd() === node.getStart(source)) return;
    const { line: first } = source.getLineAndCharacterOfPosition(node.getStart(source));
    const { line: last } = source.getLineAndCharacterOfPosition(node.getEnd());
    for (let line = first; line <= last; line++) if (lines[line]?.trim() !== "") found.add(line);
  };
  mark(source);
  return found.size;
}

export function parse(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true);
}

/** A comment mark inside of a quoted text is text. */
function withoutCssComments(text: string): readonly string[] {
  return text.replace(/("|')(?:\\.|(?!\1).)*\1|\/\*[\s\S]*?\*\//g, (all, quote) => (quote ? all : "")).split("\n");
}
