/** SQLite's fast paths write what the shared lane rules write: every column of every table is compared. */
import { afterEach, describe, expect, it } from "vitest";
import type { NewEvent } from "../../src/inbox/record.ts";
import type { Lease } from "../../src/inbox/store.ts";
import { type AcceptMode, acceptAlone, acceptByRules, place } from "../../src/stores/sqlite/batch.ts";
import { completeLast, SqliteLanes } from "../../src/stores/sqlite/lanes.ts";
import { type OpenInbox, openInbox } from "../../src/stores/sqlite/open-inbox.ts";
import { createFakeClock, type FakeClock } from "../../src/tools/testing/fake-clock.ts";
import { makePath } from "./sqlite-place.ts";
import { contextOf, event, turn } from "./sqlite-turns.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const WAIT_MS = 90_000;
const TABLES = ["lane", "event", "body", "conflict", "gap", "attempt", "counter"];
const CLAIM = turn({ claim: { limit: 1 } }).claim;
const inboxes: OpenInbox[] = [];

afterEach(async () => {
  for (const inbox of inboxes.splice(0)) await inbox.close();
});

async function openAt(clock: FakeClock): Promise<OpenInbox> {
  const path = makePath();
  const limits = { busyTimeoutMs: 0, minFreeBytes: 0, maxDatabaseBytes: Number.MAX_SAFE_INTEGER };
  const own = { driver: undefined, effects: undefined, onOpen: undefined };
  const inbox = await openInbox({ path, location: path, ...limits, ...own }, contextOf({ clock }));
  inboxes.push(inbox);
  return inbox;
}

/** All rows of the tables that the fast paths write to, without the tokens of leases, which are random. */
function rowsOf({ db }: OpenInbox): Record<string, unknown[]> {
  const rows = (table: string) => db.prepare(`select * from oncehook_${table}`).all() as { token?: number }[];
  return Object.fromEntries(
    TABLES.map((table) => [table, rows(table).map((row) => ({ ...row, token: (row.token ?? 0) > 0 }))]),
  );
}

const at = (sequence: number, wish: Partial<NewEvent> = {}): NewEvent =>
  event("m", sequence, { occurredAt: START, signedAt: START, ...wish });
const alone = (ownId: string, wish: Partial<NewEvent> = {}): NewEvent =>
  at(0, { ownId, lane: { source: "code", tenant: null, name: null, order: null }, ...wish });
const inLane = (order: "position" | "arrival", ownId: string, position = 0): NewEvent =>
  at(position, { ownId, gapWaitMs: 0, lane: { source: "code", tenant: "a", name: "sub_1", order } });
const complete = (lease: Lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] }) as const;

/** What happened before: events that were accepted and handled, and the end of a gap's wait. */
type Past = readonly (NewEvent | "wait")[];

/** Two inboxes with the same past. */
async function twins(past: Past): Promise<readonly [OpenInbox, OpenInbox]> {
  const clock = createFakeClock(START);
  const pair = [await openAt(clock), await openAt(clock)] as const;
  for (const step of past) {
    if (step === "wait") await clock.advance(WAIT_MS);
    for (const inbox of pair) {
      if (step !== "wait") await inbox.step(turn({ accepts: [step] }));
      const { leases } = await inbox.step(turn({ claim: { limit: 9 } }));
      await inbox.step(turn({ settles: leases.map(complete) }));
    }
  }
  return pair;
}

