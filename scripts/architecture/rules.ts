/** The rules of docs/architecture.md that a program can check, each with the number of things it looked at. */
import { findCycle } from "./cycles.ts";
import { linesOf, onServer, PAGE, type Project, packageOf, type SourceFile, shipped, targetOf } from "./project.ts";

export interface Verdict {
  /** What was looked at; a rule that looked at nothing has not passed. */
  readonly count: number;
  readonly unit: string;
  readonly problems: readonly string[];
  /** Printed, but nothing fails for them. */
  readonly warnings?: readonly string[];
}

export interface Rule {
  readonly name: string;
  check(project: Project): Verdict;
}

/**
 * Lowest first. A file imports from a lower level or from its own room; rooms on one level do not import each other. The longest name that
 * fits a file is its room.
 */
const LEVELS: readonly (readonly string[])[] = [
  ["src/errors.ts"],
  ["src/internal/"],
  ["src/inbox/"],
  ["src/sources/"],
  ["src/sources/messaging/"],
  ["src/sources/index.ts", "src/receiver/", "src/messaging/emulator/", "src/messaging/client/"],
  ["src/messaging/rotation/"],
  ["src/stores/", "src/create.ts"],
  ["src/index.ts"],
  ["src/tools/inspector/"],
  ["src/tools/testing/", "src/tools/forward/", "src/tools/telemetry/", "adapters/"],
  ["test/contracts/"],
  ["src/tools/cli/"],
];

/** Dependencies with more than one home: what two sides of the wire check, each checks by itself. */
const HOMES: Readonly<Record<string, readonly string[]>> = {
  zod: ["src/sources/messaging/", "src/messaging/emulator/", "src/messaging/client/"],
};

/** Who may know the messaging service: the rest speaks of entries, lanes and identities. A folder, or a file. */
const KNOWS_SERVICE: readonly string[] = [
  "src/sources/messaging/",
  // What users see of it, and what makes it the default.
  "src/index.ts",
  "src/create.ts",
  // Signs alerts as the service signs.
  "src/receiver/post-alert.ts",
  "src/sources/index.ts",
  // The other side of the wire, and its secrets.
  "src/messaging/client/",
  "src/messaging/emulator/",
  "src/messaging/rotation/",
  "src/stores/sealed-secrets.ts",
  "src/stores/sqlite/secrets.ts",
  "src/stores/postgres/secrets.ts",
  // Events of the service for tests, and events passed on.
  "src/tools/testing/",
  "test/contracts/",
  "src/tools/forward/",
  // Commands about it.
  "src/tools/cli/doctor/",
  "src/tools/cli/verify/",
  "src/tools/cli/listen-run.ts",
  "src/tools/cli/secrets.ts",
  "src/tools/cli/send.ts",
  "src/tools/cli/trigger-events.ts",
  // Which events end a message.
  "src/tools/cli/inbox/reads.ts",
  "src/tools/inspector/drawing.ts",
  "src/tools/telemetry/measuring.ts",
];

/** What a source is, in `src/sources/`. Beside it are the providers, which the core does not know. */
const SEAM =
  /^src\/sources\/(?:define-source|definition|filter|headers|hmac-key|keyring-provider|keys|secret|source)\.ts$/;
const CORE = /^src\/(?:inbox|receiver|stores)\//;

/** The client and the emulator are the other side of the wire. */
const NO_INBOX: readonly string[] = ["src/messaging/client/", "src/messaging/emulator/"];

/** The only room that speaks to a terminal. */
const TERMINAL = "src/tools/cli/";

const CLOCK = "src/internal/clock.ts";
/** Lines. A file is what one person opens to change one thing: long ones are looked at, only very long ones fail. */
const LONG_FILE = 500;
const LONGEST_FILE = 800;
/** A shorter file with a single importer may belong into it. */
const SHORT_FILE = 40;
/** Tables and SQL: they grow by rows, and nobody reads them from top to bottom. */
const TABLES: readonly string[] = [
  "src/stores/sqlite/schema.ts",
  "src/stores/postgres/migrate.ts",
  "test/proofs/planted/bugs.ts",
];

