/** A process of a rolling upgrade: a receiver of this version or of a later one, whose handler tells the parent what it handles. */
import { createReceiver, type HandlerContext, type InboxStore } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";
import { TEST_SECRET } from "../../../src/testing/index.ts";
import * as member from "../../concurrency/member.ts";
import * as onPostgres from "../postgres-inbox.ts";
import * as onSqlite from "../sqlite-inbox.ts";
import { becomeLater } from "../../support/later-version.ts";
import type { Handled, RollingOptions } from "./rolling.ts";

const { place, version } = JSON.parse(process.argv[2] ?? "{}") as RollingOptions;
if (version === "later") becomeLater();

function receiverOn<Tx>(store: InboxStore<Tx>, commit: (ctx: HandlerContext<Tx>) => void) {
  const receiver = createReceiver({ secrets: TEST_SECRET, store, logger: silentLogger, leaseMs: 3_000 });
  const handle = (_event: object, ctx: HandlerContext<Tx>) => {
    process.send?.({ handled: ctx.meta.lane.messageId } satisfies Handled, undefined, undefined, () => {});
    commit(ctx);
  };
  return receiver.onAny(handle).onLate(handle);
}

const receiver =
  "path" in place
    ? receiverOn(sqliteStore(place.path), (ctx) => onSqlite.commitEffect(ctx))
    : receiverOn(postgresStore(place.url, { schema: place.schema }), (ctx) =>
        onPostgres.commitEffect(ctx, place.schema, {}),
      );

member.answerParent(receiver, async () => {
  await receiver.stop();
  process.exit(0);
});
await receiver.start();
member.tellParent({ id: 0 });
