/** Whether an inbox with a million events and 200,000 waiting messages is slower than an empty one. */
import { join } from "node:path";
import { median } from "../test/support/statistics.ts";
import { fillInbox } from "./filled.ts";
import { inDirectory, takeTurns } from "./http.ts";
import { type Group, grouped, type Limit, type Point, type Row, ratioOf, row } from "./rows.ts";
import { MESSAGES, openStore, turnOf } from "./store.ts";

/** Handled events, and a fifth as many messages that wait; the charts also show the tenth. */
const STORED = { full: 1_000_000, tenth: 100_000, empty: 0 };
const PARKED = 0.2;
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
        const paths = await fillAll(directory, ids);
        const { claims, accepts } = await atTheStore(paths, ids);
        if (ids === "random") rows.push(compare(LIMITS.random, accepts, "accept, random ids"));
        else {
          rows.push(
            compare(LIMITS.claim, claims, "claim, ordered ids"),
            compare(LIMITS.accept, accepts, "accept, ordered ids"),
          );
          rows.push(await overHttp(paths.full));
        }
      }
      return rows.filter(({ name }) => wanted.has(name));
    }),
};

type Size = keyof typeof STORED;
const SIZES: readonly Size[] = ["full", "tenth", "empty"];
type Paths = Readonly<Record<Size, string>>;

/** Microseconds an event, of each round. */
type Costs = Readonly<Record<Size, number[]>>;

async function fillAll(directory: string, ids: keyof typeof MESSAGES): Promise<Paths> {
  const pathOf = (size: Size) => join(directory, `${ids}-${size}.db`);
  for (const size of SIZES) {
    const handled = STORED[size];
    if (handled > 0) await fillInbox(pathOf(size), { handled, parked: handled * PARKED, ids });
  }
  return { full: pathOf("full"), tenth: pathOf("tenth"), empty: pathOf("empty") };
}

function compare(limited: Limit, costs: Costs, series: string): Row {
  const each = (size: Size) => `${median(costs[size]).toFixed(1)} µs`;
  const detail = `${each("full")} / ${each("empty")} an event, ${BATCH} a turn; ${each("tenth")} with a tenth`;
  const points = SIZES.map((size): Point => {
    return { chart: "cost", series, stored: STORED[size], microseconds: median(costs[size]) };
  });
  return { ...row(limited, ratioOf(costs.full, costs.empty), detail), points };
}

async function atTheStore(paths: Paths, ids: keyof typeof MESSAGES) {
  const stores = {
    full: await openStore(paths.full),
    tenth: await openStore(paths.tenth),
    empty: await openStore(paths.empty),
  };
  const claims: Costs = { full: [], tenth: [], empty: [] };
  const accepts: Costs = { full: [], tenth: [], empty: [] };
  for (let round = -1; round < ROUNDS; round++) {
    for (const size of round % 2 === 0 ? SIZES : SIZES.toReversed()) {
      const spent = await acceptAndClaim(stores[size], ids);
      if (round < 0) continue;
      claims[size].push((1000 * spent.claimMs) / (TURNS * BATCH));
      accepts[size].push((1000 * spent.acceptMs) / (TURNS * BATCH));
    }
  }
  await Promise.all(SIZES.map((size) => stores[size].close()));
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
