/**
 * `npm run reference`: writes `docs/reference/` from the docstrings of the built package, one page for each entry, and one from the help of
 * the command. The gate `reference` compares the pages with what this would write, and asks for a docstring of every export and option.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "@typescript/typescript6";
import type { Command } from "commander";
import { program } from "../src/tools/cli/program.ts";
import { table } from "./docs/table.ts";

const FOLDER = "docs/reference";
const HEAD = "<!-- Written by `npm run reference` from the docstrings. -->";

export interface Reference {
  /** Text by the path of its page from the root. */
  readonly pages: ReadonlyMap<string, string>;
  /** Exports and their members. */
  readonly lines: number;
  /** What has no docstring. */
  readonly undocumented: readonly string[];
}

/** An export with what it stands for, where it only passes another module's on. */
interface Exported {
  readonly name: string;
  readonly symbol: ts.Symbol;
}

/** Reads the declarations of the built package at `root`. */
export function readReference(root: string): Reference {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  };
  const entries = Object.entries(exports).flatMap(([path, target]) =>
    typeof target === "string" ? [] : [{ entry: path.replace(/^\./, "oncehook"), file: join(root, target.types) }],
  );
  const compiled = ts.createProgram(
    entries.map(({ file }) => file),
    { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, strict: true, skipLibCheck: true },
  );
  const writer = new Writer(compiled.getTypeChecker(), join(root, "dist"));
  const pages = new Map<string, string>();
  for (const { entry, file } of entries) {
    const source = compiled.getSourceFile(file);
    if (source === undefined) throw new Error(`${relative(root, file)} is not there: run "npm run build".`);
    const name = entry.replace(/^oncehook\/?/, "").replaceAll("/", "-") || "oncehook";
    pages.set(`${FOLDER}/${name}.md`, writer.page(entry, source));
  }
  return { pages, lines: writer.lines, undocumented: writer.undocumented };
}

/** The same, with the page of the command. */
export function wholeReference(root: string): Reference {
  const read = readReference(root);
  return { ...read, pages: new Map([...read.pages, [`${FOLDER}/command.md`, commandPage()]]) };
}

const SECTIONS = [
  ["Functions", (flags: ts.SymbolFlags) => flags & ts.SymbolFlags.Function],
  ["Classes", (flags: ts.SymbolFlags) => flags & ts.SymbolFlags.Class],
  ["Constants", (flags: ts.SymbolFlags) => flags & (ts.SymbolFlags.Variable | ts.SymbolFlags.ValueModule)],
  ["Types", (flags: ts.SymbolFlags) => flags & ts.SymbolFlags.Type],
] as const;

class Writer {
  readonly #checker: ts.TypeChecker;
  readonly #dist: string;
  readonly undocumented: string[] = [];
  lines = 0;

  constructor(checker: ts.TypeChecker, dist: string) {
    this.#checker = checker;
    this.#dist = dist;
  }

