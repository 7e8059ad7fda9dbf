/** The syntax tree of a source, as the bundler's parser makes it, and what it calls its parts. */
import { parseAst } from "rolldown/parseAst";

/** What is read of ESTree. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** @throws where the text cannot be parsed */
export function treeOf(text: string): Node {
  return parseAst(text, { lang: "ts" }) as unknown as Node;
}

export function childrenOf(node: Node): readonly Node[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode));
}

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value && !isOfTypes(value);
}

/** Types are gone when the code runs. */
function isOfTypes({ type }: object & { readonly type: unknown }): boolean {
  return typeof type === "string" && type.startsWith("TS") && !/^TS(?:NonNull|As|Satisfies)Expression$/.test(type);
}

/**
 * What a function, a method or a constant is called.
 *
 * @param isInFunction - a variable there has a name only if it is a function
 */
export function namesOf({ type, id, key, init }: Node, isInFunction: boolean): readonly string[] {
  const isVariable = type === "VariableDeclarator" && (!isInFunction || (isNode(init) && isFunction(init)));
  if (type === "FunctionDeclaration" || isVariable) return isNode(id) ? [String(id.name)] : [];
  if (type !== "MethodDefinition" && type !== "Property" && type !== "PropertyDefinition") return [];
  if (!isNode(key)) return [];
  return [key.type === "PrivateIdentifier" ? `#${key.name}` : String(key.name)];
}

export function isFunction({ params }: Node): boolean {
  return Array.isArray(params);
}

/** The parameters of what `namesOf` names, if it is a function. */
export function parametersOf(node: Node): readonly Node[] {
  const found = [node, node.value, node.init].find((each) => isNode(each) && isFunction(each));
  return isNode(found) ? (found.params as readonly Node[]) : [];
}

/** What a file imports or declares outside of its functions. All other names are local, and may change with no word to anybody. */
export function topLevelNames(tree: Node): ReadonlySet<string> {
  const names = new Set<string>();
  for (const statement of tree.body as readonly Node[]) {
    if (statement.type === "ImportDeclaration") addNames(names, childrenOf(statement));
    const declared = isNode(statement.declaration) ? statement.declaration : statement;
    for (const { id } of [declared, ...childrenOf(declared)]) if (isNode(id)) addNames(names, [id]);
  }
  return names;
}

/** The names that a function has of its own: its parameters and variables. None of any other code. */
export function localNames(node: Node): ReadonlySet<string> {
  const names = new Set<string>();
  if (!isFunction(node)) return names;
  addNames(names, node.params as readonly Node[]);
  const addDeclared = (node: Node) => {
    if (node.type === "VariableDeclarator" && isNode(node.id)) addNames(names, [node.id]);
    if (!isFunction(node)) for (const child of childrenOf(node)) addDeclared(child);
  };
  if (isNode(node.body)) addDeclared(node.body);
  return names;
}

function addNames(names: Set<string>, nodes: readonly Node[]): void {
  for (const node of nodes) {
    if (node.type === "Identifier") names.add(String(node.name));
    addNames(names, childrenOf(node));
  }
}

/** A text in quotes of any kind. Null for any other code. */
export function stringIn({ type, value, expressions, quasis }: Node): string | null {
  if (type === "Literal" && typeof value === "string") return value;
  if (type !== "TemplateLiteral" || (expressions as readonly Node[]).length > 0) return null;
  const [{ value: text }] = quasis as readonly [{ readonly value: { readonly cooked: string } }];
  return text.cooked;
}
