/** A Next.js example in a folder of its own, installed from the packed package as a user installs it, and its processes. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const SECRET = "a-webhook-secret-of-32-bytes-xxx";
export const PREVIOUS_SECRET = "the-secret-before-it-of-32-bytes";
export const CRON_SECRET = "a-cron-secret-of-32-bytes-xxxxxx";

/** Asynchronous, because installing takes minutes, in which the test runner wants to hear from its worker. */
const execute = promisify(execFile);
/** From here and, compiled, from `.build/test/next/`. */
export const ROOT = fileURLToPath(
  new URL(import.meta.url.includes("/.build/") ? "../../.." : "../..", import.meta.url),
);

/** Packs oncehook, installs a copy of the example with it, and builds it without any secret. */
export class Application {
  readonly folder = mkdtempSync(join(tmpdir(), "oncehook-next-"));
  readonly #example: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #running = new Set<Server>();

  /** `environment` is what its servers get beside the secrets. */
  constructor(example: "nextjs" | "nextjs-postgres", environment: Readonly<Record<string, string>> = {}) {
    this.#example = example;
    this.#environment = { WEBHOOK_SECRET: SECRET, CRON_SECRET, ...environment };
  }

  async install(): Promise<void> {
    const packing = ["pack", "--silent", "--ignore-scripts", "--pack-destination", this.folder];
    const { stdout } = await execute("npm", packing, { cwd: ROOT });
    cpSync(join(ROOT, "examples", this.#example), this.folder, {
      recursive: true,
      filter: (path) => !["node_modules", ".next", "package-lock.json"].includes(basename(path)),
    });
    const manifest = JSON.parse(readFileSync(join(this.folder, "package.json"), "utf8"));
    manifest.dependencies.oncehook = `file:${stdout.trim()}`;
    writeFileSync(join(this.folder, "package.json"), JSON.stringify(manifest, null, 2));
    await this.run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"]);
  }

  build(): Promise<string> {
    return this.run(process.execPath, [this.#next, "build"]);
  }

  async start(mode: "start" | "dev", environment: NodeJS.ProcessEnv = {}): Promise<Server> {
    const server = this.launch(mode, { ...this.#environment, ...environment });
    await server.ready();
    return server;
  }

  /** As `npm start` does, with nothing but `environment`; 0 is a free port. */
  launch(mode: "start" | "dev", environment: NodeJS.ProcessEnv, port = 0): Server {
    const child = spawn(process.execPath, [this.#next, mode, "-p", String(port), "-H", "127.0.0.1"], {
      cwd: this.folder,
      env: { ...bare(), ...environment },
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own: `next dev` starts a process that a kill of its parent would leave behind.
      detached: true,
    });
    const server = new Server(child);
    this.#running.add(server);
    return server;
  }

  /** Runs a programme in the example's folder and resolves with what it printed. */
  async run(
    command: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const { stdout } = await execute(command, args, { cwd: this.folder, env: { ...bare(), ...environment } });
    return stdout;
  }

  /** Ends what a test has left running. */
  async killAll(): Promise<void> {
    for (const server of this.#running) await server.kill();
    this.#running.clear();
  }

  async dispose(): Promise<void> {
    await this.killAll();
    rmSync(this.folder, { recursive: true, force: true });
  }

  get #next(): string {
    return join(this.folder, "node_modules/next/dist/bin/next");
  }
}

/** What vitest sets would put Next.js in another mode. */
function bare(): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, NEXT_TELEMETRY_DISABLED: "1" } as NodeJS.ProcessEnv;
}

export class Server {
  readonly lines: string[] = [];
  url = "";
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | null>;
  readonly #listening = deferred();

  constructor(child: ChildProcess) {
    this.#child = child;
    // Not at "exit": what it printed last may not have been read then.
    this.#exited = once(child, "close").then(([code]) => code as number | null);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on("line", (line) => this.#read(line));
    }
  }

  /** Resolves once it listens. */
  async ready(): Promise<void> {
    const failed = this.#exited.then((code) => Promise.reject(new Error(`Next.js ended with ${code}.`)));
    await Promise.race([this.#listening.promise, failed]).catch((cause: unknown) => {
      throw new Error(`Next.js is not ready:\n${this.lines.join("\n")}`, { cause });
    });
  }

  /** The lines of handled events. */
  printed(): Record<string, unknown>[] {
    return this.lines.filter((line) => line.startsWith('{"handled"')).map((line) => JSON.parse(line));
  }

  deliver(path: string, content: object | string, secret = SECRET): Promise<Response> {
    const body = typeof content === "string" ? content : JSON.stringify(content);
    const timestamp = String(Date.now());
    const signature = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
    const headers = { "x-service-timestamp": timestamp, "x-service-signature": signature };
    return fetch(`${this.url}${path}`, { method: "POST", body, headers });
  }

  /** Resolves with the exit code. */
  end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    this.#child.kill(signal);
    return this.#exited;
  }

  exited(): Promise<number | null> {
    return this.#exited;
  }

  /** Ends its whole group, whatever is left of it. */
  async kill(): Promise<void> {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      return; // Nobody is left.
    }
    await this.#exited;
  }

  #read(line: string): void {
    this.lines.push(line);
    const [, url] = /Local:\s+(http:\/\/\S+)/.exec(line) ?? [];
    if (url !== undefined) this.url = url;
    if (line.includes("Ready in")) this.#listening.resolve();
  }
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
