/** One process of several on a Postgres inbox: takes deliveries from its parent over IPC, and handles events with effects. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createReceiver,
  type HandlerContext,
  type PrunePolicy,
  RetryAfter,
  type WebhookEvent,
} from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { incomingOf, TEST_SECRET } from "../../src/testing/signed-request.ts";
import type { Answered, Request } from "../concurrency/family.ts";
import type { MemberOptions } from "./concurrency-family.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const PRUNING: PrunePolicy = {
  ...{ handledBodiesMs: 0, otherBodiesMs: 0 },
  ...{ identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS, batch: 50 },
};

const options = JSON.parse(process.argv[2] ?? "{}") as MemberOptions;
const parent = (message: Answered): void => void process.send?.(message, undefined, undefined, () => {});

const store = postgresStore(options.url, { schema: options.schema, maxConnections: 5 });
const receiver = createReceiver({
  secrets: TEST_SECRET,
  store,
  logger: silentLogger,
  maxAttempts: 100,
  gapWait: (event) => (messageOf(event).startsWith("gap") ? 250 : HOUR_MS),
});

/** `Start` and `End` of each run of a handler, on the monotonic clock that all processes of a machine share. */
function note(mark: "S" | "E", ctx: HandlerContext, event: WebhookEvent): void {
  const { eventId, laneId } = ctx.meta;
  const line = [mark, process.hrtime.bigint(), laneId, sequenceOf(event), eventId, ctx.attempt, ctx.outOfOrder ? 1 : 0];
  appendFileSync(options.log, `${line.join(" ")}\n`);
}

async function handle(event: WebhookEvent, ctx: HandlerContext<PgClient>): Promise<void> {
  note("S", ctx, event);
  try {
    // A number that hangs on the attempt alone, so that a seed repeats its failures whoever has the event.
    const dice = createHash("sha256").update(`${options.seed} ${ctx.identity} ${ctx.attempt}`).digest();
    if (dice.readUInt8(0) < 256 * options.failures) throw new RetryAfter(dice.readUInt8(1) / 4);
    for (let turns = dice.readUInt8(2) % 4; turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
    const { eventId, lane } = ctx.meta;
    const row = [process.pid, lane.messageId, sequenceOf(event), eventId, ctx.attempt, ctx.outOfOrder];
    ctx.commit((client) =>
      client.query(
        `insert into ${options.schema}_handled (pid, message, sequence, event, attempt, late) values ($1, $2, $3, $4, $5, $6)`,
        row,
      ),
    );
  } finally {
    note("E", ctx, event);
  }
}

function messageOf(event: WebhookEvent): string {
  return "messageId" in event && typeof event.messageId === "string" ? event.messageId : "";
}

function sequenceOf(event: WebhookEvent): number {
  return "sequence" in event && typeof event.sequence === "number" ? event.sequence : 0;
}

let isStopping = false;

/** More often than a receiver does it, so that it comes between everything else. */
async function upkeep(): Promise<void> {
  while (!isStopping) {
    await sleep(100);
    await store.heartbeat({ keyringVersion: "1", counters: {} }).catch(() => {});
    if (options.prunes) await store.prune(PRUNING).catch(() => {});
  }
}

async function answer(request: Request): Promise<void> {
  const { id } = request;
  if (request.kind === "deliver") {
    const { headers, text } = request;
    const incoming = incomingOf({ method: "POST", headers, body: Uint8Array.from(Buffer.from(text)) });
    const { status, body } = await receiver.handle(incoming);
    parent({ id, status, outcome: (JSON.parse(body) as { readonly outcome?: string }).outcome ?? "" });
  } else if (request.kind === "stop") {
    isStopping = true;
    await receiver.stop();
    process.exit(0);
  }
}

receiver.onAny(handle).onLate(handle);
process.on("message", (request: Request) => void answer(request));
process.on("disconnect", () => process.exit(1));

await receiver.start();
void upkeep();
parent({ id: 0 });
