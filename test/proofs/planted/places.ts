/**
 * Finds the place of a bug that was made by hand: a call, an operator, a statement or a text in a named function, looked up in the syntax
 * tree. So neither new formatting nor another name of a local variable loses it.
 */
import { childrenOf, isFunction, isNode, type Node, namesOf, parametersOf, stringIn, treeOf } from "./tree.ts";

/** A change of one file: what is between `start` and `end` there becomes something else. */
export interface Edit {
  /** From the repository's root. */
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly becomes: string;
}

/** One place, which must be there exactly once. */
export interface Place {
  /** From the repository's root. */
  readonly file: string;
  /**
   * A function, a method or a constant, `#matched`; with parameters, `lease($lane, $event)`, where `becomes` needs them. Null is the start of
   * the file, for an import.
   */
  readonly within: string | null;
  /**
   * Code: an expression, or a statement if it ends like one. `$name` stands for any code, the same one each time; `$$name` for any number of
   * arguments, elements, fields or statements. In a `text` all is meant as it stands, but for white space.
   */
  readonly find: string;
  /** Default: code. Text is within a string: SQL, which is not in the tree. */
  readonly as?: "text";
  /** The holes of `find` and `within` are filled in, and `$0` with all that was found. */
  readonly becomes: string;
}

/** Some code in a function. */
export function code(file: string, within: string, find: string, becomes: string): Place {
  return { file, within, find, becomes };
}

/** Some words of a string in a function or a constant. */
export function words(file: string, within: string, find: string, becomes: string): Place {
  return { file, within, find, as: "text", becomes };
}

export function importIn(file: string, becomes: string): Place {
  return { file, within: null, find: "", becomes };
}

/** @throws unless the place is there exactly once */
export function editAt(text: string, place: Place): Edit {
  const { file, within, find } = place;
  if (within === null) return { file, start: 0, end: 0, becomes: `${place.becomes}\n` };
  const found = functionsOf(text, within).flatMap(({ node, holes }) =>
    place.as === "text" ? textsIn(text, node, place) : codeIn(text, node, { place, holes }),
  );
  const edits = [...new Map(found.map((edit) => [`${edit.start} ${edit.end}`, edit])).values()];
  const [edit] = edits;
  if (edit === undefined || edits.length > 1) throw new Error(`${edits.length} times in ${within} of ${file}: ${find}`);
  return edit;
}

type Holes = ReadonlyMap<string, Code>;

interface Code {
  readonly nodes: readonly Node[];
  readonly code: string;
}

interface Named {
  readonly node: Node;
  /** The code of the parameters that `within` names. */
  readonly holes: Holes;
}

/** The source with all edits of it. @throws where two of them overlap */
export function withEdits(text: string, edits: readonly Edit[]): string {
  const inOrder = [...edits].sort((a, b) => a.start - b.start);
  let [result, at] = ["", 0];
  for (const { file, start, end, becomes } of inOrder) {
    if (start < at) throw new Error(`Two changes of ${file} overlap at ${start}.`);
    result += text.slice(at, start) + becomes;
    at = end;
  }
  return result + text.slice(at);
}

