/** A receiver on SQLite behind `node:http`, run under strace. Prints its port; ends on SIGTERM. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { TEST_SECRET } from "../../src/testing/signed-request.ts";

const receiver = createReceiver({ secrets: TEST_SECRET, store: sqliteStore(process.argv[2] ?? "") });
receiver.onAny(() => {}).onLate(() => {});
await receiver.start();
const server = createServer(nodeWebhook(receiver)).listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.once("SIGTERM", async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  await receiver.stop({ until: closed });
});
