/** A process that handles a backlog on Postgres under a rate, and writes when each handler started. */
import { createReceiver } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { type Handled, keyOf, SECRET } from "./backlog.ts";

export interface WorkerTask {
  readonly url: string;
  readonly schema: string;
  /** Null: as fast as it can. */
  readonly rate: { readonly perSecond: number; readonly perKey: boolean } | null;
}

const { url, schema, rate } = JSON.parse(process.argv[2] ?? "{}") as WorkerTask;
const receiver = createReceiver({
  secrets: SECRET,
  store: postgresStore(url, { schema, maxConnections: 6 }),
  logger: silentLogger,
  ...(rate !== null && {
    rate: {
      perSecond: rate.perSecond,
      per: rate.perKey ? (event: { readonly messageId: string }) => keyOf(event.messageId) : ("inbox" as const),
    },
  }),
}).onAny((_, ctx) => {
  const { lane, sequence } = ctx.meta;
  const row: Handled = { message: lane.messageId, sequence, at: Date.now() };
  ctx.commit({
    text: `insert into ${schema}_handled (message, sequence, at) values ($1, $2, $3)`,
    values: Object.values(row),
  });
});
await receiver.start();
process.on("message", async () => {
  await receiver.stop();
  process.exit(0);
});
process.on("disconnect", () => process.exit(1));
process.send?.({ id: 0 });
