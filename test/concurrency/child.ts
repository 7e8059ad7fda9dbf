/** One process of several on an inbox: takes deliveries from its parent over IPC, and handles events as their message ids say. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createReceiver,
  type HandlerContext,
  PermanentError,
  type PrunePolicy,
  RetryAfter,
  type WebhookEvent,
} from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { incomingOf, TEST_SECRET } from "../../src/testing/signed-request.ts";
import type { Answered, ChildOptions, Request } from "./family.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const PRUNING: PrunePolicy = {
  ...{ handledBodiesMs: 0, otherBodiesMs: 0 },
  ...{ identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS, batch: 50 },
};

const options = JSON.parse(process.argv[2] ?? "{}") as ChildOptions;
const parent = (message: Answered): void => void process.send?.(message);

const store = sqliteStore(options.path, {
  ...options.store,
  onOpen: (db) =>
    db.exec(`create table if not exists handled (id integer primary key autoincrement, pid integer, message text,
      sequence integer, event integer, attempt integer, late integer)`),
});
const receiver = createReceiver({
  secrets: TEST_SECRET,
  store,
  logger: silentLogger,
  ...options.receiver,
  gapWait: (event) => (wordsOf(event).includes("gap") ? 250 : HOUR_MS),
});

/** `Start` and `End` of each run of a handler, on the monotonic clock that all processes of a machine share. */
function note(mark: "S" | "E", ctx: HandlerContext, event: WebhookEvent): void {
  const { eventId, laneId } = ctx.meta;
  const line = [mark, process.hrtime.bigint(), laneId, sequenceOf(event), eventId, ctx.attempt, ctx.outOfOrder ? 1 : 0];
  appendFileSync(options.log, `${line.join(" ")}\n`);
}

function commit(ctx: HandlerContext<SqliteDatabase>, event: WebhookEvent): void {
  const { eventId, lane } = ctx.meta;
  const row = [process.pid, lane.messageId, sequenceOf(event), eventId, ctx.attempt, ctx.outOfOrder ? 1 : 0];
  ctx.commit((db) =>
    db
      .prepare("insert into handled (pid, message, sequence, event, attempt, late) values (?, ?, ?, ?, ?, ?)")
      .run(...row),
  );
}

async function handle(event: WebhookEvent, ctx: HandlerContext<SqliteDatabase>): Promise<void> {
  note("S", ctx, event);
  try {
    const words = wordsOf(event);
    if (words.includes("stopped") && ctx.attempt === 1) process.kill(process.pid, "SIGSTOP");
    if (words.includes("noticing") && ctx.attempt === 1) await sleep(100);
    if (words.includes("slow")) await sleep(200);
    if (words.includes("slower") && ctx.attempt > 1) await sleep(300);
    if (words.includes("poison") && sequenceOf(event) === 2) process.kill(process.pid, "SIGKILL");
    if (words.includes("dead") && sequenceOf(event) === 2) throw new PermanentError("This one can not be mended.");
    // A number that hangs on the attempt alone, so that a seed repeats its failures whoever has the event.
    const dice = createHash("sha256").update(`${options.seed} ${ctx.identity} ${ctx.attempt}`).digest();
    if (dice.readUInt8(0) < 256 * options.failures) throw new RetryAfter(dice.readUInt8(1) / 4);
    for (let turns = dice.readUInt8(2) % 4; turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
    commit(ctx, event);
  } finally {
    note("E", ctx, event);
  }
}

function wordsOf(event: WebhookEvent): string[] {
  return "messageId" in event && typeof event.messageId === "string" ? event.messageId.split("-") : [];
}

function sequenceOf(event: WebhookEvent): number {
  return "sequence" in event && typeof event.sequence === "number" ? event.sequence : 0;
}

/** The longest that the event loop stood still since it was asked last, ms. */
let longestStallMs = 0;
let lookedAt = performance.now();
setInterval(() => {
  const now = performance.now();
  longestStallMs = Math.max(longestStallMs, now - lookedAt - 5);
  lookedAt = now;
}, 5);

async function answer(request: Request): Promise<void> {
  const { id } = request;
  if (request.kind === "deliver") {
    const { headers, text } = request;
    const incoming = incomingOf({ method: "POST", headers, body: Uint8Array.from(Buffer.from(text)) });
    const { status, body } = await receiver.handle(incoming);
    parent({ id, status, outcome: (JSON.parse(body) as { readonly outcome?: string }).outcome ?? "" });
  } else if (request.kind === "stall") {
    parent({ id, stallMs: Math.round(longestStallMs) });
    longestStallMs = 0;
  } else {
    clearInterval(pruning);
    await receiver.stop();
    process.exit(0);
  }
}

receiver.onAny(handle).onLate(handle);
receiver.onDeadLetter(({ eventId }) => parent({ id: 0, dead: eventId }));
process.on("message", (request: Request) => void answer(request));
process.on("disconnect", () => process.exit(1));

if (options.works) await receiver.start();
else await receiver.health();
const pruning = setInterval(() => options.prunes && void store.prune(PRUNING).catch(() => {}), 40);
parent({ id: 0 });
