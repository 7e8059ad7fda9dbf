/** What a fault rule may look like, and what its writer is told when it is something else. */
import { describe, expect, it } from "vitest";
import { API_ACTIONS } from "../../../src/messaging/emulator/faults.ts";
import { createEmulator, type FaultRule } from "../../../src/messaging/emulator/index.ts";
import { control } from "./control-support.ts";
import { start } from "./support.ts";

const WHOAMI = "GET /api/core/whoami";
const CALL = { match: { route: WHOAMI }, action: { type: "truncate" } };
const DROP = { match: { eventType: "message.sent" }, action: { type: "drop" } } as const;
const TAKES =
  ' takes { match: { route } or { webhook: true, eventType, messageId }, action: { type, … } }, and "times" or "probability".';
const PART = '"eventType", "messageId" or "webhook": true.';

const onCall = (type: string, fields = {}) => ({ ...CALL, action: { type, ...fields } });
const onEvent = (type: string, fields = {}) => ({ ...DROP, action: { type, ...fields } });
const onMatch = (match: object) => ({ ...DROP, match });

/** A field of a rule, and of what kind it must be. */
const must = (field: string, what: string, is: string) => `'s "${field}" must be ${what}; it ${is}.`;
const whole = (field: string, least: number, most: number, is: string) =>
  must(field, `a whole number from ${least} to ${most}`, is);
const text = (field: string, most: number, is: string) => must(field, `a text of 1 to ${most} characters`, is);
const noField = (what: string, name: string, way: string) => `${what} has no field "${name}". ${way}`;
const noAction = (name: string, where: string, way: string) => ` has no action "${name}" for ${where}${way}`;
const meant = (name: string) => `Did you mean "${name}"?`;
const KNOWN = "Known: match, action, times, probability.";
const ASCII = must("action.value", "printable ASCII without spaces around it", "is another text");

/** A rule that does not fit, and what is said about it, behind "A fault rule". */
const REFUSED: readonly (readonly [rule: unknown, rest: string])[] = [
  [{}, TAKES],
  [{ match: DROP.match }, TAKES],
  [{ ...DROP, match: "message.sent" }, TAKES],
  [{ ...DROP, match: [] }, TAKES],
  [{ ...DROP, action: "drop" }, TAKES],
  [{ ...DROP, action: {} }, TAKES],
  [{ ...DROP, action: { type: 1 } }, TAKES],
  [{ ...DROP, time: 1 }, noField("", "time", meant("times"))],
  [{ ...DROP, often: 3 }, noField("", "often", KNOWN)],
  [{ mach: DROP.match, action: DROP.action }, noField("", "mach", meant("match"))],
  [{ ...DROP, [`\n${"y".repeat(99)}`]: 1 }, noField("", `\\n${"y".repeat(62)}…`, KNOWN)],
  [onMatch({ event: "x" }), noField(`'s "match"`, "event", "Known: route, webhook, eventType, messageId.")],
  [onMatch({ rout: WHOAMI }), noField(`'s "match"`, "rout", meant("route"))],
  [onMatch({ messageID: "msg_1", webhook: true }), noField(`'s "match"`, "messageID", meant("messageId"))],
  [onMatch({}), `'s "match" must have "route", for API calls, or, for webhooks, ${PART}`],
  [
    onMatch({ route: WHOAMI, webhook: true }),
    `'s "match" has either "route", for API calls, or, for webhooks, ${PART}`,
  ],
  [onMatch({ webhook: false }), must("match.webhook", "true", "is false")],
  [onMatch({ eventType: "" }), text("match.eventType", 512, "is empty")],
  [onMatch({ messageId: 7 }), text("match.messageId", 512, "is 7")],
  [{ ...CALL, match: { route: ["x"] } }, text("match.route", 200, "is a list")],
  [{ ...CALL, match: { route: "x".repeat(201) } }, text("match.route", 200, "has 201")],
  [{ ...CALL, match: { route: "GET /api/core/whoam" } }, ` matches no route "GET /api/core/whoam". ${meant(WHOAMI)}`],
  [onEvent("dorp"), noAction("dorp", "webhooks", `. ${meant("drop")}`)],
  [onEvent("duplicate!"), noAction("duplicate!", "webhooks", `. ${meant("duplicate")}`)],
  [onEvent("truncate"), noAction("truncate", "webhooks", ', only for API calls, which "match.route" names.')],
  [onCall("drop"), noAction("drop", "API calls", ", only for webhooks.")],
  [onCall("explode"), noAction("explode", "API calls", `. Known: ${[...API_ACTIONS.keys()].join(", ")}.`)],
  [onEvent("drop", { ms: 1 }), `'s action "drop" has no field "ms"; it takes none.`],
  [onEvent("delay", { sm: 1 }), noField(`'s action "delay"`, "sm", meant("ms"))],
  [onEvent("missingHeader", { ms: 1 }), noField(`'s action "missingHeader"`, "ms", "Known: header.")],
  [onEvent("delay"), whole("action.ms", 1, 86_400_000, "is missing")],
  [onCall("delay"), whole("action.ms", 0, 600_000, "is missing")],
  [onCall("delay", { ms: "5" }), whole("action.ms", 0, 600_000, "is a text")],
  [onCall("delay", { ms: 0.5 }), whole("action.ms", 0, 600_000, "is 0.5")],
  [onCall("delay", { ms: 600_001 }), whole("action.ms", 0, 600_000, "is 600001")],
  [onEvent("staleTimestamp", { ms: null }), whole("action.ms", 1, 31_557_600_000, "is null")],
  [onEvent("dribble", { ms: {} }), whole("action.ms", 1, 60_000, "is an object")],
  [onCall("status", { status: 200 }), whole("action.status", 400, 599, "is 200")],
  [onCall("status", { status: 500, retryAfterSeconds: -1 }), whole("action.retryAfterSeconds", 0, 86_400, "is -1")],
  [onCall("status", { status: 500, code: true }), text("action.code", 64, "is true")],
  [onCall("reset", { when: "later" }), must("action.when", '"before" or "after"', "is another text")],
  [onEvent("missingHeader", { header: 1 }), must("action.header", '"timestamp" or "signature"', "is 1")],
  ...["text/plain\r\nx-more: 1", "text/pläin", "a\0", " a/b", "a/b ", "\ta/b"].map(
    (value) => [onEvent("contentType", { value }), ASCII] as const,
  ),
  [onEvent("contentType", { value: "a".repeat(129) }), text("action.value", 128, "has 129")],
  [{ ...DROP, times: 0 }, whole("times", 1, 1_000_000, "is 0")],
  [{ ...DROP, probability: 1.1 }, must("probability", "a number from 0 to 1", "is 1.1")],
  [{ ...DROP, probability: -1 }, must("probability", "a number from 0 to 1", "is -1")],
];

