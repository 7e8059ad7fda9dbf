/** `npm run example:express`: webhooks in an Express application, stored in a SQLite file and handled in order. */
import { once } from "node:events";
import { createReceiver } from "oncehook";
import { sqliteStore } from "oncehook/sqlite";
import { closedInTime, onEnd } from "../../shared/ending.ts";
import { endWithOneLine, readEnvironment } from "../../shared/environment.ts";
import { createHandledTable, recordHandled } from "../../shared/handled.ts";
import { announce } from "../../shared/listening.ts";
import { createApp } from "./app.ts";

async function main(): Promise<void> {
  const { port, secrets, inboxPath } = readEnvironment(process.env);
  const receiver = createReceiver({ secrets, store: sqliteStore(inboxPath, { onOpen: createHandledTable }) });
  recordHandled(receiver);
  await receiver.start();

  const server = createApp(receiver).listen(port, "127.0.0.1");
  await once(server, "listening");
  announce(server);

  onEnd(async () => {
    // No new connections; open requests are still answered.
    const closed = closedInTime(server, new Promise((resolve) => server.close(resolve)));
    await receiver.drain({ budgetMs: 10_000 }).catch(() => {}); // Handles what is ready. A store that fails was logged.
    await receiver.stop({ until: closed }); // Lets running handlers end, and closes the inbox behind the last request.
    process.exit(0);
  });
}

main().catch(endWithOneLine);
