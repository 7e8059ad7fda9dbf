import { describe, expect, it } from "vitest";
import { seededFraction } from "../../../src/messaging/emulator/clock.ts";
import { createFaults, type Faults } from "../../../src/messaging/emulator/faults.ts";
import type { FaultRule } from "../../../src/messaging/emulator/index.ts";
import { settingsFrom } from "../../../src/messaging/emulator/options.ts";
import { start } from "./support.ts";

const ROUTES = ["POST /api/auth/token", "GET /api/core/whoami", "PATCH /api/core/numbers/{numberId}"];
const WHOAMI = "GET /api/core/whoami";

function faultsWith(rules: readonly FaultRule[] = [], seed = "seed"): Faults {
  const settings = settingsFrom({ faults: rules });
  return createFaults({ settings, chance: (purpose) => seededFraction(seed, purpose) }, ROUTES);
}

const onEvents = (fields: object = {}): FaultRule =>
  ({ match: { webhook: true }, action: { type: "drop" }, ...fields }) as FaultRule;
const onAttempts = (fields: object = {}): FaultRule => onEvents({ action: { type: "unsigned" }, ...fields });
const onCalls = (fields: object = {}): FaultRule =>
  ({ match: { route: WHOAMI }, action: { type: "truncate" }, ...fields }) as FaultRule;

const event = (number: number, fields: { eventType?: string; messageId?: string } = {}) => ({
  eventId: `evt_${number}`,
  eventType: "message.sent",
  messageId: "msg_1",
  ...fields,
});

/** Which of the first events a rule is played on. */
const playedOn = (faults: Faults, count: number, order: (i: number) => number = (i) => i) =>
  Array.from({ length: count }, (_, i) => order(i))
    .filter((number) => faults.forEvent(event(number)).length > 0)
    .sort((a, b) => a - b);

describe("createFaults()", () => {
  it("completes a rule with its defaults", () => {
    const faults = faultsWith();
    faults.add({ match: { webhook: true }, action: { type: "staleTimestamp" } });
    expect(faults.list()[0]?.rule.action).toEqual({ type: "staleTimestamp", ms: 86_400_000 });
  });

  const status = onCalls({ action: { type: "status", status: 500 } });
  const delay = onCalls({ action: { type: "delay", ms: 5 } });
  const revoke = onCalls({ action: { type: "revokeToken" } });
  const [before, after] = (["before", "after"] as const).map((when) => onCalls({ action: { type: "reset", when } }));
  const once = (rule: FaultRule = onCalls()) => ({ ...rule, times: 1 });

  it.each<[what: string, rules: FaultRule[], calls: string[][], played: number[]]>([
    [
      "one rule in the place of a call's answer, and the others for later calls",
      [delay, once(status), once(before), once(onCalls({ action: { type: "badGateway" } })), once(revoke)],
      [["delay", "status"], ["delay", "reset"], ["delay", "badGateway"], ["delay", "revokeToken"], ["delay"]],
      [5, 1, 1, 1, 1],
    ],
    [
      "what becomes of an answer, whichever rule gave it",
      [status, delay, onCalls(), after as FaultRule],
      [["status", "truncate", "reset"]],
      [1, 0, 1, 1],
    ],
    ["nothing on an answer that is not given", [once(before), once()], [["reset"], ["truncate"], []], [1, 1]],
    ["a rule as many times as it says", [onCalls({ times: 2 })], [["truncate"], ["truncate"], [], []], [2]],
    [
      "all rules that match, in their order",
      [delay, once(), revoke],
      [
        ["delay", "truncate", "revokeToken"],
        ["delay", "revokeToken"],
      ],
      [2, 1, 2],
    ],
  ])("plays %s", (_, rules, calls, played) => {
    const faults = faultsWith(rules);
    expect(calls.map(() => faults.forCall(WHOAMI).map(({ type }) => type))).toEqual(calls);
    expect(faults.list().map((one) => one.played)).toEqual(played);
  });

  it.each([
    [400, "invalid_request"],
    [401, "invalid_client"],
    [404, "server_error"],
    [418, "invalid_request"],
    [429, "server_error"],
    [500, "server_error"],
  ])("answers a token request with the OAuth error that fits status %i: %s (TOK-12)", async (status, error) => {
    const rule = { match: { route: "POST /api/auth/token" }, action: { type: "status", status } } as const;
    const emulator = await start({ faults: [rule] });
    const answer = await emulator.handle(new Request(`${emulator.url}/api/auth/token`, { method: "POST" }));
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([status, error]);
  });

  it("plays a rule without a number always, and on its own route only", () => {
    const faults = faultsWith([onCalls()]);
    for (let i = 0; i < 10; i++) expect(faults.forCall(WHOAMI)).toEqual([{ type: "truncate" }]);
    expect(faults.forCall("POST /api/auth/token")).toEqual([]);
    expect(faults.list()[0]?.played).toBe(10);
  });

  it.each([
    [{ webhook: true }, [1, 2, 3, 4]],
    [{ eventType: "message.sent" }, [1, 2]],
    [{ webhook: true, eventType: "message.sent" }, [1, 2]],
    [{ messageId: "msg_2" }, [2, 4]],
    [{ eventType: "message.sent", messageId: "msg_2" }, [2]],
    [{ webhook: true, eventType: "message.delivered" }, []],
  ])("matches %j by type and message", (match, expected) => {
    const all = [
      event(1, { eventType: "message.sent", messageId: "msg_1" }),
      event(2, { eventType: "message.sent", messageId: "msg_2" }),
      event(3, { eventType: "message.delivery", messageId: "msg_1" }),
      event(4, { eventType: "message.delivery", messageId: "msg_2" }),
    ];
    const faults = faultsWith([onEvents({ match }), onAttempts({ match })]);
    const hit = (play: (one: (typeof all)[number]) => readonly unknown[]) =>
      all.flatMap((one, i) => (play(one).length > 0 ? [i + 1] : []));
    expect(hit((one) => faults.forEvent(one))).toEqual(expected);
    expect(hit((one) => faults.forAttempt(one, "dlv_1/1"))).toEqual(expected);
  });

  it("keeps what concerns an event apart from what concerns an attempt", () => {
    const faults = faultsWith([onEvents(), onAttempts()]);
    expect(faults.forEvent(event(1))).toEqual([{ type: "drop" }]);
    expect(faults.forAttempt(event(1), "dlv_1/1")).toEqual([{ type: "unsigned" }]);
    expect(faults.list().map(({ played }) => played)).toEqual([1, 1]);
  });

  it("gives out lists that later plays do not change", () => {
    const faults = faultsWith([onCalls()]);
    const [before] = faults.list();
    faults.forCall(WHOAMI);
    expect(before?.played).toBe(0);
  });
});

