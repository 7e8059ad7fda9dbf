/** What storing durably before the 2xx costs a route, and what accepting and handling in one process reaches. */
import { type Rounds, type Run, takeTurns } from "./http.ts";
import { type Group, grouped, type Limit, median, type Row, ratioOf, row } from "./rows.ts";
import type { Framework, Route } from "./server.ts";

const ROUTES = ["bare", "verify", "accept", "handle"] as const satisfies readonly Route[];
const ROUNDS: Record<Framework, Rounds> = {
  express: { count: 5, requests: 8_000 },
  fastify: { count: 5, requests: 20_000 },
};
const LEAST: Record<Framework, { verify: number; bare: number }> = {
  express: { verify: 0.9, bare: 0.8 },
  fastify: { verify: 0.65, bare: 0.4 },
};
const HANDLED: Limit = {
  name: "accepted and handled, fastify",
  target: 10_000,
  bound: "at least",
  unit: "events/s",
};
const DELAY: Limit = { name: "event loop delay p99, fastify", target: 20, bound: "at most", unit: "ms" };

export function acceptGroup(framework: Framework): Group {
  const limits = (["accept", "handle"] as const).flatMap((ours) =>
    (["verify", "bare"] as const).map((theirs) => ({ ours, theirs, limit: limitOf(framework, ours, theirs) })),
  );
  const names = limits.map(({ limit }) => limit.name);
  return {
    names,
    async run(wanted) {
      const runs = await takeTurns(
        ROUTES.map((route) => ({ route, framework })),
        ROUNDS[framework],
      );
      const by = new Map<Route, Run>(runs.map((run, index) => [ROUTES[index] ?? "bare", run]));
      return limits
        .filter(({ limit }) => wanted.has(limit.name))
        .map(({ ours, theirs, limit }) => compare(limit, by.get(ours), by.get(theirs)));
    },
  };
}

function limitOf(framework: Framework, ours: "accept" | "handle", theirs: "verify" | "bare"): Limit {
  const did = ours === "accept" ? "durable accept" : "durable accept with a handler";
  const against = theirs === "verify" ? "no storing" : "bare framework";
  return { name: `${did} / ${against}, ${framework}`, target: LEAST[framework][theirs], bound: "at least" };
}

function compare(limit: Limit, ours: Run | undefined, theirs: Run | undefined): Row {
  const [a, b] = [ours?.perSecond ?? [], theirs?.perSecond ?? []];
  const processor = [ours, theirs].map((run) => median(run?.processor ?? []).toFixed(0)).join(" / ");
  const detail = `${grouped(median(a))} / ${grouped(median(b))} requests/s, ${processor} µs of processor each`;
  return row(limit, ratioOf(a, b), detail);
}

/** Whole lifecycles, so that a lane is found again; everything in one process. */
export const handleGroup: Group = {
  names: [HANDLED.name, DELAY.name],
  async run(wanted) {
    const rounds = { count: 4, requests: 30_000, lifecycles: true };
    const [run] = await takeTurns([{ route: "handle", framework: "fastify" }], rounds);
    const handled = run?.handledPerSecond ?? [];
    const delays = run?.delayP99Ms ?? [];
    const p99 = `${median(run?.processor ?? []).toFixed(0)} µs of processor, p99 of an answer ${median(run?.p99Ms ?? []).toFixed(1)} ms`;
    const rows = [
      row(HANDLED, median(handled), `${grouped(Math.min(...handled))} to ${grouped(Math.max(...handled))}, ${p99}`),
      row(DELAY, median(delays), `at full load with a handler, ${delays.length} rounds`),
    ];
    return rows.filter(({ name }) => wanted.has(name));
  },
};
