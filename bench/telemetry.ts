/** What telemetry costs: with nobody listening, and with OpenTelemetry, which makes a span for each event that is handled. */
import { median } from "../test/support/statistics.ts";
import { takeTurns } from "./http.ts";
import { type Group, grouped, type Limit, ratioOf, row } from "./rows.ts";
import type { Route } from "./server.ts";

const ROUTES = ["unwatched", "accept", "watched", "handle", "traced"] as const satisfies readonly Route[];
/** A difference of a hundredth needs more rounds than a half does. */
const ROUNDS = { count: 11, requests: 20_000 };

const SILENT: Limit = {
  name: "accept, telemetry without listeners / cut out, fastify",
  target: 0.98,
  bound: "at least",
};
const WATCHED: Limit = { name: "accept, OpenTelemetry / no listeners, fastify", target: 0.85, bound: "at least" };
const TRACED: Limit = { name: "handle, OpenTelemetry / no listeners, fastify", target: 0.85, bound: "at least" };

export const telemetryGroup: Group = {
  names: [SILENT.name, WATCHED.name, TRACED.name],
  async run(wanted) {
    const runs = await takeTurns(
      ROUTES.map((route) => ({ route, framework: "fastify" })),
      ROUNDS,
    );
    if (runs.at(-1)?.spans === 0) throw new Error("OpenTelemetry made no span: there is nothing to compare.");
    // The rate of a server that has a core to itself is one over its processor time; unlike the clock, that is the server's alone.
    const [unwatched, silent, watched, handled, traced] = runs.map(({ processor }) =>
      processor.map((microseconds) => 1e6 / microseconds),
    );
    const compare = (limit: Limit, ours: readonly number[] = [], theirs: readonly number[] = []) =>
      row(
        limit,
        ratioOf(ours, theirs),
        `${grouped(median(ours))} / ${grouped(median(theirs))} requests per second of processor`,
      );
    const rows = [
      compare(SILENT, silent, unwatched),
      compare(WATCHED, watched, silent),
      compare(TRACED, traced, handled),
    ];
    return rows.filter(({ name }) => wanted.has(name));
  },
};
