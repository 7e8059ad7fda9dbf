/** What an event takes of a Postgres server's disk, and how fast it is given back: the figures of the model in docs/scaling.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { InboxStore, Lease, PrunePolicy } from "../src/inbox/store.ts";
import type { PgClient } from "../src/stores/postgres.ts";
import { startPostgres } from "../test/stores/postgres/server.ts";
import { nextMessageId } from "./deliveries.ts";
import { type Group, grouped, type Limit, type Row, row } from "./rows.ts";
import { eventOf, openPostgres, turnOf } from "./store.ts";

const MESSAGES = 20_480;
const EVENTS = 3 * MESSAGES;
const BATCH = 256;
const NEVER_MS = 1e12;
/** Rows of a pruning transaction, as a receiver prunes. */
const PRUNED = 500;

// The program runs from .build/bench; the document lies beside its source.
const DOCUMENT = readFileSync(join(import.meta.dirname, "..", "..", "docs", "scaling.md"), "utf8");

/** A figure that must be what the model reckons with. */
const bytes = (what: string, constant: string): Limit => ({
  ...{ name: `Postgres model: ${what}`, target: documented(constant), bound: "within 2 % of", unit: "bytes" },
});
const LIMITS = {
  whole: bytes("disk of an event with its body", "bytesWithBody"),
  identity: bytes("disk of an event whose body is pruned", "bytesWithoutBody"),
  log: bytes("WAL of an event, accepted and handled", "bytesOfLog"),
  prune: { name: "Postgres model: pruning", target: 5_000, bound: "at least", unit: "events/s" },
} as const satisfies Record<string, Limit>;

function documented(constant: string): number {
  const [, digits] = new RegExp(`^const ${constant} = ([\\d_]+);`, "m").exec(DOCUMENT) ?? [];
  if (digits === undefined) throw new Error(`docs/scaling.md has no constant ${constant}.`);
  return Number(digits.replaceAll("_", ""));
}

export const footprintGroup: Group = {
  names: Object.values(LIMITS).map(({ name }) => name),
  async run(wanted) {
    const server = await startPostgres({ inMemory: false });
    try {
      const rows = await measure(server.url);
      return rows.filter(({ name }) => wanted.has(name));
    } finally {
      await server.stop();
    }
  },
};

async function measure(url: string): Promise<readonly Row[]> {
  const { Client } = (await import("pg")).default;
  const database = new Client({ connectionString: url });
  await database.connect();
  const number = async (sql: string) => Number((await database.query(sql)).rows[0].number);
  const store = await openPostgres(url);
  try {
    await database.query("checkpoint");
    const logged = await number(LOG);
    await acceptAndHandle(store);
    const log = (await number(LOG)) - logged;
    await database.query("vacuum analyze");
    const whole = await number(SIZE);
    const [bodies, bodiesMs] = await prune(store, { handledBodiesMs: 0, identitiesMs: NEVER_MS });
    await database.query("vacuum analyze");
    const identity = (await number(SIZE)) - (await number(BODIES));
    const [events, eventsMs] = await prune(store, { handledBodiesMs: 0, identitiesMs: 0 });
    if (bodies !== EVENTS || events !== EVENTS) throw new Error(`${bodies} and ${events} of ${EVENTS} were pruned.`);
    const many = `${grouped(EVENTS)} events, three a message`;
    const perSecond = ([count, ms]: [number, number]) => grouped((count * 1000) / ms);
    return [
      row(LIMITS.whole, whole / EVENTS, many),
      row(LIMITS.identity, identity / EVENTS, many),
      row(LIMITS.log, log / EVENTS, `${many}, after a checkpoint`),
      row(
        LIMITS.prune,
        (EVENTS * 1000) / (bodiesMs + eventsMs),
        `bodies ${perSecond([bodies, bodiesMs])}/s, identities ${perSecond([events, eventsMs])}/s, one process, ${PRUNED} a transaction`,
      ),
    ];
  } finally {
    await store.close();
    await database.end();
  }
}

const LOG = "select pg_current_wal_lsn() - '0/0'::pg_lsn as number";
const SIZE = `select sum(pg_total_relation_size(oid)) as number from pg_class
  where relnamespace = 'oncehook'::regnamespace and relkind = 'r'`;
const BODIES = "select pg_total_relation_size('oncehook.body') as number";

/** As a receiver does: each turn settles what the one before claimed. The events of a message come a while apart. */
async function acceptAndHandle(store: InboxStore<PgClient>): Promise<void> {
  const ids = Array.from({ length: MESSAGES }, nextMessageId);
  let leases: readonly Lease[] = [];
  for (let next = 0; next < EVENTS || leases.length > 0; next += BATCH) {
    const sequence = Math.floor(next / MESSAGES) + 1;
    const accepts = ids.slice(next % MESSAGES, (next % MESSAGES) + BATCH).map((id) => eventOf(id, sequence));
    const settles = leases.map((lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] }) as const);
    ({ leases } = await store.step(turnOf<PgClient>({ settles, ...(next < EVENTS ? { accepts } : {}) }, BATCH)));
  }
  // Nothing is pruned that ended after the newest timestamp.
  await store.step(turnOf<PgClient>({ accepts: [eventOf(nextMessageId(), 1)] }, 0));
}

async function prune(
  store: InboxStore<PgClient>,
  policy: Pick<PrunePolicy, "handledBodiesMs" | "identitiesMs">,
): Promise<[number, number]> {
  let pruned = 0;
  const start = performance.now();
  for (let more = true; more; ) {
    const result = await store.prune({ ...policy, otherBodiesMs: NEVER_MS, deadMs: NEVER_MS, batch: PRUNED });
    pruned += result.bodies + result.events;
    more = result.more;
  }
  return [pruned, performance.now() - start];
}