  page(entry: string, source: ts.SourceFile): string {
    const module = this.#checker.getSymbolAtLocation(source);
    if (module === undefined) throw new Error(`${entry} exports nothing.`);
    let left = this.#exportsOf(module);
    const parts = [HEAD, `# ${entry}`];
    for (const [title, belongs] of SECTIONS) {
      const own = left.filter(({ symbol }) => belongs(symbol.flags) !== 0);
      left = left.filter((each) => !own.includes(each));
      if (own.length > 0) parts.push(`## ${title}`, ...own.map((each) => this.#export(entry, each)));
    }
    if (left.length > 0) throw new Error(`${entry}: no section for ${left.map(({ name }) => name).join(", ")}`);
    return `${parts.join("\n\n")}\n`;
  }

  #exportsOf(module: ts.Symbol): readonly Exported[] {
    return this.#checker
      .getExportsOfModule(module)
      .map((symbol) => ({
        name: symbol.name,
        symbol: symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol,
      }))
      .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
  }

  #export(entry: string, { name, symbol }: Exported): string {
    this.lines++;
    const { flags } = symbol;
    const place = `${entry}: ${name}`;
    const parts = [`### ${name}`];
    if (flags & ts.SymbolFlags.Function) {
      parts.push(...this.#function(symbol, place));
    } else {
      const doc = this.#prose(symbol);
      const members = this.#membersOf(symbol);
      const isSelfEvident = (flags & ts.SymbolFlags.ValueModule) !== 0 || isNamedByMembers(name, members);
      if (doc === "" && !isSelfEvident) this.undocumented.push(place);
      const cases = this.#cases(symbol);
      parts.push(cases.length > 0 ? "" : code(this.#declared(symbol, members.length > 0)), doc, ...cases);
      if (members.length > 0) parts.push(this.#table(members, place));
      parts.push(...this.#examples(symbol.getJsDocTags(this.#checker)));
    }
    return parts.filter((part) => part !== "").join("\n\n");
  }

  #function(symbol: ts.Symbol, place: string): readonly string[] {
    const declarations = (symbol.declarations ?? []).filter(ts.isFunctionDeclaration);
    const signatures = declarations.map((each) => this.#checker.getSignatureFromDeclaration(each)).filter(isThere);
    const first = signatures.find((each) => each.getDocumentationComment(this.#checker).length > 0);
    if (first === undefined) this.undocumented.push(place);
    const tags = signatures.flatMap((each) => each.getJsDocTags());
    return [
      code(declarations.map(signatureText).join("\n")),
      ts.displayPartsToString(first?.getDocumentationComment(this.#checker)).trim(),
      facts(tags),
      ...this.#examples(tags),
    ];
  }

  /** Its declaration, without members that the table lists. */
  #declared(symbol: ts.Symbol, isListed: boolean): string {
    const [declaration] = symbol.declarations ?? [];
    if (declaration === undefined) return "";
    if (ts.isInterfaceDeclaration(declaration) || ts.isClassDeclaration(declaration)) {
      const head =
        textOf(declaration)
          .split("{")[0]
          ?.trim()
          .replace(/^(?:export |declare |abstract )+/, "") ?? "";
      const made = this.#isError(symbol) ? constructorsOf(declaration, symbol.name) : [];
      const isPlain = head === `interface ${symbol.name}` || head === `class ${symbol.name}`;
      return [...(isPlain ? [] : [`${head} { … }`]), ...made].join("\n");
    }
    if (ts.isTypeAliasDeclaration(declaration)) {
      const text = textOf(declaration).replace(/^(?:export |declare )+/, "");
      const right = textOf(declaration.type);
      return isListed && right.includes("{") ? `${text.slice(0, text.indexOf("=")).trim()} = { … }` : text;
    }
    if (ts.isVariableDeclaration(declaration)) return `const ${textOf(declaration)}`;
    return "";
  }

  #isError(symbol: ts.Symbol): boolean {
    return this.#checker.getDeclaredTypeOfSymbol(symbol).getProperty("stack") !== undefined;
  }

  /** The cases of a union that have docstrings, such as error codes. */
  #cases(symbol: ts.Symbol): readonly string[] {
    const declaration = symbol.declarations?.find(ts.isTypeAliasDeclaration);
    if (declaration === undefined || !ts.isUnionTypeNode(declaration.type)) return [];
    const { types } = declaration.type;
    // The docstring of a case stands before its "|".
    const rows = types.map(
      (node, at) => [textOf(node), commentBefore(node, types[at - 1]?.end ?? declaration.type.pos)] as const,
    );
    if (rows.every(([, doc]) => doc === "")) return [];
    const name = symbol.name;
    // A case that is an object has members that explain it.
    for (const [text, doc] of rows) if (doc === "" && !text.includes("{")) this.undocumented.push(`${name}: ${text}`);
    this.lines += rows.length;
    return [
      table(
        ["value", "meaning"],
        rows.map(([text, doc]) => [inCode(text), doc]),
      ),
    ];
  }

  #membersOf(symbol: ts.Symbol): readonly ts.Symbol[] {
    if (symbol.flags & ts.SymbolFlags.ValueModule) return this.#exportsOf(symbol).map((each) => each.symbol);
    if ((symbol.flags & ts.SymbolFlags.Type) === 0) return [];
    const declaration = symbol.declarations?.[0];
    if (declaration !== undefined && ts.isTypeAliasDeclaration(declaration) && !isOfMembers(declaration.type))
      return [];
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    if (type.getCallSignatures().length > 0) return [];
    // Of a union that has a name for each case, the members of all cases.
    const cases = type.isUnion() ? type.types : [type];
    if (!cases.every((each) => each.flags & ts.TypeFlags.Object || each.isIntersection())) return [];
    const members = cases
      .flatMap((each) => this.#checker.getPropertiesOfType(each))
      .filter((each) => this.#isOwn(each));
    const documented = members.filter((member) => this.#prose(member) !== "");
    return [...new Map([...members, ...documented].map((member) => [member.name, member])).values()];
  }

  /** Not private, and not of `Error` or of another library. */
  #isOwn(member: ts.Symbol): boolean {
    const [declaration] = member.declarations ?? [];
    if (declaration === undefined || !declaration.getSourceFile().fileName.startsWith(this.#dist)) return false;
    const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
    const name = ts.getNameOfDeclaration(declaration);
    const isPrivate = name !== undefined && ts.isPrivateIdentifier(name);
    return (ts.getCombinedModifierFlags(declaration) & hidden) === 0 && !isPrivate;
  }

  #table(members: readonly ts.Symbol[], place: string): string {
    const rows = members.flatMap((member) => this.#rows(member, "", place));
    return table(["member", "type", "meaning"], rows);
  }

  /** The rows of a member, and of those in an object that it takes. */
  #rows(member: ts.Symbol, path: string, place: string): readonly (readonly string[])[] {
    this.lines++;
    const [declaration] = member.declarations ?? [];
    const name = `${path}${nameOf(member)}`;
    const isOptional = (member.flags & ts.SymbolFlags.Optional) !== 0;
    const doc = [this.#prose(member), facts(member.getJsDocTags(this.#checker), ". ")]
      .filter((each) => each !== "")
      .join(" ");
    if (/Options$/.test(place)) {
      if (doc === "") this.undocumented.push(`${place}.${name}`);
      else if (isOptional && typeText(member) === "number" && !/default/i.test(doc))
        this.undocumented.push(`${place}.${name}, of which it says no default`);
    }
    const inner = declaration !== undefined && ts.isPropertySignature(declaration) ? declaration.type : undefined;
    const isObject =
      inner !== undefined && ts.isTypeLiteralNode(inner) && inner.members.some((each) => hasComment(each));
    const type = isObject ? "object" : typeText(member);
    const row = [inCode(`${name}${isOptional ? "?" : ""}`), inCode(type), doc];
    if (!isObject) return [row];
    const nested = this.#checker.getPropertiesOfType(this.#checker.getTypeFromTypeNode(inner));
    return [row, ...nested.flatMap((each) => this.#rows(each, `${name}.`, place))];
  }

  #prose(symbol: ts.Symbol): string {
    return ts.displayPartsToString(symbol.getDocumentationComment(this.#checker)).trim();
  }

  #examples(tags: readonly ts.JSDocTagInfo[]): readonly string[] {
    return tags.filter(({ name }) => name === "example").map(({ text }) => code(ts.displayPartsToString(text).trim()));
  }
}

/** By name, but what most readers come for first. */
function sortKey({ name }: Exported): string {
  return name.startsWith("create") ? ` ${name}` : name;
}

/** What a function takes, returns and throws. */
function facts(tags: readonly ts.JSDocTagInfo[], between = "\n"): string {
  const lines = tags.flatMap(({ name, text: parts }) => {
    const text = ts.displayPartsToString(parts).trim();
    if (text === "") return [];
    if (name === "param" || name === "typeParam") {
      const [, of = "", meaning = ""] = /^(\S+)\s*(?:-\s*)?([\s\S]*)$/.exec(text) ?? [];
      return [`\`${of}\`: ${meaning}`];
    }
    if (name === "returns") return [`Returns ${text}`];
    return name === "throws" ? [`Throws ${text}`] : [];
  });
  return [...new Set(lines)].map((each) => (between === "\n" ? `- ${each.replace(/\s+/g, " ")}` : each)).join(between);
}

/** Its members have docstrings, and its name says whose options they are. */
function isNamedByMembers(name: string, members: readonly ts.Symbol[]): boolean {
  return members.length > 0 && /(?:Options|Context|Notice|Report|Record|Query|Result|Counts|Info|Shape)$/.test(name);
}

function isThere<T>(value: T | undefined): value is T {
  return value !== undefined;
}

/** A type that is one object, whose members can be listed. */
function isOfMembers(node: ts.TypeNode): boolean {
  return ts.isTypeLiteralNode(node) || ts.isTypeReferenceNode(node) || ts.isIntersectionTypeNode(node);
}

/** Its source on one line, without comments and without the numbers that the bundler appends to names. */
function textOf(node: ts.Node): string {
  const bare = node
    .getText()
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\b(\w+)\$\d+\b/g, "$1");
  return bare.replace(/\s+/g, " ").replace(/;$/, "").replace(/= \| /, "= ").trim();
}

function signatureText(declaration: ts.SignatureDeclaration): string {
  return textOf(declaration).replace(/^(?:export |declare |async )+/, "");
}

function constructorsOf(declaration: ts.ClassDeclaration | ts.InterfaceDeclaration, name: string): readonly string[] {
  if (!ts.isClassDeclaration(declaration)) return [];
  return declaration.members
    .filter(ts.isConstructorDeclaration)
    .map((each) => textOf(each).replace(/^constructor/, `new ${name}`));
}

/** As it was declared, not as the compiler would write it out. */
function typeText(member: ts.Symbol): string {
  const declarations = member.declarations ?? [];
  const texts = declarations.flatMap((declaration) => {
    if (ts.isPropertySignature(declaration) || ts.isPropertyDeclaration(declaration))
      return declaration.type === undefined ? [] : [textOf(declaration.type)];
    if (
      ts.isMethodSignature(declaration) ||
      ts.isMethodDeclaration(declaration) ||
      ts.isFunctionDeclaration(declaration)
    )
      return [signatureText(declaration).replace(/^(?:readonly |function )?[^(<]*/, "")];
    if (ts.isGetAccessorDeclaration(declaration) && declaration.type !== undefined) return [textOf(declaration.type)];
    if (ts.isVariableDeclaration(declaration)) return [textOf(declaration).replace(/^\w+: /, "")];
    return [];
  });
  return texts.join(" & ");
}

function nameOf({ name, declarations = [] }: ts.Symbol): string {
  const [declaration] = declarations;
  const named = declaration === undefined ? undefined : ts.getNameOfDeclaration(declaration);
  const text = named?.getText() ?? name;
  const isMethod =
    declaration !== undefined && (ts.isMethodSignature(declaration) || ts.isMethodDeclaration(declaration));
  return isMethod ? `${text}()` : text;
}

function hasComment(node: ts.Node): boolean {
  return commentBefore(node) !== "";
}

/** The docstring right before a node that is not a declaration. @param pos - where the search begins */
function commentBefore(node: ts.Node, pos = node.pos): string {
  const { text } = node.getSourceFile();
  const last = ts.getLeadingCommentRanges(text, pos)?.at(-1);
  if (last === undefined) return "";
  return text
    .slice(last.pos, last.end)
    .replace(/^\/\*\*|\*\/$|^\s*\* ?/gm, "")
    .trim();
}

function code(text: string): string {
  return text === "" ? "" : `\`\`\`ts\n${text}\n\`\`\``;
}

function inCode(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

/** The page of the command: every command with its arguments and flags. */
export function commandPage(): string {
  const parts = program().commands.flatMap((command) => sectionsOf(command, "oncehook"));
  return `${[HEAD, "# The command", "[The command line](../cli.md) has examples and exit codes.", ...parts].join("\n\n")}\n`;
}

function sectionsOf(command: Command, parent: string): readonly string[] {
  const name = `${parent} ${command.name()}`;
  const help = command.createHelp();
  const rows = [
    ...command.registeredArguments.map((one) => [one.name(), help.argumentDescription(one)] as const),
    ...command.options.map((option) => [option.flags, help.optionDescription(option)] as const),
  ].map(([term, meaning]) => [inCode(term), meaning]);
  const sentence = command.description();
  const own = [
    `## ${name}`,
    `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`,
    code(`${name} ${command.usage()}`).replace("ts", "sh"),
  ];
  const flags = rows.length > 0 ? [table(["argument or flag", "does"], rows)] : [];
  return [...own, ...flags, ...command.commands.flatMap((each) => sectionsOf(each, name))];
}

/** Differences between what is written and what would be. */
export function outdated(root: string, { pages }: Reference): readonly string[] {
  const there = readdirSync(join(root, FOLDER)).filter((name) => name !== "README.md");
  const strange = there.map((name) => `${FOLDER}/${name}`).filter((path) => !pages.has(path));
  const changed = [...pages].filter(([path, text]) => {
    try {
      return readFileSync(join(root, path), "utf8") !== text;
    } catch {
      return true;
    }
  });
  return [
    ...strange.map((path) => `${path}: no entry of this name`),
    ...changed.map(([path]) => `${path} is outdated: run "npm run reference"`),
  ];
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const root = process.cwd();
  const reference = wholeReference(root);
  mkdirSync(join(root, FOLDER), { recursive: true });
  for (const name of readdirSync(join(root, FOLDER))) if (name !== "README.md") rmSync(join(root, FOLDER, name));
  for (const [path, text] of reference.pages) writeFileSync(join(root, path), text);
  for (const place of reference.undocumented) console.log(`no docstring: ${place}`);
  console.log(`${FOLDER}: ${reference.pages.size} pages, ${reference.lines} lines`);
}
