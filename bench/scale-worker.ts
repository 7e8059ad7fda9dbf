/** One of several processes at work on one inbox, until it is let go: `node scale-worker.js WORK INBOX`, a file or `postgres://…`. */
import { setTimeout as wait } from "node:timers/promises";
import { createReceiver } from "../src/index.ts";
import { postgresStore } from "../src/stores/postgres.ts";
import { sqliteStore } from "../src/stores/sqlite.ts";
import { answerParent } from "./child.ts";
import { SECRET } from "./deliveries.ts";
import { BATCH, HANDLERS, type Progress, TURNS, WAIT_MS, type Work, type WorkerQuestion } from "./scale-pace.ts";
import { MESSAGES, openPostgres, turnOf } from "./store.ts";

const [work, inbox] = process.argv.slice(2) as [Work, string];
let done = 0;
const stop = work === "handle" ? await handle() : await accept();

answerParent<{ readonly ask: WorkerQuestion }>(async ({ ask }): Promise<Progress> => {
  // A lease that is left behind is handled alone by the next process, which would be measured.
  if (ask === "stop") await stop();
  const { user, system } = process.cpuUsage();
  return { done, processor: (user + system) / 1e6 };
});

async function handle(): Promise<() => Promise<void>> {
  const store = inbox.startsWith("postgres://") ? postgresStore(inbox) : sqliteStore(inbox);
  const receiver = createReceiver<unknown>({ secrets: SECRET, store, concurrency: HANDLERS });
  const handler = async () => {
    await wait(WAIT_MS);
    done += 1;
  };
  receiver.onAny(handler).onLate(handler);
  await receiver.start();
  return () => receiver.stop();
}

async function accept(): Promise<() => Promise<void>> {
  const store = await openPostgres(inbox);
  let isStopped = false;
  const acceptInTurn = async () => {
    while (!isStopped) {
      const accepts = Array.from({ length: BATCH }, () => MESSAGES.ordered.event(1));
      await store.step(turnOf({ accepts }, 0));
      done += BATCH;
    }
  };
  const accepting = Promise.all(Array.from({ length: TURNS }, acceptInTurn));
  return async () => {
    isStopped = true;
    await accepting;
    await store.close();
  };
}
