/** The end of a command's HTTP server. */
import { once } from "node:events";
import type { Server } from "node:http";
import { systemClock } from "../internal/clock.ts";

/** Takes no new connection, and resolves when the last one has ended; those that have not within `limitMs` are cut. */
export async function closeServer(server: Server, limitMs: number): Promise<void> {
  const closed = once(server, "close");
  server.close();
  const limit = systemClock.setTimeout(() => server.closeAllConnections(), limitMs);
  await closed;
  limit.cancel();
}
