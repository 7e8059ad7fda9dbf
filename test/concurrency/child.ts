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
    if (words.includes("slow")) await sleep(200);
    if (words.includes("poison") && isSecond) process.kill(process.pid, "SIGKILL");
    if (words.includes("dead") && isSecond) throw new PermanentError("This one can not be mended.");
    await member.stumble(options, ctx);
    const { lane, sequence, eventId } = ctx.meta;
    const row = [process.pid, lane.messageId, sequence, eventId, ctx.attempt, ctx.outOfOrder ? 1 : 0];
    ctx.commit((db) => db.prepare(INSERT).run(...row));
  });
}

receiver.onAny(handle).onLate(handle);
receiver.onDeadLetter(({ eventId }) => member.tellParent({ id: 0, dead: eventId }));
member.answerParent(receiver, async () => {
  clearInterval(pruning);
  await receiver.stop();
  process.exit(0);
});

await receiver.start();
const pruning = setInterval(() => options.prunes && void store.prune(member.PRUNING).catch(() => {}), 40);
member.tellParent({ id: 0 });
