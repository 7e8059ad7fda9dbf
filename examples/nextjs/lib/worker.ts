/** The worker of a server that keeps running; without it (serverless) requests and the cron on `/api/drain` do its work. */
import { setTimeout as wait } from "node:timers/promises";
import type { Receiver } from "oncehook";
import type { SqliteDatabase } from "oncehook/sqlite";

/** `next start` shows nobody its HTTP server, so its end can not be waited for: open requests get this long. */
const OPEN_REQUESTS_MS = 500;

export async function startWorker(): Promise<void> {
  try {
    const { receiver } = await import("./receiver");
    await receiver.start();
    stopOnSignal(receiver);
  } catch (error) {
    // A missing secret, most likely. Next.js would stay up, and answer 500 to everything.
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}

function stopOnSignal(receiver: Receiver<SqliteDatabase>): void {
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    await receiver.drain({ budgetMs: 10_000 }).catch(() => {}); // A store that fails was logged.
    await receiver.stop({ until: wait(OPEN_REQUESTS_MS) });
    // Set by `npm start`. Without it Next.js closes its server itself, does not wait for handlers, and exits with 143;
    // an event that was being handled is then handled again at the next start.
    if (process.env.NEXT_MANUAL_SIG_HANDLE) process.exit(0);
  };
  // A second signal, such as npm's after the terminal's, would end the process while a handler runs if nothing listened any more.
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
}
