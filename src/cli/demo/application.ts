/** The application of the story: it receives webhooks over HTTP, writes what it handled to a table, and fails when told to. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver, type Logger, type Receiver } from "../../index.ts";
import type { SecretStore } from "../../rotation/index.ts";
import { type SqliteDatabase, sqliteStore } from "../../stores/sqlite.ts";
import { createHandledTable, keepRow } from "./handled.ts";

export interface Application {
  readonly receiver: Receiver<SqliteDatabase>;
  readonly webhookUrl: string;
  /** While true, every request gets 503, as from a balancer in front of an application that is being deployed. */
  isDown: boolean;
  /** Messages whose next event makes the handler throw, once. */
  readonly failOnceFor: Set<string>;
  stop(): Promise<void>;
}

export interface ApplicationOptions {
  readonly inboxPath: string;
  readonly secrets: SecretStore;
  readonly logger: Logger;
}

export async function startApplication({ inboxPath, secrets, logger }: ApplicationOptions): Promise<Application> {
  const store = sqliteStore(inboxPath, { onOpen: createHandledTable });
  const receiver = createReceiver({ secrets, store, logger, logEvents: false });
  const failOnceFor = new Set<string>();
  receiver.onAny((_event, ctx) => {
    if (failOnceFor.delete(ctx.meta.lane.messageId)) throw new Error("The customer database does not answer.");
  });
  receiver.onAny(keepRow);
  receiver.onLate(() => {});
  await receiver.start();

  const webhook = nodeWebhook(receiver);
  const server = createServer((request, response) => {
    if (application.isDown) response.writeHead(503).end();
    else webhook(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  const application: Application = {
    receiver,
    webhookUrl: `http://127.0.0.1:${port}/webhooks`,
    isDown: false,
    failOnceFor,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await receiver.stop({ until: closed });
    },
  };
  return application;
}
