/** One process of several on a Postgres inbox: takes deliveries from its parent over IPC, and handles events with effects. */
import { setTimeout as sleep } from "node:timers/promises";
import { createReceiver, type HandlerContext, type WebhookEvent } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { TEST_SECRET } from "../../src/testing/deliver.ts";
import * as member from "../concurrency/member.ts";
import type { MemberOptions } from "./concurrency-family.ts";

const options = JSON.parse(process.argv[2] ?? "{}") as MemberOptions;

const store = postgresStore(options.url, { schema: options.schema, maxConnections: 5 });
const receiver = createReceiver({
  secrets: TEST_SECRET,
  store,
  logger: silentLogger,
  maxAttempts: 100,
  gapWait: (event) => (member.wordsOf(event).includes("gap") ? 250 : member.HOUR_MS),
});

const INSERT = `insert into ${options.schema}_handled (pid, message, sequence, event, attempt, late)
  values ($1, $2, $3, $4, $5, $6::int = 1)`;

function handle(event: WebhookEvent, ctx: HandlerContext<PgClient>): Promise<void> {
  return member.noted(options, ctx, event, async () => {
    await member.stumble(options, ctx);
    const row = member.effectRow(ctx, event);
    ctx.commit((client) => client.query(INSERT, row));
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

receiver.onAny(handle).onLate(handle);
member.answerParent(receiver, async () => {
  isStopping = true;
  await receiver.stop();
  process.exit(0);
});

await receiver.start();
void upkeep();
member.tellParent({ id: 0 });
