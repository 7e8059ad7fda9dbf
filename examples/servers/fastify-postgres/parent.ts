/** The parent: starts the workers, puts a new one in the place of each that dies, and ends after them. It serves nothing itself. */
import cluster from "node:cluster";
import { setTimeout as wait } from "node:timers/promises";
import { onEnd } from "../../shared/ending.ts";
import { announcePort } from "../../shared/listening.ts";

/** Before a new worker, so that one that dies at once keeps no core busy. */
const PAUSE_MS = 1_000;

export function lead(workers: number): void {
  let listening = 0;
  let isStopping = false;

  cluster.on("listening", (_worker, { port }) => {
    listening += 1;
    // The first starts alone: it creates the inbox's tables, and a mistake in the set-up is reported once.
    if (listening === 1) for (let more = 1; more < workers; more += 1) cluster.fork();
    if (listening === workers) announcePort(port);
  });
  cluster.on("exit", async () => {
    if (listening === 0 && !isStopping) process.exit(1); // It has said why.
    await wait(PAUSE_MS, undefined, { ref: !isStopping });
    if (!isStopping) cluster.fork();
  });
  cluster.fork();

  // The parent ends by itself, with 0, behind the last worker.
  onEnd(() => {
    isStopping = true;
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGTERM");
  });
}
