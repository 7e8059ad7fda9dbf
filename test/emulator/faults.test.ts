import { describe, expect, it } from "vitest";
import { seededFraction } from "../../src/emulator/clock.ts";
import { createFaults, type Faults } from "../../src/emulator/faults.ts";
import { createEmulator, type FaultRule } from "../../src/emulator/index.ts";
import { settingsFrom } from "../../src/emulator/options.ts";
import { start } from "./support.ts";

const ROUTES = ["POST /api/auth/token", "GET /api/core/whoami", "PATCH /api/core/numbers/{numberId}"];
const WHOAMI = "GET /api/core/whoami";

function faultsWith(rules: readonly FaultRule[] = [], seed = "seed"): Faults {
  const settings = settingsFrom({ faults: rules });
  return createFaults({ settings, chance: (purpose) => seededFraction(seed, purpose) }, ROUTES);
}

const onEvents = (fields: Partial<FaultRule> = {}): FaultRule =>
  ({ match: { webhook: true }, action: { type: "drop" }, ...fields }) as FaultRule;
const onAttempts = (fields: Partial<FaultRule> = {}): FaultRule =>
  onEvents({ action: { type: "unsigned" }, ...fields } as Partial<FaultRule>);
const onCalls = (fields: Partial<FaultRule> = {}): FaultRule =>
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
  it("names the settings' rules first, then those that are added", () => {
    const faults = faultsWith([onCalls(), onEvents()]);
    expect(faults.add(onAttempts())).toBe("fault_000003");
    expect(faults.list().map(({ id, rule, played }) => [id, rule.action.type, played])).toEqual([
      ["fault_000001", "truncate", 0],
      ["fault_000002", "drop", 0],
      ["fault_000003", "unsigned", 0],
    ]);
  });

  it("completes a rule with its defaults", () => {
    const faults = faultsWith();
    faults.add({ match: { webhook: true }, action: { type: "staleTimestamp" } });
    expect(faults.list()[0]?.rule.action).toEqual({ type: "staleTimestamp", ms: 86_400_000 });
  });

  it("plays one rule in the place of a call's answer, and leaves the others for later calls", () => {
    const faults = faultsWith([
      onCalls({ action: { type: "delay", ms: 5 } }),
      onCalls({ action: { type: "status", status: 500 }, times: 1 }),
      onCalls({ action: { type: "reset", when: "before" }, times: 1 }),
      onCalls({ action: { type: "badGateway" }, times: 1 }),
      onCalls({ action: { type: "revokeToken" }, times: 1 }),
    ] as FaultRule[]);
    const played = Array.from({ length: 5 }, () => faults.forCall(WHOAMI).map(({ type }) => type));
    expect(played).toEqual([
      ["delay", "status"],
      ["delay", "reset"],
      ["delay", "badGateway"],
      ["delay", "revokeToken"],
      ["delay"],
    ]);
    expect(faults.list().map(({ played: times }) => times)).toEqual([5, 1, 1, 1, 1]);
  });

  it("answers with the status of the first rule, and breaks the next call for the second", async () => {
    const status = { match: { route: WHOAMI }, action: { type: "status", status: 500 }, times: 1 } as const;
    const reset = { match: { route: WHOAMI }, action: { type: "reset", when: "before" }, times: 1 } as const;
    const emulator = await start({ faults: [status, reset] });
    const whoami = () => emulator.handle(new Request(`${emulator.url}/api/core/whoami`));
    expect([(await whoami()).status, (await whoami()).type]).toEqual([500, "error"]);
    expect(emulator.control.requests().map(({ faults }) => faults)).toEqual([["status"], ["reset"]]);
  });

  it("plays what becomes of an answer, whichever rule gave it", () => {
    const faults = faultsWith([
      onCalls({ action: { type: "status", status: 500 } }),
      onCalls({ action: { type: "delay", ms: 5 } }),
      onCalls({ action: { type: "truncate" } }),
      onCalls({ action: { type: "reset", when: "after" } }),
    ] as FaultRule[]);
    expect(faults.forCall(WHOAMI).map(({ type }) => type)).toEqual(["status", "truncate", "reset"]);
    expect(faults.list().map(({ played }) => played)).toEqual([1, 0, 1, 1]);
  });

  it("plays nothing on an answer that is not given, and leaves it for a later call", () => {
    const faults = faultsWith([
      onCalls({ action: { type: "reset", when: "before" }, times: 1 }),
      onCalls({ action: { type: "truncate" }, times: 1 }),
    ] as FaultRule[]);
    const played = Array.from({ length: 3 }, () => faults.forCall(WHOAMI).map(({ type }) => type));
    expect(played).toEqual([["reset"], ["truncate"], []]);
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

  it("plays a rule as many times as it says, and then only lists it", () => {
    const faults = faultsWith([onCalls({ times: 2 })]);
    const played = Array.from({ length: 5 }, () => faults.forCall(WHOAMI).length);
    expect(played).toEqual([1, 1, 0, 0, 0]);
    expect(faults.list()).toMatchObject([{ id: "fault_000001", played: 2, rule: { times: 2 } }]);
  });

  it("plays a rule without a number always, and on its own route only", () => {
    const faults = faultsWith([onCalls()]);
    for (let i = 0; i < 10; i++) expect(faults.forCall(WHOAMI)).toEqual([{ type: "truncate" }]);
    expect(faults.forCall("POST /api/auth/token")).toEqual([]);
    expect(faults.list()[0]?.played).toBe(10);
  });

  it("gives all rules that match, in the order of their addition", () => {
    const faults = faultsWith([
      onCalls({ action: { type: "delay", ms: 5 } } as Partial<FaultRule>),
      onCalls({ times: 1 }),
    ]);
    faults.add(onCalls({ action: { type: "revokeToken" } } as Partial<FaultRule>));
    const types = () => faults.forCall(WHOAMI).map(({ type }) => type);
    expect(types()).toEqual(["delay", "truncate", "revokeToken"]);
    expect(types()).toEqual(["delay", "revokeToken"]);
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
    const faults = faultsWith([onEvents({ match } as Partial<FaultRule>), onAttempts({ match } as Partial<FaultRule>)]);
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

  it("removes one rule, and clears all", () => {
    const faults = faultsWith([onCalls(), onEvents()]);
    expect([faults.remove("fault_000001"), faults.remove("fault_000001"), faults.remove("fault_9")]).toEqual([
      true,
      false,
      false,
    ]);
    expect(faults.forCall(WHOAMI)).toEqual([]);
    faults.clear();
    expect([faults.list(), faults.forEvent(event(1))]).toEqual([[], []]);
    expect(faults.add(onCalls())).toBe("fault_000001");
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

  it("falls again for each attempt, and the same in every run", () => {
    const attempts = () => {
      const faults = faultsWith([onAttempts({ probability: 0.5 })]);
      return Array.from({ length: 200 }, (_, i) => faults.forAttempt(event(1), `dlv_1/${i}`).length);
    };
    const played = attempts().filter((n) => n === 1).length;
    expect(played).toBeGreaterThan(70);
    expect(played).toBeLessThan(130);
    expect(attempts()).toEqual(attempts());
  });

  it("falls for a route's calls one after another", () => {
    const calls = () => {
      const faults = faultsWith([onCalls({ probability: 0.5 })]);
      return Array.from({ length: 200 }, (_, i) => {
        if (i % 3 === 0) faults.forCall("POST /api/auth/token"); // Calls of other routes change nothing.
        return faults.forCall(WHOAMI).length;
      });
    };
    const played = calls().filter((n) => n === 1).length;
    expect(played).toBeGreaterThan(70);
    expect(played).toBeLessThan(130);
    expect(calls()).toEqual(calls());
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

describe("a rule that does not fit", () => {
  it.each([
    ["GET /api/core/whoam", 'Did you mean "GET /api/core/whoami"?'],
    ["PATCH /api/core/numbers/num_1", "{numberId}"],
    ["x", "Known: POST /api/auth/token, GET"],
  ])("is refused for the route %s, with the way out", (route, fix) => {
    const faults = faultsWith();
    expect(() => faults.add(onCalls({ match: { route } } as Partial<FaultRule>))).toThrow(fix);
    expect(faults.list()).toEqual([]);
  });

  it("is refused among an emulator's options, before it opens a port", async () => {
    const refused = createEmulator({
      faults: [{ match: { route: "GET /api/core/who" }, action: { type: "truncate" } }],
    });
    await expect(refused).rejects.toThrow(/matches no route/);
    const misspelled = { match: { webhook: true }, action: { type: "dorp" } } as unknown as FaultRule;
    await expect(createEmulator({ faults: [misspelled] })).rejects.toThrow('Did you mean "drop"?');
  });
});

describe("control.faults", () => {
  it("knows the emulator's own routes, and goes back to the options' rules on reset", async () => {
    const emulator = await start({ faults: [onEvents({ times: 3 })] });
    const { faults } = emulator.control;
    for (const route of [
      "POST /api/auth/token",
      WHOAMI,
      "PATCH /api/core/numbers/{numberId}",
      "POST /api/core/messages/send",
    ]) {
      faults.add({ match: { route }, action: { type: "truncate" } });
    }
    expect(faults.list().map(({ id }) => id)).toEqual([1, 2, 3, 4, 5].map((n) => `fault_00000${n}`));
    emulator.control.reset();
    expect(faults.list()).toEqual([{ id: "fault_000001", rule: onEvents({ times: 3 }), played: 0 }]);
  });
});
