import { createHash } from "node:crypto";
import pg from "pg";
import { systemClock } from "../src/internal/clock.ts";
import { silentLogger } from "../src/internal/logger.ts";
import { thisInstance } from "../src/internal/process.ts";
import { postgresStore } from "../src/stores/postgres.ts";

const pool = new (pg as any).Pool({ connectionString: "postgres://postgres@127.0.0.1:5432/test", max: 8 });
await pool.query("drop schema if exists oncehook_bench cascade");
const store = postgresStore(pool, { schema: "oncehook_bench", listen: false });
await store.open({
  clock: systemClock,
  logger: silentLogger,
  name: "default",
  firstSequence: 1,
  toleranceMs: 1000,
  migrate: "auto",
  instance: thisInstance(),
} as any);
const event = (m: number, s: number) => {
  const raw = Buffer.from(
    JSON.stringify({
      eventType: "message.sent",
      direction: "outbound",
      occurredAt: 1,
      apiClientId: "c",
      messageId: `msg_${m}`,
      sequence: s,
      data: {
        messageId: `msg_${m}`,
        externalReference: "order-1",
        sendFrom: "+15550000000",
        to: "+15551111111",
        status: "sent",
        error: null,
        pad: "x".repeat(100),
      },
    }),
  );
  return {
    lane: { apiClientId: "c", tag: "outbound", messageId: `msg_${String(m).padStart(9, "0")}` },
    sequence: s,
    eventType: ["message.queued", "message.sent", "message.delivery"][s - 1],
    occurredAt: 1,
    signedAt: Date.now(),
    gapWaitMs: 1000,
    digest: createHash("sha256").update(raw).digest(),
    raw,
    trace: null,
    peer: "+15551111111",
    externalReference: "order-1",
  };
};
const base = {
  settles: [],
  accepts: [],
  quarantines: [],
  repeats: [],
  lateEvents: "record",
  quarantineQuota: { maxRows: 10, maxBytes: 1e6 },
} as any;
const B = Number(process.argv[2] ?? 256),
  TOTAL = Number(process.argv[3] ?? 50000);
const claim0 = { limit: 0, leaseMs: 30000, maxAttempts: 12, onDead: "continue", mode: "ordinary" };
let t = performance.now();
const all: any[] = [];
for (let m = 0; m < TOTAL / 3; m++) for (const s of [1, 2, 3]) all.push([m, s]);
const gen0 = performance.now();
const batches: any[] = [];
for (let i = 0; i < all.length; i += B) batches.push(all.slice(i, i + B).map(([m, s]) => event(m, s)));
console.log("gen", (performance.now() - gen0).toFixed(0));
t = performance.now();
const W = Number(process.argv[4] ?? 1);
const it = batches[Symbol.iterator]();
await Promise.all(
  Array.from({ length: W }, async () => {
    for (const accepts of it) await store.step({ ...base, accepts, claim: claim0 });
  }),
);
let ms = performance.now() - t;
console.log(`accept ${((all.length / ms) * 1000).toFixed(0)}/s at ${B}`);
console.log((globalThis as any).T);
(globalThis as any).T = {};
t = performance.now();
let done = 0;
let leases: any[] = [];
for (;;) {
  const r = await store.step({
    ...base,
    settles: leases.map((lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] })),
    claim: { ...claim0, limit: B },
  });
  done += leases.length;
  leases = r.leases as any[];
  if (leases.length === 0) break;
}
ms = performance.now() - t;
console.log(`claim+complete ${((done / ms) * 1000).toFixed(0)}/s (${done})`);
console.log((globalThis as any).T);
await store.close();
await pool.end();
