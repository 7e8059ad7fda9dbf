/** The process that the crash test kills: accepts over HTTP and handles with transactional effects, on the inbox it is given. */
import { createServer } from "node:http";
import { setImmediate } from "node:timers/promises";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";

const [inboxPath = "", secret = ""] = process.argv.slice(2);

const store = sqliteStore(inboxPath, {
  onOpen: (db) => {
    db.exec(`
      create table if not exists effect (id integer primary key autoincrement, identity text, message_id text, sequence integer);
      create table if not exists total (events integer);
      insert into total select 0 where not exists (select 1 from total);
    `);
  },
});
const receiver = createReceiver({ secrets: secret, store, maxAttempts: 100 });

receiver.on(["message.queued", "message.sent", "message.delivery", "message.failed"], async (event, ctx) => {
  ctx.commit((db) => {
    db.prepare("insert into effect (identity, message_id, sequence) values (?, ?, ?)").run(
      ctx.identity,
      event.messageId,
      event.sequence,
    );
  });
  // Handlers that take turns of the event loop, so that a kill finds some of them between start and completion.
  for (let turn = 0; turn < (event.sequence * 7) % 5; turn++) await setImmediate();
  ctx.commit((db) => db.prepare("update total set events = events + 1").run());
});

receiver.onLate(() => {});

const startedAt = performance.now();
await receiver.start();
const recoveryMs = performance.now() - startedAt;
const server = createServer(nodeWebhook(receiver));
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  // Counted from the start of the process, with loading the modules.
  console.log(JSON.stringify({ port, recoveryMs, readyMs: performance.now() }));
});
process.once("SIGTERM", async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  await receiver.drain({ budgetMs: 20_000 });
  await receiver.stop({ until: closed });
  process.exit(0);
});
