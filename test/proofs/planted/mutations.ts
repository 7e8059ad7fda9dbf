/** Makes mutants of the places in rooms.ts: each is one small change of a line, and a digest decides which are tried, so that nobody chose the easy ones. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Edit } from "./places.ts";
import { ROOMS, type Room } from "./rooms.ts";
import {
  childrenOf,
  isFunction,
  isNode,
  localNames,
  type Node,
  namesOf,
  stringIn,
  topLevelNames,
  treeOf,
} from "./tree.ts";

const SEED = "20261127";

export interface Mutant {
  readonly room: string;
  /** The function, and what changed: `isDue: <= to <`. The second change of such a name ends with ` (2)`. */
  readonly name: string;
  readonly edit: Edit;
}

/** As many mutants of a room as it samples, of one function one at most. The same ones for the same sources. */
export function sampledFrom(root: string, room: Room): readonly Mutant[] {
  const ranked = mutantsOf(root, room).map((mutant) => ({ mutant, rank: rankOf(mutant) }));
  const taken = new Map<string, Mutant>();
  for (const { mutant } of ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1))) {
    const place = `${mutant.edit.file} ${mutant.name.split(":", 1)[0]}`;
    if (taken.size < room.sampled && !taken.has(place)) taken.set(place, mutant);
  }
  return [...taken.values()];
}

/** All mutants of a room's places. */
export function mutantsOf(root: string, { name: room, places }: Room): readonly Mutant[] {
  const times = new Map<string, number>();
  return Object.entries(places).flatMap(([file, functions]) =>
    changesIn(readFileSync(join(root, file), "utf8"), new Set(functions)).map(({ place, what, ...change }): Mutant => {
      const name = `${place}: ${what}`;
      const time = (times.get(name) ?? 0) + 1;
      times.set(name, time);
      return { room, name: time === 1 ? name : `${name} (${time})`, edit: { file, ...change } };
    }),
  );
}

/** The mutant of that name. @throws where no place of the room has it any more */
export function mutantNamed(root: string, room: string, name: string): Mutant {
  const places = ROOMS.find((each) => each.name === room);
  const mutant = places && madeOnce(root, places).find((each) => each.name === name);
  if (mutant === undefined) throw new Error(`No place of the room ${room} has the mutant ${name}.`);
  return mutant;
}

/** By root and room: the sources do not change meanwhile. */
const made = new Map<string, readonly Mutant[]>();

function madeOnce(root: string, room: Room): readonly Mutant[] {
  const mutants = made.get(`${root} ${room.name}`) ?? mutantsOf(root, room);
  made.set(`${root} ${room.name}`, mutants);
  return mutants;
}

function rankOf({ room, name }: Mutant): string {
  return hash("sha256", JSON.stringify([SEED, room, name]));
}

interface Change {
  readonly place: string;
  readonly what: string;
  readonly start: number;
  readonly end: number;
  readonly becomes: string;
}

