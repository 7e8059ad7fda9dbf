/** How the servers end: in order, however many signals come, and however slowly a client sends. */
import type { Server } from "node:http";

/** For requests that have begun: a delivery that takes longer gets no answer, and the service repeats it. */
const LAST_REQUESTS_MS = 3_000;

/**
 * Calls `stop` at the first SIGTERM or SIGINT. npm and a cluster's parent pass on what the whole process group has got already, and
 * a signal without a listener would end the process while a handler runs.
 */
export function onEnd(stop: () => unknown): void {
  let isStopping = false;
  const hear = () => {
    if (!isStopping) stop();
    isStopping = true;
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, hear);
}

/** Resolves when `closing`, the end of `server`, does. A server that closes gives a request that is never finished no time limit. */
export async function closedInTime(server: Server, closing: Promise<unknown>): Promise<void> {
  const cut = setTimeout(() => server.closeAllConnections(), LAST_REQUESTS_MS);
  await closing;
  clearTimeout(cut);
}
