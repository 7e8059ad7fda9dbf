/** One machine: a receiver behind HTTP on a port of its own, on an inbox that it shares. Its handler writes the history. */
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver, type HandlerContext, type WebhookEvent } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { type PgClient, postgresStore } from "../../../src/stores/postgres.ts";
import type { MachineOptions, Order } from "./machine.ts";
import { LEASE_MS, SECRET } from "./terms.ts";

/** What a handler takes: of quick ones, hundreds are taken ahead, and a machine that dies leaves them all to be taken over. */
const HANDLER_MS = 20;
/** So long the handler is held up in which this process is about to be killed or paused. */
const HELD_MS = 300;

const { name, port, url, schema, gapWaitMs, flaws } = JSON.parse(process.argv[2] ?? "{}") as MachineOptions;
const tell = (word: string) => void process.send?.({ word }, undefined, undefined, () => {});

const pool = new pg.Pool({ connectionString: url, max: 5 });
// The server is restarted under it.
pool.on("error", () => {});
const receiver = createReceiver({
  secrets: SECRET,
  store: postgresStore(pool, { schema }),
  leaseMs: LEASE_MS,
  gapWait: () => gapWaitMs,
  logger: silentLogger,
});

let holdsNext = false;

async function handle(event: WebhookEvent, ctx: HandlerContext<PgClient>): Promise<void> {
  const { messageId } = ctx.meta.lane;
  const sequence = "sequence" in event && typeof event.sequence === "number" ? event.sequence : 0;
  const row = [messageId, sequence, event.eventType, ctx.attempt, name, ctx.outOfOrder];
  const write = (client: Pick<PgClient, "query">) =>
    client.query(
      `insert into ${schema}_history (message_id, sequence, event_type, attempt, machine, late) values ($1, $2, $3, $4, $5, $6)`,
      row,
    );
  if (flaws.includes("effect_outside_commit")) await write(pool);
  else ctx.commit(write);
  const isHeld = holdsNext;
  holdsNext = false;
  if (isHeld) tell("in a handler");
  await sleep(isHeld ? HELD_MS : HANDLER_MS);
}

receiver.onAny(handle).onLate(handle);
process.on("message", async ({ kind }: Order) => {
  if (kind === "hold") {
    holdsNext = true;
  } else {
    await receiver.stop();
    process.exit(0);
  }
});
process.on("disconnect", () => process.exit(1));

await receiver.start();
createServer(nodeWebhook(receiver)).listen(port, "127.0.0.1", () => tell("listening"));
