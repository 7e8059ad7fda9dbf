/** Makes mutants of the places in rooms.ts: each is one small change of a line, and a digest decides which are tried, so that nobody chose the easy ones. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import type { Edit } from "./bugs.ts";
import { ROOMS, type Room } from "./rooms.ts";

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
  return Object.entries(places).flatMap(([file, functions]) => {
    const text = readFileSync(join(root, file), "utf8");
    const changes = changesIn(text, new Set(functions));
    return changes.flatMap((change): readonly Mutant[] => {
      const edit = editOf(file, text, change);
      if (edit === null) return [];
      const name = `${change.place}: ${change.what}`;
      const time = (times.get(name) ?? 0) + 1;
      times.set(name, time);
      return [{ room, name: time === 1 ? name : `${name} (${time})`, edit }];
    });
  });
}

/** The mutant of that name. @throws where no place of the room has it any more */
export function mutantNamed(root: string, room: string, name: string): Mutant {
  const places = ROOMS.find((each) => each.name === room);
  const mutant = places && mutantsOf(root, places).find((each) => each.name === name);
  if (mutant === undefined) throw new Error(`No place of the room ${room} has the mutant ${name}.`);
  return mutant;
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

/** What is read of ESTree. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const OPERATORS: Readonly<Record<string, string>> = {
  ...{ "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===", "+": "-", "-": "+" },
  ...{ "&&": "||", "||": "&&", "??": "&&" },
};
/** Keeps no invariant. */
const LOGS = /^(?:this\.#?)?\w*log(?:ger)?\b/i;
const SQL = /\b(?:select|update|delete from|insert into|where|order by)\b/;
const SQL_OPERATORS: Readonly<Record<string, string>> = {
  ...{ " <= ": " < ", " < ": " <= ", " >= ": " > ", " > ": " >= ", " = ": " <> ", " and ": " or " },
  ...{ " is null": " is not null", " is not null": " is null", "not exists": "exists", "min(": "max(", "max(": "min(" },
};
const SQL_OPERATOR = / <= | < | >= | > | = | and | is null| is not null|not exists|\bmin\(|\bmax\(/g;

function changesIn(text: string, wanted: ReadonlySet<string>): readonly Change[] {
  const changes: Change[] = [];
  const visit = (node: Node, place: string | null) => {
    const here = namesOf(node).find((name) => wanted.has(name)) ?? place;
    if (here !== null) for (const change of changesOf(node, text)) changes.push({ place: here, ...change });
    for (const child of childrenOf(node)) visit(child, here);
  };
  visit(parseAst(text, { lang: "ts" }) as unknown as Node, null);
  return changes;
}

/** What a function, a method or a constant is called. */
function namesOf({ type, id, key }: Node): readonly string[] {
  if (type === "FunctionDeclaration" || type === "VariableDeclarator") return isNode(id) ? [String(id.name)] : [];
  if (type !== "MethodDefinition" && type !== "Property" && type !== "PropertyDefinition") return [];
  if (!isNode(key)) return [];
  return [key.type === "PrivateIdentifier" ? `#${key.name}` : String(key.name)];
}

function childrenOf(node: Node): readonly Node[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode));
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value && !isOfTypes(value);
}

/** Types are gone when the code runs. */
function isOfTypes({ type }: object & { readonly type: unknown }): boolean {
  return typeof type === "string" && type.startsWith("TS") && !/^TS(?:NonNull|As|Satisfies)Expression$/.test(type);
}

function changesOf(node: Node, text: string): readonly Omit<Change, "place">[] {
  const { type, start, end } = node;
  const code = text.slice(start, end);
  const to = (what: string, becomes: string) => ({ what, start, end, becomes });
  if (type === "BinaryExpression" || type === "LogicalExpression") return operatorChanges(node, text);
  if (type === "UnaryExpression" && node.operator === "!") return [to("! dropped", code.slice(1))];
  if (type === "Literal" && typeof node.value === "boolean") return [to(`${code} flipped`, String(!node.value))];
  if (type === "Literal" && typeof node.value === "number") return [to(`${code} plus one`, String(node.value + 1))];
  if (type === "Literal" && typeof node.value === "string") return sqlChanges(start, code);
  if (type === "TemplateElement") return sqlChanges(start, code);
  if (type === "ExpressionStatement" && !LOGS.test(code)) return [to(`dropped ${shortened(code)}`, "{}")];
  if (type === "IfStatement") return conditionChanges(node, text);
  if (type === "CallExpression") return argumentChanges(node, text);
  return [];
}

function operatorChanges(node: Node, text: string): readonly Omit<Change, "place">[] {
  const { left, right, operator } = node;
  const becomes = OPERATORS[String(operator)];
  if (!isNode(left) || !isNode(right) || becomes === undefined) return [];
  const start = text.indexOf(String(operator), left.end);
  if (start < 0 || start >= right.start) return [];
  return [{ what: `${operator} to ${becomes}`, start, end: start + String(operator).length, becomes }];
}

function conditionChanges({ test, start, end }: Node, text: string): readonly Omit<Change, "place">[] {
  if (!isNode(test)) return [];
  const code = shortened(text.slice(test.start, test.end));
  return [
    { what: `if (${code}) never`, start: test.start, end: test.end, becomes: "false" },
    { what: `if (${code}) dropped`, start, end, becomes: "{}" },
  ].slice(0, text.slice(start, end).includes("else") ? 1 : 2);
}

function argumentChanges(node: Node, text: string): readonly Omit<Change, "place">[] {
  const [first, second, third] = node.arguments as readonly Node[];
  if (first === undefined || second === undefined || third !== undefined) return [];
  const isPlain = ({ type }: Node) => type === "Identifier" || type === "MemberExpression";
  if (!isPlain(first) || !isPlain(second)) return [];
  const code = ({ start, end }: Node) => text.slice(start, end);
  const becomes = `${code(second)}, ${code(first)}`;
  return [{ what: `${code(first)} and ${code(second)} swapped`, start: first.start, end: second.end, becomes }];
}

function sqlChanges(start: number, code: string): readonly Omit<Change, "place">[] {
  if (!SQL.test(code)) return [];
  return [...code.matchAll(SQL_OPERATOR)].map(({ 0: operator, index }) => {
    const becomes = SQL_OPERATORS[operator] ?? operator;
    const at = start + index;
    return { what: `${operator.trim()} to ${becomes.trim()} in SQL`, start: at, end: at + operator.length, becomes };
  });
}

function shortened(code: string): string {
  const line = code.replaceAll(/\s+/g, " ");
  return line.length > 40 ? `${line.slice(0, 40)}…` : line;
}

/** The lines of the change, and those before them until the text stands once in the file. Null if it never does. */
function editOf(file: string, text: string, { start, end, becomes }: Change): Edit | null {
  const last = text.indexOf("\n", end);
  const to = last < 0 ? text.length : last;
  for (let from = text.lastIndexOf("\n", start) + 1; from > 0; from = text.lastIndexOf("\n", from - 2) + 1) {
    const find = text.slice(from, to).trim();
    if (text.split(find).length !== 2) continue;
    const at = text.indexOf(find);
    const replace = find.slice(0, start - at) + becomes + find.slice(end - at);
    return { file, find, replace };
  }
  return null;
}