const direction: Rule = {
  name: "imports lead to a lower level or stay in their room",
  check(project) {
    const problems: string[] = [];
    let count = 0;
    for (const file of shipped(project)) {
      const own = roomOf(file.path);
      if (own === undefined) problems.push(`${file.path} lies in no room of the map`);
      for (const { specifier } of file.imports) {
        const target = targetOf(file, specifier);
        if (target === undefined) continue;
        count += 1;
        const other = roomOf(target);
        if (other === undefined) problems.push(`${file.path} imports ${target}, which lies in no room`);
        else if (own === undefined || own.room === other.room || other.level < own.level) continue;
        else if (other.level === own.level) problems.push(`${file.path} imports ${target} from a room beside its own`);
        else problems.push(`${file.path} imports ${target} from a higher level`);
      }
    }
    return { count, unit: "imports", problems };
  },
};

const serviceAlone: Rule = {
  name: "only the service's own rooms know the messaging service, and they no inbox",
  check(project) {
    const problems: string[] = [];
    let count = 0;
    const isIn = (rooms: readonly string[], path: string) =>
      rooms.some((room) => path === room || (room.endsWith("/") && path.startsWith(room)));
    for (const file of shipped(project)) {
      for (const { specifier } of file.imports) {
        const target = targetOf(file, specifier);
        if (target === undefined) continue;
        count += 1;
        if (target.startsWith("src/sources/messaging/") && !isIn(KNOWS_SERVICE, file.path))
          problems.push(`${file.path} imports ${target}, which is about the messaging service`);
        if (CORE.test(target) && isIn(NO_INBOX, file.path))
          problems.push(`${file.path} imports ${target} from the other side of the wire`);
      }
    }
    return { count, unit: "imports", problems };
  },
};

const noProvider: Rule = {
  name: "inbox, receiver and stores know no provider",
  check(project) {
    const targets = shipped(project)
      .filter(({ path }) => CORE.test(path))
      .flatMap((file) => file.imports.map(({ specifier }) => ({ file, target: targetOf(file, specifier) ?? "" })))
      .filter(({ target }) => /^src\/sources\/[^/]+$/.test(target));
    const problems = targets.filter(({ target }) => !SEAM.test(target));
    return {
      count: targets.length,
      unit: "imports",
      problems: problems.map(({ file, target }) => `${file.path} imports ${target}, which is about a provider`),
    };
  },
};

const noCycles: Rule = {
  name: "no file imports itself in a circle",
  check(project) {
    const files = shipped(project);
    const graph = new Map(
      files.map((file) => [file.path, file.imports.flatMap(({ specifier }) => targetOf(file, specifier) ?? [])]),
    );
    const cycle = findCycle(graph);
    return { count: files.length, unit: "files", problems: cycle === undefined ? [] : [cycle.join(" -> ")] };
  },
};

const onePlace: Rule = {
  name: "a framework or driver appears in one file, a dependency in its rooms",
  check(project) {
    const { devDependencies = {}, peerDependencies = {} } = project.manifest;
    const places = new Map<string, Set<string>>();
    for (const file of shipped(project)) {
      for (const { specifier } of file.imports) {
        const name = packageOf(specifier) ?? "";
        const place =
          name in peerDependencies ? file.path : name in devDependencies ? homeOf(name, file.path) : undefined;
        if (place !== undefined) places.set(name, (places.get(name) ?? new Set()).add(place));
      }
    }
    const problems = [...places]
      .filter(([, found]) => found.size > 1)
      .map(([name, found]) => `${name} is in ${found.size} places: ${[...found].join(", ")}`);
    return { count: places.size, unit: "packages", problems };
  },
};

