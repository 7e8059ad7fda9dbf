/** The process that the demo kills: the Express example, with a handler that fails twice, and a route that shows its inbox. */
import { once } from "node:events";
import { createReceiver, type Receiver, RetryAfter } from "oncehook";
import { type SqliteDatabase, sqliteStore } from "oncehook/sqlite";
import { createApp } from "../servers/express/app.ts";
import { endWithOneLine, readEnvironment } from "../shared/environment.ts";
import { createHandledTable, recordHandled } from "../shared/handled.ts";
import { announce } from "../shared/listening.ts";

/** What `GET /demo/state` answers with. */
export interface DemoState {
  /** In the order of arrival. */
  readonly events: readonly StoredEvent[];
  readonly pending: number;
  readonly quarantined: number;
}

export interface StoredEvent {
  readonly messageId: string;
  readonly sequence: number;
  readonly eventType: string;
  readonly attempts: number;
}

async function main(): Promise<void> {
  const { port, secrets, inboxPath } = readEnvironment(process.env);
  const failing = new Set(process.env.DEMO_FAILS_TWICE?.split(","));
  const receiver = createReceiver({ secrets, store: sqliteStore(inboxPath, { onOpen: createHandledTable }) });
  receiver.onAny((_event, ctx) => {
    if (ctx.attempt <= 2 && failing.has(ctx.meta.lane ?? "")) throw new RetryAfter(100);
  });
  recordHandled(receiver);
  await receiver.start();

  const app = createApp(receiver);
  app.get("/demo/state", async (_request, response) => {
    response.json(await readState(receiver));
  });
  const server = app.listen(port, "127.0.0.1");
  await once(server, "listening");
  announce(server);

  process.once("SIGTERM", async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    await receiver.stop({ until: closed });
    process.exit(0);
  });
}

async function readState(receiver: Receiver<SqliteDatabase>): Promise<DemoState> {
  const { gauges } = await receiver.inbox.stats();
  const { items } = await receiver.inbox.find({ order: "oldest", limit: 1_000 });
  const events = items.map(({ lane, ownId, sequence, eventType, attempts }) => {
    return { messageId: lane.name ?? ownId ?? "", sequence, eventType, attempts };
  });
  return { events, pending: gauges.pending, quarantined: gauges.quarantined };
}

main().catch(endWithOneLine);
