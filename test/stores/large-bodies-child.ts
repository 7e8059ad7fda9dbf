/** One process that fills an inbox with large bodies, or reads and handles them and prints what memory that took. */
import { createHmac } from "node:crypto";
import pg from "pg";
import { createReceiver, type InboxStore } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { github } from "../../src/sources/github.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { incomingOf } from "../../src/tools/testing/deliver.ts";

const BODIES = 40;
const MIB = 1024 * 1024;

const [mode = "", place = "", schema = ""] = process.argv.slice(2);
const pool = schema === "" ? null : new pg.Pool({ connectionString: place, max: 2 });
const store = (pool === null ? sqliteStore(place) : postgresStore(pool, { schema })) as InboxStore<unknown>;
const source = github({ secrets: "s", lane: (event) => (event as { readonly lane?: string }).lane ?? null });
const receiver = createReceiver({ source, store, logger: silentLogger });
let handled = 0;
receiver.onAny(() => void handled++);

let peak = 0;
setInterval(() => look(), 50).unref();
function look(): number {
  globalThis.gc?.();
  const { rss } = process.memoryUsage();
  peak = Math.max(peak, rss);
  return rss;
}

/** Bodies in lanes of their own, then as many of one lane. Few at once: that is not what is measured. */
async function fill(): Promise<void> {
  const text = "x".repeat(10 * MIB);
  for (let n = 0; n < BODIES; n++) {
    const body = Buffer.from(`{"n":${n},${n % 2 === 0 ? '"lane":"one",' : ""}"text":"${text}"}`);
    const signature = `sha256=${createHmac("sha256", "s").update(body).digest("hex")}`;
    const headers = { "x-github-event": "push", "x-github-delivery": `d${n}`, "x-hub-signature-256": signature };
    const { status } = await receiver.handle(incomingOf({ method: "POST", headers, body }));
    if (status !== 200) throw new Error(`${status} for body ${n}`);
  }
}

/** More than the process held before, in MiB, at its peak. */
async function grows(work: () => Promise<unknown>): Promise<number> {
  const before = look();
  peak = 0;
  await work();
  look();
  return Math.round((peak - before) / MIB);
}

receiver.pause();
await receiver.start();
if (mode === "fill") await fill();
else {
  const { inbox } = receiver;
  const lanes = new Set((await inbox.find({ limit: 100 })).items.map(({ laneId }) => laneId));
  const lists = await grows(async () => {
    for (const order of ["newest", "oldest"] as const) await inbox.find({ limit: 1_000, order });
    await inbox.findLanes();
  });
  const view = await grows(async () => {
    for (const id of lanes) {
      const lane = await inbox.lane(id);
      if (lane !== null && lane.events.length > 1) await inbox.bodies(lane.events.map((event) => event.id));
    }
  });
  const worker = await grows(async () => {
    receiver.resume();
    await receiver.drain();
  });
  process.stdout.write(JSON.stringify({ handled, lists, view, worker }));
}
await receiver.stop();
await pool?.end();