/** What the package contains of others is fixed by its lock file: a release follows their security fixes. */
const declared: Rule = {
  name: "every imported package is bundled from an exact version or an optional peer",
  check(project) {
    const {
      dependencies = {},
      devDependencies = {},
      peerDependencies = {},
      peerDependenciesMeta = {},
    } = project.manifest;
    const problems = [
      ...Object.keys(dependencies).map((name) => `${name} is a dependency of its users`),
      ...Object.keys(peerDependencies)
        .filter((name) => peerDependenciesMeta[name]?.optional !== true)
        .map((name) => `peer ${name} is not marked optional`),
    ];
    let count = 0;
    for (const file of onServer(project)) {
      for (const { specifier } of file.imports) {
        const name = packageOf(specifier);
        if (name === undefined) continue;
        count += 1;
        if (name in peerDependencies) continue;
        const version = devDependencies[name];
        if (version === undefined) problems.push(`${file.path} imports ${name}, which is not declared`);
        else if (!/^\d/.test(version))
          problems.push(`${file.path} imports ${name}, whose version ${version} is not exact`);
      }
    }
    return { count, unit: "imports", problems };
  },
};

const oneClock: Rule = {
  name: "time and randomness come from the clock",
  check(project) {
    const calls =
      /(?<![.\w])(?:globalThis\.)?(?:setTimeout|setInterval|Date\.now|Math\.random|performance\.now|AbortSignal\.timeout|process\.hrtime)\b|\bnew Date\(\s*\)/g;
    const files = onServer(project).filter(({ path }) => path !== CLOCK);
    const problems = files.flatMap((file) => [
      ...[...file.bare.matchAll(calls)]
        .filter((match) => !isMember(file.bare, match.index, match[0]))
        .map((match) => found(file, match)),
      ...timerImports(file),
    ]);
    return { count: files.length, unit: "files", problems };
  },
};

const noConsole: Rule = {
  name: "nothing prints or ends the process",
  check: (project) =>
    absent(
      shipped(project).filter(({ path }) => !path.startsWith(TERMINAL)),
      /\bconsole\s*\.|\bprocess\s*\.\s*(?:exit|abort)\b/g,
    ),
};

/** It is empty in a CommonJS bundle, and a syntax error where Jest has compiled the file. The command is neither bundled nor tested so. */
const noImportMeta: Rule = {
  name: "no import.meta outside of the command",
  check: (project) =>
    absent(
      onServer(project).filter(({ path }) => !path.startsWith(TERMINAL)),
      /\bimport\s*\.\s*meta\b/g,
    ),
};

/** `scripts/page.mjs` refuses server code in the bundle too; this rule names the import. */
const pageAlone: Rule = {
  name: "the inspector's page runs no server code, and the server no code of the page",
  check(project) {
    const problems: string[] = [];
    let count = 0;
    for (const file of shipped(project)) {
      const isPage = file.path.startsWith(PAGE);
      for (const { specifier, typeOnly } of file.imports) {
        const target = targetOf(file, specifier);
        const isFromPage = target?.startsWith(PAGE) ?? false;
        if (!isPage && !isFromPage) continue;
        count += 1;
        const isLibrary = packageOf(specifier) === "preact";
        if (isPage !== isFromPage && !(isPage && (isLibrary || typeOnly)))
          problems.push(`${file.path} imports ${target ?? specifier}`);
      }
    }
    return { count, unit: "imports", problems };
  },
};

