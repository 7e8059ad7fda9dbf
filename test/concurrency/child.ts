/** One process of several on an inbox: takes deliveries from its parent over IPC, and handles events as their message ids say. */
import { setTimeout as sleep } from "node:timers/promises";
import { createReceiver, type HandlerContext, PermanentError, type WebhookEvent } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { TEST_SECRET } from "../../src/testing/deliver.ts";
import type { ChildOptions } from "./family.ts";
import * as member from "./member.ts";

const options = JSON.parse(process.argv[2] ?? "{}") as ChildOptions;

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
  gapWait: (event) => (member.wordsOf(event).includes("gap") ? 250 : member.HOUR_MS),
});

const INSERT = "insert into handled (pid, message, sequence, event, attempt, late) values (?, ?, ?, ?, ?, ?)";

function handle(event: WebhookEvent, ctx: HandlerContext<SqliteDatabase>): Promise<void> {
  return member.noted(options, ctx, async () => {
    const words = member.wordsOf(event);
    const isSecond = ctx.meta.sequence === 2;
    if (words.includes("stopped") && ctx.attempt === 1) process.kill(process.pid, "SIGSTOP");
    if (words.includes("noticing") && ctx.attempt === 1) await sleep(100);
    if (words.includes("slow")) await sleep(200);
    if (words.includes("slower") && ctx.attempt > 1) await sleep(300);
    if (words.includes("poison") && isSecond) process.kill(process.pid, "SIGKILL");
    if (words.includes("dead") && isSecond) throw new PermanentError("This one can not be mended.");
    await member.stumble(options, ctx);
    const row = member.effectRow(ctx);
    ctx.commit((db) => db.prepare(INSERT).run(...row));
  });
}

/** The longest that the event loop stood still since it was asked last, ms. */
let longestStallMs = 0;
let lookedAt = performance.now();
setInterval(() => {
  const now = performance.now();
  longestStallMs = Math.max(longestStallMs, now - lookedAt - 5);
  lookedAt = now;
}, 5);

/** Not before the store is open. */
let pruning: NodeJS.Timeout | undefined;

receiver.onAny(handle).onLate(handle);
receiver.onDeadLetter(({ eventId }) => member.tellParent({ id: 0, dead: eventId }));
member.answerParent(receiver, async ({ id, kind }) => {
  if (kind === "stall") {
    member.tellParent({ id, stallMs: Math.round(longestStallMs) });
    longestStallMs = 0;
    return;
  }
  clearInterval(pruning);
  await receiver.stop();
  process.exit(0);
});

if (options.works) await receiver.start();
else await receiver.health();
pruning = setInterval(() => options.prunes && void store.prune(member.PRUNING).catch(() => {}), 40);
member.tellParent({ id: 0 });
