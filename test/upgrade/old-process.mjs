/** A receiver of version 0.1.0: `node old-process.mjs PACKAGE STORE`, where STORE is a file or `postgres:URL schema`. Told what to do by messages. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [from, place] = process.argv.slice(2);
const entry = (name) => import(pathToFileURL(join(from, "dist", `${name}.js`)).href);
const { createReceiver } = await entry("index");
const { incomingOf, signedRequest, TEST_SECRET } = await entry("testing");

async function storeAt(text) {
  const [url, schema] = text.split(" ");
  if (schema === undefined) return (await entry("sqlite")).sqliteStore(url);
  return (await entry("postgres")).postgresStore(url, { schema });
}

const logger = { debug() {}, info() {}, warn() {}, error() {} };
const receiver = createReceiver({ secrets: TEST_SECRET, store: await storeAt(place), logger });
const handled = [];
receiver.onAny((event) => void handled.push(`${event.data.messageId} ${event.eventType}`)).onLate(() => {});

const DO = {
  start: () => receiver.start(),
  send: async (content) => (await receiver.handle(incomingOf(signedRequest(content)))).status,
  handled: () => handled,
  stop: () => receiver.stop(),
};

process.on("message", async ({ id, act, content }) => {
  try {
    process.send({ id, result: (await DO[act](content)) ?? null });
  } catch (error) {
    process.send({ id, code: error.code ?? String(error) });
  }
  if (act === "stop") process.disconnect();
});
process.send({ id: 0, result: "ready" });
