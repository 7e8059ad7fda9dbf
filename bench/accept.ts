/** What storing durably before the 2xx costs a route. */
import { median } from "../test/support/statistics.ts";
import { type Rounds, type Run, takeTurns } from "./http.ts";
import { type Group, grouped, type Limit, type Point, type Row, ratioOf, row } from "./rows.ts";
import type { Framework, Route } from "./server.ts";

const ROUTES = ["bare", "verify", "accept", "handle"] as const satisfies readonly Route[];
type Compared = Exclude<Framework, "node">;

const ROUNDS: Record<Compared, Rounds> = {
  express: { count: 5, requests: 8_000 },
  fastify: { count: 5, requests: 20_000 },
};
/** Of requests a second; a handler, which the others do not have, takes its share. */
const LEAST: Record<Compared, Record<"accept" | "handle", { readonly verify: number; readonly bare: number }>> = {
  express: { accept: { verify: 0.95, bare: 0.9 }, handle: { verify: 0.9, bare: 0.8 } },
  fastify: { accept: { verify: 0.75, bare: 0.55 }, handle: { verify: 0.65, bare: 0.4 } },
};

export function acceptGroup(framework: Compared): Group {
  const limits = (["accept", "handle"] as const).flatMap((ours) =>
    (["verify", "bare"] as const).map((theirs) => ({ ours, theirs, limit: limitOf(framework, ours, theirs) })),
  );
  return {
    names: limits.map(({ limit }) => limit.name),
    async run(wanted) {
      const runs = await takeTurns(
        ROUTES.map((route) => ({ route, framework })),
        ROUNDS[framework],
      );
      const by = new Map<Route, Run>(runs.map((run, index) => [ROUTES[index] ?? "bare", run]));
      return limits
        .filter(({ limit }) => wanted.has(limit.name))
        .map(({ ours, theirs, limit }) => {
          const compared = compare(limit, by.get(ours), by.get(theirs));
          return framework === "fastify" && ours === "accept"
            ? { ...compared, points: [pointOf(theirs, by)] }
            : compared;
        });
    },
  };
}

const STRIPE: Limit = {
  name: "durable accept of Stripe's events / of the default source's, fastify",
  target: 0.9,
  bound: "at least",
};

/** What another source costs, whose events are in order by position. */
export const sourceGroup: Group = {
  names: [STRIPE.name],
  async run() {
    const routes = (["stripe", "accept"] as const).map((route) => ({ route, framework: "fastify" as const }));
    const [stripe, service] = await takeTurns(routes, ROUNDS.fastify);
    return [compare(STRIPE, stripe, service)];
  },
};

function limitOf(framework: Compared, ours: "accept" | "handle", theirs: "verify" | "bare"): Limit {
  const did = ours === "accept" ? "durable accept" : "durable accept with a handler";
  const against = theirs === "verify" ? "no storing" : "bare framework";
  return { name: `${did} / ${against}, ${framework}`, target: LEAST[framework][ours][theirs], bound: "at least" };
}

function compare(limit: Limit, ours: Run | undefined, theirs: Run | undefined): Row {
  const [a, b] = [ours?.perSecond ?? [], theirs?.perSecond ?? []];
  const processor = [ours, theirs].map((run) => median(run?.processor ?? []).toFixed(0)).join(" / ");
  const detail = `${grouped(median(a))} / ${grouped(median(b))} requests/s, ${processor} µs of processor each`;
  return row(limit, ratioOf(a, b), detail);
}

function pointOf(side: "verify" | "bare", by: ReadonlyMap<Route, Run>): Point {
  return { chart: "throughput", side, perSecond: median(by.get(side)?.perSecond ?? []) };
}
