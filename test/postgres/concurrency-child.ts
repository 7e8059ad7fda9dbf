/** One process of several on a Postgres inbox: takes deliveries from its parent over IPC, and handles events with effects. */
import { setTimeout as sleep } from "node:timers/promises";
import { createReceiver, type HandlerContext, type IncomingWebhook } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import * as member from "../concurrency/member.ts";
import { ownOf } from "../proofs/history.ts";
import { commitEffect } from "../proofs/postgres-inbox.ts";
import { type SourceName, sourcesFor, wrongEvent } from "../proofs/sources.ts";
import type { MemberOptions } from "./concurrency-family.ts";

const options = JSON.parse(process.argv[2] ?? "{}") as MemberOptions;

const store = postgresStore(options.url, { schema: options.schema, maxConnections: 5 });
const gapWait = (event: object) => (member.wordsOf(event).includes("gap") ? 250 : member.HOUR_MS);
const sources = sourcesFor(options.sources, { gapWait });
const { leaseMs } = options;
const receiver = createReceiver({ sources, store, logger: silentLogger, maxAttempts: 100, leaseMs });
const also = options.adds.map((name) => ({
  text: `update ${options.schema}_sum set total = total + 1 where name = $1`,
  values: [name],
}));

function handle(
  source: SourceName,
  event: object,
  ctx: HandlerContext<PgClient>,
  handler: "on" | "late",
): Promise<void> {
  return member.noted(options, ctx, async () => {
    await member.stumble(options, ctx);
    const { isPooled: is_pooled } = options;
    const more = () => ({
      pid: process.pid,
      event: ctx.meta.eventId,
      wrong: wrongEvent(source, event, ctx),
      is_pooled,
    });
    commitEffect(ctx, options.schema, ownOf(event, handler), { more, also });
  });
}

let isStopping = false;

/** More often than a receiver does it, so that it comes between everything else. */
async function upkeep(): Promise<void> {
  while (!isStopping) {
    await sleep(100);
    await store.heartbeat({ keyringVersion: "1", counters: {} }).catch(() => {});
    if (options.prunes) await store.prune(member.PRUNING).catch(() => {});
  }
}

for (const name of options.sources) {
  const source = receiver.source(name);
  source.onAny((event, ctx) => handle(name, event, ctx, "on"));
  // Nothing that GitHub sends can be late.
  if (name !== "code") source.onLate((event, ctx) => handle(name, event, ctx, "late"));
}
const deliveries = { handle: (incoming: IncomingWebhook, name: SourceName) => receiver.source(name).handle(incoming) };
member.answerParent(deliveries, async () => {
  isStopping = true;
  await receiver.stop();
  process.exit(0);
});

await receiver.start();
void upkeep();
member.tellParent({ id: 0 });