const noEscapes: Rule = {
  name: "no any, no silenced checks",
  check(project) {
    const files = shipped(project);
    const verdict = absent(files, /(?<=[:<,|&]\s*|\bas\s+)any\b(?!\s*[:(])/g);
    const silenced = files.flatMap((file) =>
      [...file.text.matchAll(/@ts-(?:ignore|nocheck|expect-error)|biome-ignore-all/g)].map((match) =>
        found(file, match),
      ),
    );
    return { ...verdict, problems: [...verdict.problems, ...silenced] };
  },
};

const entriesInReference: Rule = {
  name: "every entry is in the reference",
  check(project) {
    const entries = entriesOf(project);
    const problems = entries
      .filter((entry) => !project.reference.includes(`\`${entry}\``))
      .map((entry) => `${entry} is not in docs/reference/README.md`);
    return { count: entries.length, unit: "entries", problems };
  },
};

const entriesExist: Rule = {
  name: "every entry has a source",
  check(project) {
    const entries = entriesOf(project);
    const paths = new Set(project.files.map(({ path }) => path));
    const missing = entries
      .filter((entry) => !paths.has(project.entries[entry] ?? ""))
      .map((entry) => `${entry} leads to ${project.entries[entry] ?? "nothing"}, which is missing`);
    const strays = Object.keys(project.entries)
      .filter((entry) => !entries.includes(entry))
      .map((entry) => `${entry} has a source, but package.json does not export it`);
    return { count: entries.length, unit: "entries", problems: [...missing, ...strays] };
  },
};

const examplesOutside: Rule = {
  name: "examples import the package by its name",
  check(project) {
    const files = project.files.filter(({ path }) => path.startsWith("examples/"));
    const problems = files.flatMap((file) =>
      file.imports
        .map(({ specifier }) => targetOf(file, specifier))
        .filter((target) => target !== undefined && !target.startsWith("examples/"))
        .map((target) => `${file.path} imports ${target}`),
    );
    return { count: files.length, unit: "files", problems };
  },
};

const shortFiles: Rule = {
  name: `no file is longer than ${LONGEST_FILE} lines`,
  check(project) {
    const files = project.files
      .filter(({ path }) => !TABLES.some((table) => path.startsWith(table)))
      .map((file) => ({ path: file.path, lines: linesOf(file) }));
    const between = (least: number, most: number) =>
      files
        .filter(({ lines }) => lines > least && lines <= most)
        .map(({ path, lines }) => `${path} has ${lines} lines`);
    return {
      count: files.length,
      unit: "files",
      problems: between(LONGEST_FILE, Number.POSITIVE_INFINITY),
      warnings: between(LONG_FILE, LONGEST_FILE),
    };
  },
};

/** Tests of the core get the names of its files when those are written anew. */
const CORE_TESTS = /^test\/(?:inbox|internal|receiver|sources|stores)\//;
/** Folders of tests that are named otherwise than what they test. */
const TESTED_FOLDERS = [
  [/^next\//, "examples/"],
  [/\/browser\//, "/page/"],
] as const;

/** `test/tools/cli/listen.here.test.ts` is about `src/tools/cli/listen.ts`: the name up to its first dot is that of a file or folder. */
const namedTests: Rule = {
  name: "a test file is named after what it tests, or in docs/reliability.md",
  check({ files, pages, promises }) {
    const isTest = (path: string) => /\.test\.tsx?$/.test(path);
    const sources = [...files.map(({ path }) => path).filter((path) => !isTest(path)), ...pages];
    const names = new Set(sources.flatMap((path) => [withoutEndings(path), ...foldersOf(path)]));
    const tests = files.map(({ path }) => path).filter(isTest);
    const nameless = tests.filter((test) => {
      const tested = TESTED_FOLDERS.reduce((path, [from, to]) => path.replace(from, to), test.slice("test/".length));
      const name = withoutEndings(tested);
      return !promises.includes(test) && ![`src/${name}`, name, `test/${name}`].some((path) => names.has(path));
    });
    const [ofCore, others] = [true, false].map((core) => nameless.filter((test) => CORE_TESTS.test(test) === core));
    return {
      count: tests.length,
      unit: "files",
      problems: (others ?? []).map((test) => `${test} is named after no file, folder or page`),
      warnings: [`${ofCore?.length} test files of the core are not named after its files yet`],
    };
  },
};

function withoutEndings(path: string): string {
  return path.replace(/\.[^/]*$/, "");
}

/** Each folder above a file. */
function foldersOf(path: string): string[] {
  return [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index));
}

/** The opposite of `shortFiles`. It only warns: some of them are children that a test starts, or stand for a reason of their own. */
const wholeFiles: Rule = {
  name: `files under ${SHORT_FILE} lines have several importers`,
  check(project) {
    const importers = new Map<string, Set<string>>();
    for (const file of project.files) {
      for (const { specifier } of file.imports) {
        const target = targetOf(file, specifier);
        if (target !== undefined) importers.set(target, (importers.get(target) ?? new Set()).add(file.path));
      }
    }
    const pieces = project.files.flatMap((file) => {
      const { path } = file;
      const [only, ...others] = importers.get(path) ?? [];
      if (only === undefined || others.length > 0 || linesOf(file) >= SHORT_FILE || isEntry(path)) return [];
      return [`${path} has ${linesOf(file)} lines, and only ${only} imports it`];
    });
    const total = pieces.length === 0 ? [] : [`${pieces.length} files are short and have one importer`];
    return { count: project.files.length, unit: "files", problems: [], warnings: [...total, ...pieces] };
  },
};

const opening: Rule = {
  name: "every file opens with what it is for",
  check(project) {
    const files = project.files.filter(({ path }) => !path.startsWith("test/"));
    const problems = files
      .filter(({ text }) => !/^(?:#!.*\n)?\s*(?:\/\/ \S|\/\*\*?\s)/.test(text))
      .map(({ path }) => `${path} has no opening comment`);
    return { count: files.length, unit: "files", problems };
  },
};

export const RULES: readonly Rule[] = [
  direction,
  serviceAlone,
  noProvider,
  noCycles,
  onePlace,
  declared,
  oneClock,
  noConsole,
  noImportMeta,
  pageAlone,
  noEscapes,
  entriesExist,
  entriesInReference,
  examplesOutside,
  shortFiles,
  wholeFiles,
  namedTests,
  opening,
];

/** An index or an entry is opened for what it lists. */
function isEntry(path: string): boolean {
  return path.endsWith("/index.ts") || path.startsWith("bench/") || path.startsWith("examples/");
}

/** The names a user imports: `oncehook`, `oncehook/express`. */
export function entriesOf(project: Pick<Project, "manifest">): string[] {
  return Object.entries(project.manifest.exports).flatMap(([entry, target]) =>
    typeof target === "string" ? [] : [`oncehook${entry.slice(1)}`],
  );
}

function roomOf(path: string): { room: string; level: number } | undefined {
  return LEVELS.flatMap((rooms, level) => rooms.map((room) => ({ room, level })))
    .filter(({ room }) => path === room || (room.endsWith("/") && path.startsWith(room)))
    .toSorted((one, other) => other.room.length - one.room.length)[0];
}

/** The room of a file; for a dependency with several homes, all of them count as one. */
function homeOf(name: string, path: string): string {
  const room = roomOf(path)?.room ?? path;
  const homes = HOMES[name] ?? [];
  return homes.includes(room) ? homes.join(" and ") : room;
}

function absent(files: readonly SourceFile[], pattern: RegExp): Verdict {
  const problems = files.flatMap((file) => [...file.bare.matchAll(pattern)].map((match) => found(file, match)));
  return { count: files.length, unit: "files", problems };
}

function found(file: SourceFile, match: RegExpExecArray): string {
  return `${file.path}:${file.text.slice(0, match.index).split("\n").length} ${match[0].trim()}`;
}

/** Imports of timers and clocks; setImmediate only lets others go first, and tells no time. */
function timerImports(file: SourceFile): string[] {
  return [...file.text.matchAll(/^import\s+([^;]*?)\s*from\s*["'](?:node:)?(timers(?:\/promises)?|perf_hooks)["']/gm)]
    .filter(([, names]) => !/^\{\s*setImmediate(?:\s+as\s+\w+)?,?\s*\}$/.test(names ?? ""))
    .map(([, names, module]) => `${file.path} imports ${names} from node:${module}`);
}

/** Whether a name is the declaration of a member (`setTimeout(callback, ms) {`) or a type's property, not a use of the global. */
function isMember(bare: string, at: number, name: string): boolean {
  if (!/(?:^|[{};,\n])\s*(?:(?:async|readonly|static|override|public)\s+)*$/.test(bare.slice(Math.max(0, at - 80), at)))
    return false;
  const rest = bare.slice(at + name.length);
  if (/^\??\s*:/.test(rest)) return true;
  if (!rest.startsWith("(")) return false;
  let depth = 0;
  for (let i = 0; i < rest.length; i++) {
    if (rest[i] === "(") depth += 1;
    if (rest[i] === ")") depth -= 1;
    if (depth === 0) return /^\s*[:{]/.test(rest.slice(i + 1));
  }
  return false;
}
