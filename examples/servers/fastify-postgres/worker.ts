/** One of the processes that receive and handle: it shares port, inbox and table with the others, and knows nothing of them. */
import { createReceiver } from "oncehook";
import { postgresStore } from "oncehook/postgres";
import { Pool } from "pg";
import { closedInTime, onEnd } from "../../shared/ending.ts";
import { printEvent } from "../../shared/event-line.ts";
import { createApp } from "./app.ts";
import type { ClusterEnvironment } from "./environment.ts";
import { keepRow } from "./history.ts";

/** Of each process, so the server sees as many times this as there are workers. */
const CONNECTIONS = 10;
/** How long running handlers may take at the end; another worker handles the rest, or the next start does. */
const LAST_HANDLERS_MS = 10_000;

export async function work({ port, databaseUrl, secrets }: ClusterEnvironment): Promise<void> {
  // The name tells in pg_stat_activity which process a connection belongs to.
  const application_name = `worker ${process.pid}`;
  const pool = new Pool({ connectionString: databaseUrl, max: CONNECTIONS, application_name });
  const receiver = createReceiver({ secrets, store: postgresStore(pool) });
  receiver.onAny(keepRow).onAny(printEvent).onLate(printEvent);
  await receiver.start();

  const app = await createApp(receiver, pool);
  await app.listen({ port, host: "127.0.0.1" });

  onEnd(async () => {
    const closed = closedInTime(app.server, app.close()); // No new connections; open requests are still answered.
    await receiver.stop({ until: closed, timeoutMs: LAST_HANDLERS_MS }); // Claims nothing more.
    await pool.end();
    process.exit(0);
  });
}
