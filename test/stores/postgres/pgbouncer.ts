/** PgBouncer, as a distribution brings it, in front of a server; it keeps no prepared statements. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../support/free-port.ts";

const version = /PgBouncer (\d+)\.(\d+)/.exec(spawnSync("pgbouncer", ["--version"], { encoding: "utf8" }).stdout ?? "");
/** Why PgBouncer cannot be run; null where it can. */
export const noPgBouncer: string | null = version === null ? "pgbouncer is not installed" : null;
/** Since 1.21 it can keep prepared statements; before, it knows no such setting. */
const FORGETS = Number(version?.[1]) > 1 || Number(version?.[2]) >= 21 ? { max_prepared_statements: "0" } : {};

export class PgBouncer {
  /** To connect to instead of the server. */
  readonly url: string;
  readonly #folder: string;
  #process: ChildProcess | null = null;

  private constructor(url: string, folder: string) {
    this.url = url;
    this.#folder = folder;
  }

  /** @param server - its URL. @param settings - of `pgbouncer.ini` */
  static async start(server: string, settings: Readonly<Record<string, string>> = {}): Promise<PgBouncer> {
    const url = new URL(server);
    const { hostname, port, username, password } = url;
    const folder = mkdtempSync(join(tmpdir(), "oncehook-pgbouncer-"));
    const users = join(folder, "users.txt");
    writeFileSync(users, `"${username}" "${password}"\n`);
    url.port = `${await freePort()}`;
    const all = {
      ...{ listen_addr: "127.0.0.1", listen_port: url.port, unix_socket_dir: "", auth_type: "plain", auth_file: users },
      ...{ pool_mode: "transaction", default_pool_size: "4", max_client_conn: "200", admin_users: username },
      // It does not run as root.
      ...(process.getuid?.() === 0 ? { user: "nobody" } : {}),
      ...FORGETS,
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
    const ini = `[databases]\n* = host=${hostname} port=${port}\n[pgbouncer]\n${lines.join("\n")}\n`;
    writeFileSync(join(folder, "pgbouncer.ini"), ini);
    chmodSync(folder, 0o755);
    const bouncer = new PgBouncer(url.href, folder);
    await bouncer.#run();
    return bouncer;
  }

  /** Kills it, and starts it again on the same port. */
  async restart(): Promise<void> {
    await this.#kill();
    await this.#run();
  }

  async stop(): Promise<void> {
    await this.#kill();
    rmSync(this.#folder, { recursive: true });
  }

  async #kill(): Promise<void> {
    const bouncer = this.#process;
    if (bouncer === null || bouncer.exitCode !== null || bouncer.signalCode !== null) return;
    bouncer.kill("SIGKILL");
    await once(bouncer, "exit");
  }

  #run(): Promise<void> {
    const bouncer = spawn("pgbouncer", [join(this.#folder, "pgbouncer.ini")], { stdio: ["ignore", "ignore", "pipe"] });
    this.#process = bouncer;
    let log = "";
    return new Promise((resolve, reject) => {
      bouncer.stderr.on("data", (chunk: Buffer) => {
        log = `${log}${chunk}`.slice(-10_000);
        if (log.includes("process up")) resolve();
      });
      bouncer.once("exit", () => reject(new Error(`PgBouncer did not start: ${log}`)));
    });
  }
}
