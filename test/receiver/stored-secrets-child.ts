/** A receiver process whose secrets lie sealed in its inbox's file; says its port, and ends when it is told to. */
import { createServer } from "node:http";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { sqliteSecrets, sqliteStore } from "../../src/stores/sqlite.ts";
import { listenOnLoopback } from "../support/loopback.ts";

const [path = "", keyFile = ""] = process.argv.slice(2);

const secrets = sqliteSecrets(path, { keyFile });
const receiver = createReceiver({ secrets, store: sqliteStore(path), logger: silentLogger });
receiver.onAny(() => {});
await receiver.start();
const server = createServer(nodeWebhook(receiver));
process.stdout.write(`${await listenOnLoopback(server)}\n`);
