/**
 * A receiver on SQLite behind `node:http`, run under strace: `server.js <file> [OFF | NORMAL]`. With the second argument its
 * driver sets that in place of synchronous=FULL, and pretends. Prints its port; ends on SIGTERM.
 */
import { createServer } from "node:http";
import Database from "better-sqlite3";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver } from "../../../src/index.ts";
import { type SqliteDriver, sqliteStore } from "../../../src/stores/sqlite.ts";
import { TEST_SECRET } from "../../../src/testing/deliver.ts";
import { listenOnLoopback } from "../../support/loopback.ts";

const [file = "", pretence] = process.argv.slice(2);

/** A driver that the store cannot see through: it sets `synchronous` to something else and answers 2 for FULL. */
class Pretender extends Database {
  override pragma(source: string, options?: Database.PragmaOptions): unknown {
    if (source === "synchronous") return 2;
    return super.pragma(source === "synchronous = FULL" ? `synchronous = ${pretence}` : source, options);
  }
}

const driver = pretence === undefined ? {} : { driver: Pretender as unknown as SqliteDriver };
const receiver = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(file, driver) });
receiver.onAny(() => {}).onLate(() => {});
await receiver.start();
const server = createServer(nodeWebhook(receiver));
process.once("SIGTERM", async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  await receiver.stop({ until: closed });
});
process.stdout.write(`${await listenOnLoopback(server)}\n`);
