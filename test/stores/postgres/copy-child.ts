/** Copies an inbox from a SQLite file to Postgres, and says after each page how far it is; the test kills it. */
import { copyInbox } from "../../../src/index.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";

const [path = "", url = "", schema = ""] = process.argv.slice(2);
const result = await copyInbox({
  from: sqliteStore(path, { minFreeBytes: 0 }),
  to: postgresStore(url, { schema, maxConnections: 2 }),
  onProgress: ({ phase, lanes }) => process.stdout.write(`${phase} ${lanes}\n`),
});
process.stdout.write(`${JSON.stringify(result)}\n`);