describe("a fault rule that does not fit", () => {
  it.each(REFUSED)("is refused: %j", async (rule, rest) => {
    const message = `A fault rule${rest}`;
    const emulator = await start();
    const answer = await control(emulator, "POST", "/faults", rule);
    expect([answer.status, answer.body]).toEqual([400, { error: { code: "INVALID_REQUEST", message } }]);
    expect(() => emulator.control.faults.add(rule as FaultRule)).toThrow(
      expect.objectContaining({ name: "SetupError", code: "invalid_option", message }),
    );
    expect(emulator.control.faults.list()).toEqual([]);
    await expect(createEmulator({ faults: [rule as FaultRule] })).rejects.toMatchObject({ message });
  });

  it.each([[null], ["drop"], [7], [[]], [undefined]])("is no object: %j", async (rule) => {
    const emulator = await start();
    expect(() => emulator.control.faults.add(rule as unknown as FaultRule)).toThrow(`A fault rule${TAKES}`);
    const answer = await control(emulator, "POST", "/faults", JSON.stringify(rule));
    expect(answer.status).toBe(400);
  });

  it.each([
    [DROP, "object"],
    ["[]", "string"],
    [null, "null"],
  ])("is no list of them: %j", async (faults, kind) => {
    const message = `Option "faults" must be a list of fault rules; it is ${kind}.`;
    const refused = { code: "invalid_option", message };
    await expect(createEmulator({ faults: faults as never })).rejects.toMatchObject(refused);
  });

  it("is measured only where that is cheap", async () => {
    const emulator = await start();
    const long = "d".repeat(500_000);
    const began = performance.now();
    for (const rule of [onEvent(long), { ...DROP, [long]: 1 }, { ...DROP, match: { [long]: 1 } }]) {
      const { status, body } = await control(emulator, "POST", "/faults", rule);
      expect([status, body.error.message.length < 500]).toEqual([400, true]);
    }
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

describe("a fault rule for webhooks", () => {
  const rules: readonly FaultRule[] = [
    DROP,
    { match: { messageId: "msg_1" }, action: { type: "drop" } },
    { match: { webhook: true }, action: { type: "drop" } },
    { match: { webhook: true, eventType: "message.sent", messageId: "msg_1" }, action: { type: "drop" } },
  ];

  it.each(rules)("names webhooks by any of what they have: $match", async (rule) => {
    const emulator = await start({ faults: [rule] });
    expect((await control(emulator, "POST", "/faults", rule)).status).toBe(200);
    expect(emulator.control.faults.list().map((one) => one.rule)).toEqual([rule, rule]);
  });

  it("tells apart by its match the action that calls have as well", async () => {
    const delay = { type: "delay", ms: 600_001 } as const;
    const emulator = await start({ faults: [{ match: { webhook: true }, action: delay }] });
    expect(() => emulator.control.faults.add({ match: { route: WHOAMI }, action: delay })).toThrow('"action.ms"');
  });
});

describe("a fault rule with an event type that the service does not send", () => {
  async function warnings(...types: string[]): Promise<unknown[]> {
    const lines: unknown[] = [];
    const nothing = () => {};
    const logger = { debug: nothing, info: nothing, error: nothing, warn: (...line: unknown[]) => lines.push(line) };
    const rules = types.map((eventType) => ({ match: { eventType }, action: { type: "unsigned" } }) as const);
    const emulator = await start({ logger, faults: rules.slice(0, 1) });
    for (const rule of rules.slice(1)) await control(emulator, "POST", "/faults", rule);
    expect(emulator.control.faults.list()).toHaveLength(types.length);
    emulator.control.reset();
    return lines;
  }

  it("is taken with a warning, once for each type, wherever it was added (EVT-1)", async () => {
    expect(await warnings("message.delivered", "message.delivered", "order")).toEqual([
      [
        { eventType: "message.delivered" },
        'A fault rule matches an event type that the service does not send. Did you mean "message.delivery"?',
      ],
      [
        { eventType: "order" },
        "A fault rule matches an event type that the service does not send. Known: message.queued, message.sent, message.delivery, message.failed, message.inbound.",
      ],
    ]);
  });

  it("is not, when the fault unknownEventType makes it", async () => {
    expect(await warnings("message.buffered", "message.queued", "message.failed", "message.inbound")).toEqual([]);
  });
});
