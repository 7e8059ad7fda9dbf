/** What the sources declare, as the compiler understands them: private fields, exports, fields of options. */
import { dirname, relative, sep } from "node:path";
import ts from "@typescript/typescript6";

export interface Surface {
  /** `Worker` in `src/inbox/worker.ts` has 22 private fields; with its state objects, 40. */
  readonly fields: readonly ClassFields[];
  /** Of all entries: a name that two entries export counts twice, because users find it twice. */
  readonly exports: number;
  /** `ReceiverOptions.store`, sorted. */
  readonly options: readonly string[];
}

export interface ClassFields {
  readonly place: string;
  readonly own: number;
  readonly withState: number;
}

/** The sources of the package at `root`, from its `entries`, as paths from it. */
export function readSurface(root: string, entries: readonly string[]): Surface {
  const { config } = ts.readConfigFile(`${root}/tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, files: [], include: [] }, ts.sys, root);
  const program = ts.createProgram(
    entries.map((entry) => `${root}/${entry}`),
    options,
  );
  const checker = program.getTypeChecker();
  const own = program.getSourceFiles().filter(({ fileName }) => /^(?:src|adapters)\//.test(pathOf(root, fileName)));
  const exported = entries.flatMap((entry) => {
    const source = program.getSourceFile(`${root}/${entry}`);
    const module = source && checker.getSymbolAtLocation(source);
    return module === undefined ? [] : checker.getExportsOfModule(module);
  });
  return {
    fields: own.flatMap((source) => classesOf(source).map((each) => fieldsOf(each, root, checker))),
    exports: exported.length,
    options: optionFields(reachable(exported, new Set(own), checker)),
  };
}

function pathOf(root: string, file: string): string {
  return relative(root, file).split(sep).join("/");
}

function classesOf(source: ts.SourceFile): readonly ts.ClassLikeDeclaration[] {
  const found: ts.ClassLikeDeclaration[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isClassLike(node)) found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/**
 * Private fields are `#name`, static ones left out, and no accessors and methods. A state object is what such a field holds if its type is
 * declared in the same folder and is a class, or an interface of which a field can be assigned; options and seams are neither. Of it all
 * fields count, private or not, and of a type that two fields hold, once. What state objects hold themselves does not count.
 */
function fieldsOf(each: ts.ClassLikeDeclaration, root: string, checker: ts.TypeChecker): ClassFields {
  const file = each.getSourceFile().fileName;
  const own = each.members.filter(isField).filter(isPrivate);
  const held = new Set(own.flatMap((field) => declarationsIn(checker.getTypeAtLocation(field))));
  const state = [...held].filter(
    (type) => dirname(type.getSourceFile().fileName) === dirname(file) && type !== each && isState(type),
  );
  const inState = state.reduce((sum, type) => sum + fieldsIn(type).length, 0);
  const place = `${each.name?.text ?? "(no name)"} in ${pathOf(root, file)}`;
  return { place, own: own.length, withState: own.length + inState };
}

type Holder = ts.ClassLikeDeclaration | ts.InterfaceDeclaration;
type Field = ts.PropertyDeclaration | ts.PropertySignature;

function declarationsIn(type: ts.Type): readonly Holder[] {
  if (type.isUnion()) return type.types.flatMap(declarationsIn);
  const declarations = type.getSymbol()?.declarations ?? [];
  return declarations.filter((node) => ts.isClassLike(node) || ts.isInterfaceDeclaration(node));
}

function isState(type: Holder): boolean {
  return ts.isClassLike(type) || fieldsIn(type).some((field) => !isReadonly(field));
}

function fieldsIn(type: Holder): readonly Field[] {
  return [...type.members].filter(isField);
}

function isField(node: ts.ClassElement | ts.TypeElement): node is Field {
  if (ts.isPropertySignature(node)) return node.type === undefined || !ts.isFunctionTypeNode(node.type);
  return ts.isPropertyDeclaration(node) && !hasModifier(node, ts.SyntaxKind.StaticKeyword);
}

function isReadonly(field: Field): boolean {
  return hasModifier(field, ts.SyntaxKind.ReadonlyKeyword);
}

function hasModifier(node: Field, kind: ts.SyntaxKind): boolean {
  return node.modifiers?.some((modifier) => modifier.kind === kind) ?? false;
}

/** The declarations that the types of exports lead to, in the package's own files; bodies and private members lead nowhere. */
function reachable(
  exported: readonly ts.Symbol[],
  own: ReadonlySet<ts.SourceFile>,
  checker: ts.TypeChecker,
): ReadonlySet<ts.Declaration> {
  const seen = new Set<ts.Declaration>();
  const follow = (symbol: ts.Symbol | undefined) => {
    if (symbol === undefined) return;
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    for (const declaration of target.declarations ?? []) {
      if (seen.has(declaration) || !own.has(declaration.getSourceFile())) continue;
      seen.add(declaration);
      visit(declaration);
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isBlock(node) || isPrivate(node)) return;
    if (ts.isIdentifier(node)) follow(checker.getSymbolAtLocation(node));
    ts.forEachChild(node, visit);
  };
  exported.forEach(follow);
  return seen;
}

function isPrivate(node: ts.Node): boolean {
  return ts.isClassElement(node) && node.name !== undefined && ts.isPrivateIdentifier(node.name);
}

/** Members of each interface and object type called `…Options`, where they are declared; those of an object inside of one count too. */
function optionFields(declarations: ReadonlySet<ts.Declaration>): readonly string[] {
  const fields = new Set<string>();
  for (const declaration of declarations) {
    if (!ts.isInterfaceDeclaration(declaration) && !ts.isTypeAliasDeclaration(declaration)) continue;
    const { text: name } = declaration.name;
    if (!name.endsWith("Options")) continue;
    const visit = (node: ts.Node, path: string): void => {
      const isMember = ts.isPropertySignature(node) || ts.isMethodSignature(node);
      const own = isMember ? `${path}.${node.name.getText()}` : path;
      if (isMember) fields.add(own);
      if (!ts.isFunctionTypeNode(node) && !ts.isMethodSignature(node))
        ts.forEachChild(node, (child) => visit(child, own));
    };
    visit(declaration, name);
  }
  return [...fields].sort();
}
