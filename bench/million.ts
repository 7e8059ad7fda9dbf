/** Whether an inbox with a million events and 200,000 waiting messages is slower than an empty one. */
import { join } from "node:path";
import { fillInbox } from "./filled.ts";
import { inDirectory, takeTurns } from "./http.ts";
import { type Group, grouped, type Limit, median, type Row, ratioOf, row } from "./rows.ts";
import { MESSAGES, openStore, turnOf } from "./store.ts";

const HANDLED = 1_000_000;
const PARKED = 200_000;
const BATCH = 64;
const TURNS = 400;
const ROUNDS = 7;

const limit = (name: string, target: number): Limit => ({ name: `full / empty: ${name}`, target, bound: "at most" });
const LIMITS = {
  claim: limit("time of a claim at the store", 1.25),
  accept: limit("time of an accept at the store, ordered ids", 1.25),
  random: limit("time of an accept at the store, random ids", 2),
  http: limit("time of an accept over HTTP, fastify", 1.25),
};

export const millionGroup: Group = {
  names: Object.values(LIMITS).map(({ name }) => name),
  run: (wanted) =>
    inDirectory(async (directory) => {
      const rows: Row[] = [];
      for (const ids of ["ordered", "random"] as const) {
        const names = ids === "random" ? [LIMITS.random] : [LIMITS.claim, LIMITS.accept, LIMITS.http];
        if (!names.some(({ name }) => wanted.has(name))) continue;
        const full = join(directory, `${ids}.db`);
        await fillInbox(full, { handled: HANDLED, parked: PARKED, ids });
        const { claims, accepts } = await atTheStore(full, join(directory, `${ids}-empty.db`), ids);
        if (ids === "random") rows.push(compare(LIMITS.random, accepts));
        else rows.push(compare(LIMITS.claim, claims), compare(LIMITS.accept, accepts), await overHttp(full));
      }
      return rows.filter(({ name }) => wanted.has(name));
    }),
};

interface Pair {
  readonly full: number[];
  readonly empty: number[];
}

function compare(limited: Limit, { full, empty }: Pair): Row {
  const perEvent = (values: readonly number[]) => `${(1000 * median(values)).toFixed(1)} µs`;
  return row(limited, ratioOf(full, empty), `${perEvent(full)} / ${perEvent(empty)} an event, ${BATCH} a turn`);
}

async function atTheStore(full: string, empty: string, ids: keyof typeof MESSAGES) {
  const stores = { full: await openStore(full), empty: await openStore(empty) };
  const claims: Pair = { full: [], empty: [] };
  const accepts: Pair = { full: [], empty: [] };
  for (let round = -1; round < ROUNDS; round++) {
    for (const side of ["full", "empty"] as const) {
      const spent = await acceptAndClaim(stores[side], ids);
      if (round < 0) continue;
      claims[side].push(spent.claimMs / (TURNS * BATCH));
      accepts[side].push(spent.acceptMs / (TURNS * BATCH));
    }
  }
  await Promise.all([stores.full.close(), stores.empty.close()]);
  return { claims, accepts };
}

async function acceptAndClaim(store: Awaited<ReturnType<typeof openStore>>, ids: keyof typeof MESSAGES) {
  let [acceptMs, claimMs] = [0, 0];
  for (let turn = 0; turn < TURNS; turn++) {
    const accepts = Array.from({ length: BATCH }, () => MESSAGES[ids].event(1));
    const start = performance.now();
    await store.step(turnOf({ accepts }, 0));
    const accepted = performance.now();
    const { leases } = await store.step(turnOf({}, BATCH));
    acceptMs += accepted - start;
    claimMs += performance.now() - accepted;
    if (leases.length !== BATCH) throw new Error(`${leases.length} of ${BATCH} events were claimed.`);
    const settles = leases.map((lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] }) as const);
    await store.step(turnOf({ settles }, 0));
  }
  return { acceptMs, claimMs };
}

async function overHttp(inbox: string): Promise<Row> {
  const runs = await takeTurns(
    [
      { route: "accept", framework: "fastify", inbox },
      { route: "accept", framework: "fastify" },
    ],
    { count: 5, requests: 16_000 },
  );
  const [full, empty] = runs.map(({ perSecond }) => perSecond);
  const detail = `${grouped(median(full ?? []))} / ${grouped(median(empty ?? []))} requests/s`;
  return row(LIMITS.http, ratioOf(empty ?? [], full ?? []), detail);
}
