/** Opens an inbox as a process of its own, accepts an event, and prints what became of it. */
import { silentLogger } from "../../src/internal/logger.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { contextOf, event, turn } from "./sqlite-turns.ts";

const [path = ""] = process.argv.slice(2);

const warnings: unknown[] = [];
const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
const store = sqliteStore(path);
try {
  await store.open(contextOf({ logger }));
  const { accepted } = await store.step(turn({ accepts: [event(`of ${process.pid}`)] }));
  await store.close();
  process.stdout.write(JSON.stringify({ accepted: accepted[0]?.outcome, warnings }));
} catch (error) {
  const { code, message } = error as Error & { readonly code?: unknown };
  process.stdout.write(JSON.stringify({ code, message, warnings }));
}
