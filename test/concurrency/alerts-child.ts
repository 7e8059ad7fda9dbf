/** One process of several that watch one inbox: its time is faster, each event becomes a dead letter, and alerts go to its parent. */
import { createReceiver, type InboxStore, PermanentError, StoreError } from "../../src/index.ts";
import { type Clock, systemClock } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { TEST_SECRET } from "../../src/testing/deliver.ts";
import type { AlertsChildOptions } from "./alerts-scene.ts";
import * as member from "./member.ts";

const { place, url, secret, speed, since } = JSON.parse(process.argv[2] ?? "{}") as AlertsChildOptions;

/** With a clock that is not the system's, a server's own time is not used: so all processes have this one. */
const clock: Clock = {
  now: () => since + (systemClock.now() - since) * speed,
  monotonic: () => systemClock.monotonic() * speed,
  setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms / speed),
};

const store: InboxStore<never> =
  "path" in place
    ? (sqliteStore(place.path) as InboxStore<never>)
    : (postgresStore(place.url, { schema: place.schema }) as InboxStore<never>);

const receiver = createReceiver({
  ...{ secrets: TEST_SECRET, store, clock, logger: silentLogger },
  alerts: { to: `${url}?pid=${process.pid}`, secret, when: { deadLetters: 1 } },
});
receiver.onAny(() => {
  throw new PermanentError("Each one is a dead letter.");
});
member.answerParent(receiver, async () => {
  await receiver.stop();
  process.exit(0);
});
// It waits for a lock by its own faster clock, so for a moment only. As after a supervisor's restart, the next try finds it free.
const start = (): Promise<void> =>
  receiver.start().catch((error: unknown) => {
    if (error instanceof StoreError && error.code === "store_unavailable") return start();
    throw error;
  });
await start();
member.tellParent({ id: 0 });
