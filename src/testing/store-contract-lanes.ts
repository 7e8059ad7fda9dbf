/** The store contract on looking for lanes. */
import type { LaneRecord, LaneSummary } from "../inbox/record.ts";
import type { LaneQuery } from "../inbox/store.ts";
import type { Bench, ContractCase } from "./store-contract-bench.ts";
import { DAY, POLICY } from "./store-contract-retention.ts";

async function found(bench: Bench, query: Partial<LaneQuery> = {}): Promise<readonly string[]> {
  const { items } = await bench.store.findLanes({ limit: 1_000, ...query });
  return items.map(({ key }) => key.messageId);
}

function factsOf({ events: _events, gaps: _gaps, attempts: _attempts, ...facts }: LaneRecord) {
  return facts;
}

export const laneCases: readonly ContractCase[] = [
  {
    name: "shows lanes with their newest event, those made last first",
    async run(bench) {
      const wish = { peer: "+15550001", externalReference: "order 7" };
      await bench.accept(bench.of("a", 3, wish), bench.of("b", 0, { lane: { tag: "inbound" } }));
      await bench.clock.advance(1_000);
      await bench.accept(bench.of("a", 1, { eventType: "message.queued" }));
      const { items, next } = await bench.store.findLanes({ limit: 10 });
      bench.expect([items.map(({ key }) => key), next]).toEqual([
        [
          { apiClientId: "client", tag: "inbound", messageId: "b" },
          { apiClientId: "client", tag: "outbound", messageId: "a" },
        ],
        null,
      ]);
      const [, a] = items as readonly [LaneSummary, LaneSummary];
      const lane = await bench.lane("a");
      const { id } = await bench.at(1, "a");
      const newest = { id, eventType: "message.queued", sequence: 1, acceptedAt: bench.clock.now(), state: "pending" };
      bench.expect(a).toEqual({ ...factsOf(lane), newest });
      bench.expect(a).toMatchObject({ peer: "+15550001", externalReference: "order 7" });
    },
  },
  {
    name: "finds lanes of every status, alone and together",
    async run(bench) {
      const ids = ["idle", "blocked", "leased", "backoff"];
      await bench.accept(...ids.map((id) => bench.of(id, 1)));
      const [idle, blocked, , backoff] = await bench.claim();
      if (idle === undefined || blocked === undefined || backoff === undefined) throw new Error("All lanes were due.");
      await bench.settle(bench.complete(idle), bench.dead(blocked, "block"), bench.retry(backoff, 60_000));
      await bench.accept(bench.of("gap", 3), bench.of("ready", 1));
      for (const status of ["idle", "blocked", "leased", "backoff", "gap", "ready"] as const)
        bench.expect(await found(bench, { statuses: [status] })).toEqual([status]);
      bench.expect(await found(bench, { statuses: ["gap", "idle", "blocked"] })).toEqual(["gap", "blocked", "idle"]);
      bench.expect(await found(bench, { statuses: ["leased", "leased"], tag: "outbound" })).toEqual(["leased"]);
      bench.expect(await found(bench, { statuses: [] })).toEqual([]);
      bench.expect(await found(bench, { statuses: ["blocked"], tag: "inbound" })).toEqual([]);
    },
  },
  {
    name: "finds a lane once, whatever becomes of it meanwhile",
    async run(bench) {
      const wish = { statuses: ["ready", "leased"], tag: "outbound" } as const;
      await bench.accept(bench.of("a", 1), bench.of("a", 2));
      const [whenReady, leases] = await Promise.all([found(bench, wish), bench.claim()]);
      bench.expect(whenReady).toEqual(["a"]);
      const complete = leases.map((lease) => bench.complete(lease));
      const [whenLeased] = await Promise.all([found(bench, wish), bench.settle(...complete)]);
      bench.expect(whenLeased).toEqual(["a"]);
    },
  },
  {
    name: "finds lanes by tag, client, number, the types they are without, and since when they are quiet",
    async run(bench) {
      const at = bench.clock.now();
      const terminal = ["message.delivery", "message.failed"];
      await bench.accept(
        bench.of("open", 1, { peer: "+15550001" }),
        bench.of("delivered", 1),
        bench.of("failed", 2, { eventType: "message.failed" }),
        bench.of("in", 0, { lane: { tag: "inbound" }, eventType: "message.inbound" }),
      );
      await bench.clock.advance(1_000);
      await bench.accept(bench.of("delivered", 2, { eventType: "message.delivery" }));
      await bench.accept(bench.of("young", 1, { lane: { apiClientId: "second" } }));
      bench.expect(await found(bench, { tag: "outbound", without: terminal })).toEqual(["young", "open"]);
      bench.expect(await found(bench, { without: terminal, quietSince: at, tag: "outbound" })).toEqual(["open"]);
      bench.expect(await found(bench, { quietSince: at })).toEqual(["in", "failed", "open"]);
      bench.expect(await found(bench, { quietSince: at - 1 })).toEqual([]);
      bench.expect(await found(bench, { without: ["message.never"], tag: "inbound" })).toEqual(["in"]);
      bench.expect((await found(bench, { without: [] })).length).toBe(5);
      bench.expect(await found(bench, { peer: "+15550001" })).toEqual(["open"]);
      bench.expect(await found(bench, { peer: "+1555" })).toEqual([]);
      bench.expect(await found(bench, { peer: null, tag: "outbound" })).toEqual(["young", "failed", "delivered"]);
      bench.expect(await found(bench, { apiClientId: "second" })).toEqual(["young"]);
      bench.expect(await found(bench, { apiClientId: "none" })).toEqual([]);
    },
  },
  {
    name: "takes no lane for one without a type where its latest event was pruned, which may have been of it",
    async run(bench) {
      const wish = { without: ["message.delivery"], tag: "outbound" } as const;
      await bench.accept(bench.of("ended", 1), bench.of("dead", 1), bench.of("pruned", 1));
      const [ended, dead, pruned] = await bench.claim();
      if (ended === undefined || dead === undefined || pruned === undefined) throw new Error("All lanes were due.");
      await bench.settle(bench.dead(ended), bench.dead(dead), bench.complete(pruned));
      await bench.handle(bench.of("ended", 2, { eventType: "message.delivery" }));
      bench.expect(await found(bench, wish)).toEqual(["pruned", "dead"]);
      await bench.clock.advance(31 * DAY);
      await bench.accept(bench.of("new", 3), bench.of("dead", 4));
      await bench.store.prune(POLICY);
      bench.expect((await bench.lane("ended")).events.map(({ sequence }) => sequence)).toEqual([1]);
      bench.expect(await found(bench, wish)).toEqual(["new", "dead"]);
      bench.expect(await found(bench, { ...wish, without: [] })).toEqual(["new", "dead", "ended"]);
    },
  },
  {
    name: "pages through lanes, also of several statuses",
    async run(bench) {
      const ids = ["1", "2", "3", "4", "5"];
      await bench.accept(...ids.map((id) => bench.of(id, Number(id) % 2)));
      const gaps = [{}, { tag: "outbound" }, { statuses: ["gap", "ready"] }] as const;
      for (const query of gaps) {
        const pages: string[][] = [];
        for (let after: number | null = 1e9; after !== null; ) {
          const page = await bench.store.findLanes({ ...query, limit: 2, after });
          pages.push(page.items.map(({ key }) => key.messageId));
          after = page.next;
        }
        bench.expect(pages).toEqual([["5", "4"], ["3", "2"], ["1"]]);
      }
    },
  },
];
