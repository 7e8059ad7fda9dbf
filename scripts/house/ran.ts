/** From offsets in compiled code to the functions that somebody wrote. Pure. */
import ts from "@typescript/typescript6";
import { parse } from "./lines.ts";

/** A function that ran: where it lies in the compiled file of `path` (`src/a.js`). */
export interface Ran {
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

export interface WrittenFunction {
  /** `src/a.ts:12 name`. */
  readonly place: string;
  readonly file: string;
  readonly lines: number;
}

export interface Texts {
  readonly compiled: string;
  readonly source: string;
}

/**
 * The functions that ran, each once. The compiler keeps the order of functions, so the nth of the compiled file is the nth of the source.
 * What the engine makes itself, such as the initialiser of a class's fields, does not count as a function.
 *
 * @param read - the texts of a compiled file and of its source
 * @throws Error when the two have different numbers of functions: one of them is older
 */
export function writtenFunctions(
  ran: readonly Ran[],
  read: (path: string) => Texts & { readonly file: string },
): readonly WrittenFunction[] {
  return [...new Set(ran.map(({ path }) => path))].flatMap((path) => {
    const offsets = ran.filter((place) => place.path === path);
    const { compiled, source, file } = read(path);
    const made = functionsOf(parse(path, compiled));
    const written = functionsOf(parse(file, source));
    if (made.length !== written.length)
      throw new Error(`${file} has ${written.length} functions, and what was compiled of it ${made.length}`);
    const found = new Set(offsets.map((place) => indexOf(made, place)));
    return written.filter((_, index) => found.has(index)).map((node) => describe(node, file));
  });
}

/** With a body, in the order of the text. */
function functionsOf(source: ts.SourceFile): readonly ts.FunctionLikeDeclaration[] {
  const found: ts.FunctionLikeDeclaration[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined)
      found.push(node as ts.FunctionLikeDeclaration);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** The engine begins a function at its name or its parameters; of several that end together, it is the innermost around that. */
function indexOf(made: readonly ts.FunctionLikeDeclaration[], { start, end }: Ran): number {
  return made.findLastIndex((node) => node.getEnd() === end && node.getStart() <= start);
}

function describe(node: ts.FunctionLikeDeclaration, file: string): WrittenFunction {
  const source = node.getSourceFile();
  const { line: first } = source.getLineAndCharacterOfPosition(node.getStart());
  const { line: last } = source.getLineAndCharacterOfPosition(node.getEnd());
  const name = node.name?.getText() ?? (ts.isConstructorDeclaration(node) ? "constructor" : "(no name)");
  return { place: `${file}:${first + 1} ${name}`, file, lines: last - first + 1 };
}