const OPERATORS: Readonly<Record<string, string>> = {
  ...{ "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "+": "-", "-": "+" },
  ...{ "&&": "||", "||": "&&", "??": "&&" },
};
/** The words of a call that writes a log, which keeps no invariant. */
const LOGS = /log(?:ger)?$|^(?:debug|info|warn)$/i;
const SQL = /\b(?:select|update|delete from|insert into|where|order by)\b/;
const SQL_OPERATORS: Readonly<Record<string, string>> = {
  ...{ " <= ": " < ", " < ": " <= ", " >= ": " > ", " > ": " >= ", " = ": " <> ", " and ": " or " },
  ...{ " is null": " is not null", " is not null": " is null", "not exists": "exists", "min(": "max(", "max(": "min(" },
};
const SQL_OPERATOR = / <= | < | >= | > | = | and | is null| is not null|not exists|\bmin\(|\bmax\(/g;

interface Source {
  readonly text: string;
  /** What the file imports or declares outside of its functions, and no function around has another thing of that name. */
  readonly known: ReadonlySet<string>;
}

type Named = Omit<Change, "place">;

/** The changes of a source in the functions, methods and constants of these names. No local variable is in the name of a change. */
export function changesIn(text: string, wanted: ReadonlySet<string>): readonly Change[] {
  const changes: Change[] = [];
  const tree = treeOf(text);
  const top = { text, known: topLevelNames(tree) };
  const visit = (node: Node, place: string | null, around: Source) => {
    const here = namesOf(node, around !== top).find((name) => wanted.has(name)) ?? place;
    const source = isFunction(node) ? { text, known: without(around.known, localNames(node)) } : around;
    if (here !== null) for (const change of changesOf(node, source)) changes.push({ place: here, ...change });
    for (const child of childrenOf(node)) visit(child, here, source);
  };
  visit(tree, null, top);
  return changes;
}

function without(names: ReadonlySet<string>, others: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...names].filter((name) => !others.has(name)));
}

function changesOf(node: Node, source: Source): readonly Named[] {
  const { type, start, end, value } = node;
  const code = source.text.slice(start, end);
  const to = (what: string, becomes: string) => ({ what, start, end, becomes });
  if (type === "BinaryExpression" || type === "LogicalExpression") return operatorChanges(node, source);
  if (type === "UnaryExpression" && node.operator === "!") return [to("! dropped", code.slice(1))];
  if (type === "Literal" && typeof value === "boolean") return [to(`${value} flipped`, String(!value))];
  if (type === "Literal" && typeof value === "number") return [to(`${value} plus one`, String(value + 1))];
  if (type === "Literal" && typeof value === "string") return sqlChanges(start, code);
  if (type === "TemplateElement") return sqlChanges(start, code);
  if (type === "ExpressionStatement" && isNode(node.expression) && !isLog(node.expression, source))
    return [to(`dropped ${deedOf(node.expression, source)}`, "{}")];
  if (type === "IfStatement") return conditionChanges(node, source);
  if (type === "CallExpression") return argumentChanges(node, source);
  return [];
}

function operatorChanges({ left, right, operator }: Node, { text }: Source): readonly Named[] {
  const becomes = OPERATORS[String(operator)];
  if (!isNode(left) || !isNode(right) || becomes === undefined) return [];
  const start = text.indexOf(String(operator), left.end);
  if (start < 0 || start >= right.start) return [];
  return [{ what: `${operator} to ${becomes}`, start, end: start + String(operator).length, becomes }];
}

function conditionChanges({ test, alternate, start, end }: Node, source: Source): readonly Named[] {
  if (!isNode(test)) return [];
  const words = [...new Set(wordsOf(test, source))].slice(0, MOST_WORDS);
  const condition = words.length === 0 ? "if" : `if (${words.join(", ")})`;
  const never = { what: `${condition} never`, start: test.start, end: test.end, becomes: "false" };
  return alternate === null ? [never, { what: `${condition} dropped`, start, end, becomes: "{}" }] : [never];
}

function argumentChanges(node: Node, source: Source): readonly Named[] {
  const [first, second, third] = node.arguments as readonly Node[];
  if (first === undefined || second === undefined || third !== undefined) return [];
  const isPlain = ({ type }: Node) => type === "Identifier" || type === "MemberExpression";
  if (!isPlain(first) || !isPlain(second)) return [];
  const code = ({ start, end }: Node) => source.text.slice(start, end);
  const becomes = `${code(second)}, ${code(first)}`;
  return [{ what: `arguments of ${deedOf(node, source)} swapped`, start: first.start, end: second.end, becomes }];
}

function sqlChanges(start: number, code: string): readonly Named[] {
  if (!SQL.test(code)) return [];
  return [...code.matchAll(SQL_OPERATOR)].map(({ 0: operator, index }) => {
    const becomes = SQL_OPERATORS[operator] ?? operator;
    const at = start + index;
    return { what: `${operator.trim()} to ${becomes.trim()} in SQL`, start: at, end: at + operator.length, becomes };
  });
}

const MOST_WORDS = 3;

/** What names things for more than one function: fields, texts, and what the file imports or declares outside of functions. */
function wordsOf(node: Node, source: Source): readonly string[] {
  const { type, name, object, property } = node;
  const string = stringIn(node);
  if (string !== null) return [string];
  if (type === "PrivateIdentifier") return [`#${name}`];
  if (type === "Identifier") return source.known.has(String(name)) ? [String(name)] : [];
  if (type !== "MemberExpression" || !isNode(object) || !isNode(property) || node.computed === true)
    return childrenOf(node).flatMap((child) => wordsOf(child, source));
  const field = property.type === "Identifier" ? [String(property.name)] : wordsOf(property, source);
  return [...wordsOf(object, source), ...field];
}

/** What is done: a call of something, or a change of it. */
function deedOf(node: Node, source: Source): string {
  const { type, argument, callee, left, operator } = node;
  const last = (target: unknown) => (isNode(target) ? wordsOf(target, source).at(-1) : undefined) ?? "local";
  if (type === "CallExpression") return `${last(callee)}()`;
  if (type === "AssignmentExpression") return `${last(left)} ${operator}`;
  if (type === "UpdateExpression") return `${last(argument)} ${operator}`;
  const [inner] = childrenOf(node);
  return inner === undefined ? type : deedOf(inner, source);
}

function isLog(node: Node, source: Source): boolean {
  const call = node.type === "ChainExpression" ? node.expression : node;
  return isNode(call) && isNode(call.callee) && wordsOf(call.callee, source).some((word) => LOGS.test(word));
}