describe("acceptAlone()", () => {
  const cases: readonly (readonly [what: string, past: Past, incoming: NewEvent])[] = [
    ["a message's first event", [], at(1, { peer: "+1", externalReference: "order 1", trace: "00-1" })],
    ["an event by itself", [], alone("evt_1", { head: "{}", untimed: true })],
    ["an event that its body identifies", [], alone("ab".repeat(32))],
    ["the first event by position", [], inLane("position", "evt_1", 5)],
    ["a later event by position", [inLane("position", "evt_1", 5)], inLane("position", "evt_2", 6)],
    ["an earlier event by position", [inLane("position", "evt_1", 5)], inLane("position", "evt_2", 4)],
    ["an event by arrival", [inLane("arrival", "evt_1")], inLane("arrival", "evt_2")],
    ["an event behind a gap", [], at(4)],
    ["an event behind a gap that it does not wait for", [], at(4, { gapWaitMs: 0 })],
    ["the next event", [at(1)], at(2)],
    ["the next event, which names the lane", [at(1)], at(2, { peer: "+1" })],
    ["an event behind a later gap", [at(1)], at(3)],
    ["an event behind a later gap that it does not wait for", [at(1)], at(3, { gapWaitMs: 0 })],
    ["the event behind a gap that was skipped", [at(4), "wait"], at(5)],
    ["a second event of the sequence behind a gap", [at(4), "wait"], at(4, { eventType: "message.other" })],
    ["a late event", [at(4), "wait"], at(2)],
    ["a known event", [at(1)], at(1)],
    ["a known event with another body", [at(1)], at(1, { raw: Buffer.from("{}") })],
  ];
  const ways = [
    { way: "to wait", claim: null },
    { way: "to be leased", claim: CLAIM },
  ];

  describe.each(ways)("stores $way, as the rules do,", ({ claim }) => {
    it.each(cases)("%s", async (_what, past, incoming) => {
      const acceptWith = (inbox: OpenInbox, isFast: boolean) =>
        inbox.write((work) => {
          const lanes = new SqliteLanes(work);
          const mode: AcceptMode = { claim, claimed: { leases: [], retired: [], untaken: [], bytes: 0 } };
          const placed = place(lanes, incoming);
          expect([placed.lane.status, placed.arrival.state]).toEqual(["idle", "pending"]);
          const answer = isFast ? acceptAlone(lanes, placed, null, mode) : acceptByRules(lanes, placed, mode);
          const leases = mode.claimed.leases.map((lease) => ({ ...lease, token: 0 }));
          return { answer, claimed: { ...mode.claimed, leases } };
        });
      const [fast, slow] = await twins(past);
      expect(await acceptWith(fast, true)).toEqual(await acceptWith(slow, false));
      expect(rowsOf(fast)).toEqual(rowsOf(slow));
    });
  });
});

describe("completeLast()", () => {
  const cases: readonly (readonly [what: string, past: Past, incoming: NewEvent])[] = [
    ["a message's first event", [], at(1)],
    ["an event by itself", [], alone("evt_1")],
    ["the first event by position", [], inLane("position", "evt_1", 5)],
    ["the event behind a gap", [], at(4, { gapWaitMs: 0 })],
    ["the next event", [at(1)], at(2)],
    ["a second event of the same sequence", [at(1)], at(1, { eventType: "message.other" })],
  ];
  const outcomes = [{ outcome: "handled" }, { outcome: "unhandled" }] as const;

  async function leasedTwins(past: Past, ...accepts: NewEvent[]) {
    const pair = await twins(past);
    const lease = async (inbox: OpenInbox): Promise<Lease> => {
      const [first] = (await inbox.step(turn({ accepts, claim: { limit: 1 } }))).leases;
      if (first === undefined) throw new Error("Nothing was leased.");
      return first;
    };
    const leases = [await lease(pair[0]), await lease(pair[1])] as const;
    expect({ ...leases[0], token: 0 }).toEqual({ ...leases[1], token: 0 });
    return { pair, lease: leases[0], other: leases[1] };
  }

  describe.each(outcomes)("ends as $outcome, as the rules do,", ({ outcome }) => {
    it.each(cases)("the lease of %s", async (_what, past, incoming) => {
      const { pair, lease, other } = await leasedTwins(past, incoming);
      const [fast, slow] = pair;
      const isDone = await fast.write((work) =>
        completeLast(new SqliteLanes(work), { kind: "complete", lease, outcome }),
      );
      const byRules = await slow.write((work) => {
        const lanes = new SqliteLanes(work);
        const lane = lanes.lane(other.lane);
        const held = lanes.rules.heldEvent(lane, other);
        if (lane === undefined || held === null) throw new Error("The lease is lost.");
        return lanes.rules.endLease(lane, held, { kind: "complete", lease: other, outcome, effects: [] });
      });
      expect([isDone, byRules]).toEqual([true, { status: "settled" }]);
      expect(rowsOf(fast)).toEqual(rowsOf(slow));
    });
  });

  const others: readonly (readonly [what: string, past: Past, accepts: readonly NewEvent[], held: Partial<Lease>])[] = [
    ["where another event waits behind it", [], [at(1), at(2)], {}],
    ["where another event of the same sequence waits", [], [at(1), at(1, { eventType: "message.other" })], {}],
    ["where a late event waits", [at(4), "wait"], [at(5), at(2)], {}],
    ["of another token", [], [at(1)], { token: 0 }],
    ["of another event", [], [at(1)], { event: 2 }],
    ["of another lane", [], [at(1)], { lane: 2 }],
  ];

  it.each(others)("leaves a lease %s to the rules, and writes nothing", async (_what, past, accepts, held) => {
    const { pair, lease } = await leasedTwins(past, ...accepts);
    const request = { kind: "complete", lease: { ...lease, ...held }, outcome: "handled" } as const;
    const before = rowsOf(pair[0]);
    expect(await pair[0].write((work) => completeLast(new SqliteLanes(work), request))).toBe(false);
    expect(rowsOf(pair[0])).toEqual(before);
  });
});
