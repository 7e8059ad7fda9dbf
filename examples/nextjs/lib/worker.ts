/** The worker of a server that keeps running. On serverless platforms, requests and the cron on `/api/drain` do its work. */
import { setTimeout as wait } from "node:timers/promises";
import type { Receiver } from "oncehook";
import type { SqliteDatabase } from "oncehook/sqlite";

/** For open requests: the HTTP server of `next start` is not accessible, so its end cannot be awaited. */
const OPEN_REQUESTS_MS = 500;

export async function startWorker(): Promise<void> {
  try {
    const { receiver } = await import("./receiver");
    await receiver.start();
    stopOnSignal(receiver);
  } catch (error) {
    // Most likely a missing secret. Without this, Next.js keeps running and answers every request with 500.
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
    // Set by `npm start`. Without it, Next.js exits with 143 and does not wait for handlers. The next start handles again
    // the event that was running.
    if (process.env.NEXT_MANUAL_SIG_HANDLE) process.exit(0);
  };
  // Not once(): a second signal, such as npm's after the terminal's, would end the process while a handler runs.
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
}