describe("a rule's probability", () => {
  it("decides the same events in every run, in whatever order they come", () => {
    const rule = onEvents({ probability: 0.2 });
    const first = playedOn(faultsWith([rule]), 1_000);
    expect(playedOn(faultsWith([rule]), 1_000, (i) => 999 - i)).toEqual(first);
    expect(playedOn(faultsWith([rule], "another seed"), 1_000)).not.toEqual(first);
    expect(first.length).toBeGreaterThan(150);
    expect(first.length).toBeLessThan(250);
  });

  it("falls for each rule by itself", () => {
    const rule = onEvents({ probability: 0.5 });
    const faults = faultsWith([rule, rule]);
    const both = Array.from({ length: 1_000 }, (_, i) => faults.forEvent(event(i)).length);
    for (const count of [0, 1, 2]) expect(both.filter((n) => n === count).length).toBeGreaterThan(200);
  });

  it.each([
    ["attempt", onAttempts, (faults: Faults, i: number) => faults.forAttempt(event(1), `dlv_1/${i}`)],
    [
      "call of a route, whatever others are called in between",
      onCalls,
      (faults: Faults, i: number) => {
        if (i % 3 === 0) faults.forCall("POST /api/auth/token");
        return faults.forCall(WHOAMI);
      },
    ],
  ])("falls again for each %s, and the same in every run", (_, rule, play) => {
    const plays = () => {
      const faults = faultsWith([rule({ probability: 0.5 })]);
      return Array.from({ length: 200 }, (_, i) => play(faults, i).length);
    };
    const played = plays().filter((n) => n === 1).length;
    expect(played).toBeGreaterThan(70);
    expect(played).toBeLessThan(130);
    expect(plays()).toEqual(plays());
  });

  it("of 0 never, of 1 always plays", () => {
    expect(playedOn(faultsWith([onEvents({ probability: 0 })]), 100)).toEqual([]);
    expect(playedOn(faultsWith([onEvents({ probability: 1 })]), 100)).toHaveLength(100);
  });

  it("together with a number plays so many of what chance chose", () => {
    const chosen = playedOn(faultsWith([onEvents({ probability: 0.2 })]), 1_000);
    const limited = playedOn(faultsWith([onEvents({ probability: 0.2, times: 7 })]), 1_000);
    expect(limited).toEqual(chosen.slice(0, 7));
  });
});