function functionsOf(text: string, within: string): readonly Named[] {
  const [wanted = "", list] = within.split(/(?=\()/);
  const parameters = list === undefined ? [] : parametersOf(patternOf(`function f${list} {}`));
  return namedIn(treeOf(text), wanted, false).flatMap((node): readonly Named[] => {
    const given = parametersOf(node).slice(0, parameters.length);
    const holes = new Map<string, Code>();
    return new Matcher(text, holes).areAlike(parameters, given) ? [{ node, holes }] : [];
  });
}

function namedIn(node: Node, wanted: string, isInFunction: boolean): readonly Node[] {
  const within = childrenOf(node).flatMap((child) => namedIn(child, wanted, isInFunction || isFunction(node)));
  return namesOf(node, isInFunction).includes(wanted) ? [node, ...within] : within;
}

interface Wanted {
  readonly place: Place;
  readonly holes: Holes;
}

function codeIn(text: string, within: Node, { place, holes }: Wanted): readonly Edit[] {
  const pattern = patternOf(place.find);
  return below(within).flatMap((node): readonly Edit[] => {
    const filled = new Map(holes);
    if (bare(node) !== node || !new Matcher(text, filled).isAlike(pattern, node)) return [];
    filled.set("$0", { nodes: [node], code: text.slice(node.start, node.end) });
    const becomes = place.becomes.replaceAll(HOLES, (hole) => {
      const found = filled.get(hole);
      if (found === undefined) throw new Error(`${place.within} of ${place.file} has nothing for ${hole}.`);
      return found.code;
    });
    return [{ file: place.file, start: node.start, end: node.end, becomes }];
  });
}

function textsIn(text: string, within: Node, { file, find, becomes }: Place): readonly Edit[] {
  const words = find.split(/\s+/).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const wanted = new RegExp(words.join("\\s+"), "g");
  const strings = below(within).filter(({ type, value }) => type === "TemplateElement" || typeof value === "string");
  return strings.flatMap((node) =>
    [...text.slice(node.start, node.end).matchAll(wanted)].map(({ 0: { length }, index }) => {
      const start = node.start + index;
      return { file, start, end: start + length, becomes };
    }),
  );
}

function below(node: Node): readonly Node[] {
  return [node, ...childrenOf(node).flatMap(below)];
}

const HOLES = /\$\$?\w+/g;
const HOLE = /^\$\w+$/;
const HOLE_OF_MANY = /^\$\$\w+$/;

/** In a method, so that it may await, return and have private names. */
function patternOf(code: string): Node {
  const method = (body: string) => `class Pattern { async method() { ${body} } }`;
  const [expression] = parsedFrom(method(`(${code})`));
  if (expression !== undefined && isNode(expression.expression)) return bare(expression.expression);
  const [statement, second] = parsedFrom(method(code));
  if (statement === undefined || second !== undefined) throw new Error(`Not one expression or statement: ${code}`);
  return statement;
}

/** The statements of the method. None where it cannot be parsed. */
function parsedFrom(text: string): readonly Node[] {
  try {
    const method = below(treeOf(text)).find(({ type }) => type === "MethodDefinition");
    const { body } = (method?.value ?? {}) as { readonly body?: Node };
    return (body?.body ?? []) as readonly Node[];
  } catch {
    return [];
  }
}

/** Where they are, how they are written, or what types they have makes no difference. */
const UNCOMPARED = new Set([
  ...["start", "end", "raw", "shorthand"],
  ...["typeAnnotation", "typeArguments", "typeParameters", "returnType", "definite"],
]);

class Matcher {
  readonly #text: string;
  readonly #holes: Map<string, Code>;

  /** @param holes - known ones, and those that are found */
  constructor(text: string, holes: Map<string, Code>) {
    this.#text = text;
    this.#holes = holes;
  }

  isAlike(wanted: unknown, found: unknown): boolean {
    if (!isNode(wanted) || !isNode(found)) return wanted === found;
    const [pattern, node] = [bare(wanted), bare(found)];
    const hole = holeIn(pattern, HOLE);
    if (hole !== null) return this.#fill(hole, [node]);
    const string = stringIn(pattern);
    if (string !== null || pattern.type !== node.type) return string !== null && string === stringIn(node);
    const fields = Object.keys(pattern).filter((field) => !UNCOMPARED.has(field));
    return fields.every((field) => this.#areFieldsAlike(pattern[field], node[field]));
  }

  #areFieldsAlike(wanted: unknown, found: unknown): boolean {
    if (Array.isArray(wanted)) return Array.isArray(found) && this.areAlike(wanted, found);
    if (isNode(wanted) || isNode(found)) return this.isAlike(wanted, found);
    // Of a regular expression, its pattern and flags.
    return wanted === found || (isObject(wanted) && JSON.stringify(wanted) === JSON.stringify(found));
  }

  areAlike(wanted: readonly unknown[], found: readonly unknown[]): boolean {
    const [first, ...others] = wanted;
    if (wanted.length === 0) return found.length === 0;
    const many = isNode(first) ? holeIn(first, HOLE_OF_MANY) : null;
    if (many === null)
      return found.length > 0 && this.isAlike(first, found[0]) && this.areAlike(others, found.slice(1));
    const taken = found.length - others.length;
    if (taken < 0) return false;
    return this.#fill(many, found.slice(0, taken).filter(isNode)) && this.areAlike(others, found.slice(taken));
  }

  /** False if the hole has other code already. */
  #fill(hole: string, nodes: readonly Node[]): boolean {
    const known = this.#holes.get(hole);
    if (known !== undefined) return new Matcher(this.#text, new Map()).areAlike(known.nodes, nodes);
    this.#holes.set(hole, { nodes, code: this.#codeOf(nodes) });
    return true;
  }

  /** Of a parameter without its type. */
  #codeOf([first, ...others]: readonly Node[]): string {
    if (first === undefined) return "";
    if (others.length === 0 && first.type === "Identifier") return String(first.name);
    return this.#text.slice(first.start, (others.at(-1) ?? first).end);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Without brackets and types around it. */
function bare(node: Node): Node {
  const isAround = node.type === "ParenthesizedExpression" || node.type.startsWith("TS");
  return isAround && isNode(node.expression) ? bare(node.expression) : node;
}

/** The hole that a node is, by itself, as a statement or as a field. */
function holeIn(node: Node, hole: RegExp): string | null {
  const { type, name, expression, value, key } = node;
  if (type === "Identifier") return hole.test(String(name)) ? String(name) : null;
  const isStatement = type === "ExpressionStatement" && isNode(expression);
  if (isStatement) return holeIn(expression, hole);
  const isField = type === "Property" && node.shorthand === true && isNode(value) && isNode(key);
  return isField ? holeIn(key, hole) : null;
}
