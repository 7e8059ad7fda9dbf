/** The applications of `npm run prove -- orms`: each an ORM on a store, in a process of its own that dies between effects and commits. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type InboxStore, openInbox } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { fixtures, signedRequest, TEST_SECRET } from "../../../src/tools/testing/index.ts";

// The programme runs from .build/test/proofs/orms; the packages and the applications lie beside its source.
const ROOT = join(import.meta.dirname, "..", "..", "..", "..");
const HOME = join(ROOT, "test", "proofs", "orms");
const PACKAGES = join(HOME, "node_modules");
const APPS = join(HOME, "apps");
const COMPILED = join(PACKAGES, ".apps");

const SENDERS = 8;
const PATIENCE_MS = 60_000;

/** What an application is told, as `apps/serve.ts` reads it. */
export interface Place {
  readonly url: string;
  readonly schema: string;
  readonly path: string;
}

export interface Trial {
  /** A file in `apps/`, without its ending. */
  readonly app: string;
  readonly place: Place;
  readonly events: number;
  /** Of the inbox, to look into it at the end. */
  store(): InboxStore<unknown>;
  /** The `identity` of each row of `orders`. */
  rows(): Promise<readonly string[]>;
}

export interface Outcome {
  readonly acknowledged: number;
  readonly deaths: number;
  /** Identities in more than one row. */
  readonly doubled: number;
  /** Acknowledged events that have no row. */
  readonly missing: number;
  /** Rows of what was rolled back. */
  readonly undone: number;
  /** Dead letters. */
  readonly dead: number;
  /** Neither handled nor dead in time. */
  readonly pending: number;
}

/** Installs the packages when one is missing, compiles the applications and the guide's examples, and returns what is wrong with them. */
export function prepareApps(say: (line: string) => void): readonly string[] {
  const packages = Object.keys(JSON.parse(readFileSync(join(HOME, "package.json"), "utf8")).dependencies);
  if (!packages.every((name) => existsSync(join(PACKAGES, name)))) {
    say("Installing the ORMs …");
    const { status } = spawnSync("npm", ["ci", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"], {
      cwd: HOME,
      stdio: ["ignore", "ignore", "inherit"],
    });
    if (status !== 0) return [`npm ci in test/proofs/orms ended with ${status}`];
  }
  // The drivers are the project's own: one instance of each, and better-sqlite3 is compiled there.
  for (const name of ["pg", "better-sqlite3"]) rmSync(join(PACKAGES, name), { recursive: true, force: true });
  if (!existsSync(join(PACKAGES, "oncehook"))) symlinkSync(ROOT, join(PACKAGES, "oncehook"), "dir");
  const generated = readdirSync(APPS).flatMap((file) => (file.endsWith(".prisma") ? generateClient(file) : []));
  return [...generated, ...compile(APPS, "the applications do not compile"), ...guideProblems()];
}

function compile(project: string, otherwise: string): string[] {
  const tsc = createRequire(import.meta.url)
    .resolve("typescript/package.json")
    .replace("package.json", "bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", project], { encoding: "utf8" });
  return status === 0 ? [] : [`${otherwise}: ${stdout}`];
}

/** The examples of the guide are compiled here, where the ORMs are: each behind the first one of its section. */
function guideProblems(): string[] {
  const folder = join(PACKAGES, ".guide");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const sections = readFileSync(join(ROOT, "docs", "guides", "orms.md"), "utf8").split(/^## /m);
  const programmes = sections.flatMap((section) => {
    const [first = "", ...others] = [...section.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
    return others.map((code) => `${first}${code}`);
  });
  if (programmes.length === 0) return ["the guide has no examples"];
  const files = programmes.map((code, index) => {
    // Generated under a name of its own, since the applications have a client for each store.
    const text = code.replace('"@prisma/client"', '"prisma-client-postgres"');
    writeFileSync(join(folder, `${index}.ts`), text);
    return `${index}.ts`;
  });
  const compilerOptions = { noEmit: true, rootDir: "." };
  const config = { extends: join(APPS, "tsconfig.json"), compilerOptions, include: [], files };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  return compile(folder, "the examples of docs/guides/orms.md do not compile");
}

/** Prisma's command would download an engine first, which `generate` does not use: it is content with any file in its place. */
function generateClient(schema: string): string[] {
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1" };
  const command = [join(PACKAGES, "prisma", "build", "index.js"), "generate", "--schema", join(APPS, schema)];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: HOME, env, encoding: "utf8" });
  return status === 0 ? [] : [`prisma generate ended with ${status} for ${schema}: ${stdout}${stderr}`];
}

