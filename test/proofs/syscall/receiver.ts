/** The receiver of a point: a clock that is moved by hand, and handlers that write an effect for each event. */
import { setImmediate } from "node:timers/promises";
import type { InboxStore } from "../../../src/inbox/store.ts";
import { createReceiver, type HandlerContext, type Receiver, type WebhookEvent } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type SqliteDatabase, sqliteStore } from "../../../src/stores/sqlite.ts";
import { TEST_SECRET } from "../../../src/testing/deliver.ts";
import type { FakeClock } from "../../../src/testing/fake-clock.ts";
import { makeEffectTable, writeEffect } from "../sqlite-inbox.ts";
import { DAY_MS } from "./deliveries.ts";

/** Nothing is pruned but on request. */
const KEEP_MS = 3_650 * DAY_MS;

export function receiverOn(
  path: string,
  clock: FakeClock,
): { readonly store: InboxStore<SqliteDatabase>; readonly receiver: Receiver<SqliteDatabase> } {
  const store = sqliteStore(path, { onOpen: makeEffectTable });
  const receiver = createReceiver({
    ...{ secrets: TEST_SECRET, store, clock, logger: silentLogger, maxAttempts: 100 },
    retention: { handledBodiesMs: KEEP_MS, otherBodiesMs: KEEP_MS, identitiesMs: KEEP_MS, deadMs: KEEP_MS },
  });
  const handle = async (_event: WebhookEvent, ctx: HandlerContext<SqliteDatabase>) => {
    ctx.commit((db) => writeEffect(db, ctx));
    // Some end in the turn that accepted them, others in a later one.
    for (let turn = 0; turn < ctx.meta.eventId % 3; turn++) await setImmediate();
  };
  receiver.onAny(handle).onLate(handle);
  return { store, receiver };
}
