/** What the Postgres store does in batches, beside what pgbench makes of the same server. */
import { spawnSync } from "node:child_process";
import type { InboxStore, Lease } from "../src/inbox/store.ts";
import { ORDER } from "../src/stores/database.ts";
import type { PgClient } from "../src/stores/postgres.ts";
import { type PostgresServer, startPostgres } from "../test/stores/postgres/server.ts";
import { median } from "../test/support/statistics.ts";
import { type Group, grouped, type Limit, type Row, row } from "./rows.ts";
import { MESSAGES, openPostgres, turnOf } from "./store.ts";

const BATCH = 256;
const ROUNDS = 3;
const ACCEPTED = 40 * BATCH;
const FILLED = 1_000_000;
const CLAIMED = 80 * BATCH;
/** Who ask for the next turn as soon as theirs is answered; as many clients has pgbench. The store runs two turns at once. */
const CALLERS = 4;

const limit = (name: string, target: number): Limit => ({ name, target, bound: "at least", unit: "events/s" });
const ACCEPT = limit(`Postgres: accept, ${BATCH} a batch`, 20_000);
const HANDLE = limit("Postgres: claim and complete, 1,000,000 events", 15_000);

export const postgresGroup: Group = {
  names: [ACCEPT.name, HANDLE.name],
  async run(wanted) {
    const server = await startPostgres({ inMemory: false });
    try {
      const beside = pgbench(server);
      const rows: Row[] = [];
      if (wanted.has(ACCEPT.name)) rows.push(await measure(server, ACCEPT, beside));
      if (wanted.has(HANDLE.name)) rows.push(await measure(server, HANDLE, beside));
      return rows;
    } finally {
      await server.stop();
    }
  },
};

interface Beside {
  readonly ok: boolean;
  readonly detail: string;
}

/** Transactions a second of its standard script with as many clients; it commits each by itself. */
function pgbench({ url }: PostgresServer): Beside {
  const run = (...options: readonly string[]) => spawnSync("pgbench", [...options, url], { encoding: "utf8" });
  const { error, status } = run("--initialize", "--scale=10", "--quiet");
  if (error !== undefined) return { ok: false, detail: "pgbench is missing (Debian: the package postgresql)" };
  if (status !== 0) return { ok: false, detail: `pgbench ended with ${status}` };
  const { stdout } = run(`--client=${CALLERS}`, "--jobs=2", "--time=5", "--protocol=prepared");
  const [, tps] = /tps = ([\d.]+)/.exec(stdout) ?? [];
  if (tps === undefined) return { ok: false, detail: "pgbench failed" };
  return { ok: true, detail: `pgbench: ${grouped(Number(tps))} transactions/s` };
}

/** Misses also without pgbench: alone, the figure says as much of the machine as of the store. */
async function measure({ url }: PostgresServer, limited: Limit, beside: Beside): Promise<Row> {
  const isFilled = limited === HANDLE;
  const schema = isFilled ? "bench_full" : "bench_empty";
  const store = await openPostgres(url, { schema, listen: false });
  if (isFilled) await fill(url, schema);
  const figures: number[] = [];
  for (let round = -1; round < ROUNDS; round++) {
    const figure = isFilled ? await claimAndComplete(store) : await accept(store);
    if (round >= 0) figures.push(figure);
  }
  await store.close();
  const range = `${grouped(Math.min(...figures))} to ${grouped(Math.max(...figures))}`;
  const measured = row(limited, median(figures), `${range}, ${CALLERS} callers; ${beside.detail}`);
  return { ...measured, ok: measured.ok && beside.ok };
}

async function accept(store: InboxStore<PgClient>): Promise<number> {
  const events = Array.from({ length: ACCEPTED }, () => MESSAGES.ordered.event(1));
  const start = performance.now();
  await atOnce(async () => {
    for (let accepts = events.splice(0, BATCH); accepts.length > 0; accepts = events.splice(0, BATCH)) {
      await store.step(turnOf<PgClient>({ accepts }, 0));
    }
  });
  return (ACCEPTED * 1000) / (performance.now() - start);
}

async function claimAndComplete(store: InboxStore<PgClient>): Promise<number> {
  let [claimed, completed] = [0, 0];
  const start = performance.now();
  await atOnce(async () => {
    let leases: readonly Lease[] = [];
    do {
      const settles = leases.map((lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] }) as const);
      const free = Math.min(BATCH, CLAIMED - claimed);
      claimed += free;
      ({ leases } = await store.step(turnOf<PgClient>({ settles }, free)));
      completed += settles.length;
    } while (leases.length > 0);
  });
  if (completed !== CLAIMED) throw new Error(`${completed} of ${CLAIMED} events were completed.`);
  return (CLAIMED * 1000) / (performance.now() - start);
}

async function atOnce(work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: CALLERS }, work));
}

/** A message with one event each, all of them due. */
const FILL = `
  insert into @.lane (id, name, source, tenant, ord, status, ready_at)
    select nextval('@.lane_id'), convert_to('msg_' || lpad(n::text, 12, '0'), 'UTF8'), 'service', convert_to('apc_1', 'UTF8'),
      ${ORDER.sequence}, 3, n from generate_series(1, ${FILLED}) as n;
  insert into @.event (id, lane, seq, type, source, tenant, state, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed,
    accepted, digest, has_body)
    select nextval('@.event_id'), id, 1, convert_to('message.queued', 'UTF8'), source, tenant, 0, 0, false, false, 0, false, 90000, 1, 1,
      1, sha256(name), true from @.lane order by id;
  insert into @.body (event, raw) select id, convert_to(repeat('x', 400), 'UTF8') from @.event;
  vacuum analyze @.lane; vacuum analyze @.event; vacuum analyze @.body; checkpoint;`;

async function fill(url: string, schema: string): Promise<void> {
  const { Client } = (await import("pg")).default;
  const client = new Client({ connectionString: url });
  await client.connect();
  for (const statement of FILL.replaceAll("@", schema).split(";")) await client.query(statement);
  await client.end();
}
