/** The Next.js example with its inbox in a SQLite file beside it. */
import { cpSync, existsSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { HandledRow } from "../proofs/ledger.ts";
import { Application, ROOT, type Server } from "./application.ts";

export class SqliteApplication extends Application {
  readonly inboxPath = join(this.folder, "inbox.db");

  constructor() {
    super("nextjs");
  }

  override async install(): Promise<void> {
    await super.install();
    await this.#buildDriver();
  }

  /** Compiling better-sqlite3 takes minutes: what the repository compiled of the same version for this Node.js will do. */
  async #buildDriver(): Promise<void> {
    const own = join(this.folder, "node_modules/better-sqlite3");
    const repository = join(ROOT, "node_modules/better-sqlite3");
    const compiled = join(repository, "build/Release/better_sqlite3.node");
    if (existsSync(compiled) && versionOf(own) === versionOf(repository)) {
      cpSync(compiled, join(own, "build/Release/better_sqlite3.node"));
    } else await this.run("npm", ["rebuild", "better-sqlite3"]);
  }

  override start(mode: "start" | "dev", environment: NodeJS.ProcessEnv = {}): Promise<Server> {
    return super.start(mode, { INBOX_PATH: this.inboxPath, ...environment });
  }

  /** As `npm start` does: its `instrumentation.ts` ends the process by itself. */
  override launch(mode: "start" | "dev", environment: NodeJS.ProcessEnv, port = 0): Server {
    const manual = mode === "start" ? { NEXT_MANUAL_SIG_HANDLE: "1" } : {};
    return super.launch(mode, { ...manual, ...environment }, port);
  }

  /** Runs one statement on the inbox's file. */
  query<Row>(sql: string): Row[] {
    const Database = createRequire(import.meta.url)("better-sqlite3");
    const db = new Database(this.inboxPath, { readonly: true });
    try {
      return db.prepare(sql).all() as Row[];
    } finally {
      db.close();
    }
  }

  handled(): HandledRow[] {
    return this.query("select message_id, sequence, event_type from handled order by id");
  }

  /** Removes the inbox; no process may run. */
  forget(): void {
    for (const end of ["", "-wal", "-shm"]) rmSync(this.inboxPath + end, { force: true });
  }
}

function versionOf(folder: string): string {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}