/** Delivers events to an application that dies again and again, until each has had its time. */
export async function underDeaths({ app, place, events, store, rows }: Trial): Promise<Outcome> {
  const deaths = mkdtempSync(join(tmpdir(), "oncehook-orms-"));
  const running = new Application(app, JSON.stringify({ ...place, secret: TEST_SECRET, deaths }));
  try {
    const bodies = Array.from({ length: events }, (_, index) =>
      JSON.stringify(fixtures.queued({ messageId: `${app}-${index}` })),
    );
    const acknowledged = bodies.length;
    await Promise.all(Array.from({ length: SENDERS }, () => sendAll(running, bodies)));
    const left = await leftAtTheEnd(store());
    await running.end();
    return { acknowledged, deaths: readdirSync(deaths).length, ...left, ...verdict(await rows(), acknowledged) };
  } finally {
    await running.end();
    rmSync(deaths, { recursive: true, force: true });
  }
}

/** What an application that ends by itself says at its end. */
export function said(app: string, place: Place): unknown {
  const assignment = JSON.stringify({ ...place, secret: TEST_SECRET, deaths: "" });
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(COMPILED, `${app}.js`), assignment], {
    encoding: "utf8",
    timeout: PATIENCE_MS,
  });
  if (status !== 0) throw new Error(`${app} ended with ${status}: ${stderr.slice(-2_000)}`);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

/** What the inbox holds of events once none is pending any more, or nobody waits for that any longer. */
async function leftAtTheEnd(store: InboxStore<unknown>): Promise<Pick<Outcome, "dead" | "pending">> {
  const inbox = await openInbox({ store, logger: silentLogger });
  try {
    for (const until = performance.now() + PATIENCE_MS; ; await sleep(50)) {
      const { dead, pending } = (await inbox.stats()).gauges;
      if (pending === 0 || performance.now() > until) return { dead, pending };
    }
  } finally {
    await inbox.close();
  }
}

function verdict(rows: readonly string[], acknowledged: number): Pick<Outcome, "doubled" | "missing" | "undone"> {
  const counts = new Map<string, number>();
  for (const identity of rows) counts.set(identity, (counts.get(identity) ?? 0) + 1);
  const undone = [...counts.keys()].filter((identity) => identity.startsWith("undone")).length;
  const doubled = [...counts.values()].filter((count) => count > 1).length;
  return { doubled, missing: acknowledged - (counts.size - undone), undone };
}

/** A line for each thing that is not as promised. */
export function flawsOf(
  app: string,
  { acknowledged, deaths, doubled, missing, undone, dead, pending }: Outcome,
): string[] {
  const flaws = Object.entries({ doubled, missing, undone, dead, pending }).filter(([, count]) => count !== 0);
  const found = flaws.map(([flaw, count]) => `${app}: ${count} of ${acknowledged} ${flaw}`);
  return deaths < acknowledged / 4 ? [...found, `${app}: it died ${deaths} times only`] : found;
}

async function sendAll(running: Application, bodies: string[]): Promise<void> {
  for (let body = bodies.shift(); body !== undefined; body = bodies.shift()) {
    for (const until = performance.now() + PATIENCE_MS; !(await running.deliver(body)); await sleep(5)) {
      if (performance.now() > until) throw new Error("An event was not acknowledged in time.");
    }
  }
}

/** A process of an application, started again each time it dies. */
class Application {
  readonly #file: string;
  readonly #assignment: string;
  #child: ChildProcess | null = null;
  #port: Promise<number>;
  #isEnding = false;

  constructor(app: string, assignment: string) {
    this.#file = join(COMPILED, `${app}.js`);
    this.#assignment = assignment;
    this.#port = this.#start();
  }

  /** Whether it was acknowledged. */
  async deliver(body: string): Promise<boolean> {
    const port = await this.#port;
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/`, signedRequest(body));
      await answer.arrayBuffer();
      return answer.ok;
    } catch {
      return false;
    }
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  }

  #start(): Promise<number> {
    const child = spawn(process.execPath, [this.#file, this.#assignment], { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    let errors = "";
    child.stderr.on("data", (chunk) => (errors += chunk));
    const port = new Promise<number>((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", (line) => resolve(Number(line)));
      child.once("exit", (code, signal) => {
        if (signal === "SIGKILL" && !this.#isEnding) this.#port = this.#start();
        reject(new Error(`${this.#file} ended with ${code ?? signal}: ${errors.slice(-2_000)}`));
      });
    });
    port.catch(() => {});
    return port;
  }
}
