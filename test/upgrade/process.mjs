/**
 * A receiver of any version: `node process.mjs PACKAGE STORE OPTIONS`, where STORE is a file or `URL schema`, and OPTIONS are those of
 * `processes.ts`. Told what to do by messages.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [from, place, options] = process.argv.slice(2);
const { leaseMs, writes } = JSON.parse(options);
const [path, schema] = place.split(" ");
const entry = (name) => import(pathToFileURL(join(from, "dist", `${name}.js`)).href);
const { createReceiver } = await entry("index");
const { incomingOf, signedRequest, TEST_SECRET } = await entry("testing");

async function openStore() {
  if (schema === undefined) return (await entry("sqlite")).sqliteStore(path);
  return (await entry("postgres")).postgresStore(path, { schema });
}

const COLUMNS = "identity, message, sequence, attempt, late, replay";

/** As `effectOf` of the history checker. 0.1.0 knows only effects that are functions, and does not tell its handlers the sequence. */
function writeEffect({ sequence }, ctx) {
  const row = [ctx.identity, ctx.meta.lane.messageId, sequence, ctx.attempt, ctx.outOfOrder, ctx.replay];
  if (schema === undefined) {
    const insert = `insert into effect (${COLUMNS}) values (?, ?, ?, ?, ?, ?)`;
    const values = row.map((value) => (typeof value === "boolean" ? Number(value) : value));
    ctx.commit((db) => db.prepare(insert).run(...values));
  } else {
    const insert = `insert into ${schema}_effect (${COLUMNS}) values ($1, $2, $3, $4, $5, $6)`;
    ctx.commit((client) => client.query(insert, row));
  }
}

const logger = { debug() {}, info() {}, warn() {}, error() {} };
const receiver = createReceiver({ secrets: TEST_SECRET, store: await openStore(), logger, leaseMs });
const handled = [];
const handle = (event, ctx) => {
  handled.push(`${event.data.messageId} ${event.eventType}`);
  if (writes) writeEffect(event, ctx);
};
receiver.onAny(handle).onLate((event, ctx) => void (writes && handle(event, ctx)));

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
