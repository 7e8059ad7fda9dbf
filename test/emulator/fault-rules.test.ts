/** What a fault rule may look like, and what its writer is told when it is something else. */
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { addEmulatorFlags, emulatorInput } from "../../src/cli/emulator-options.ts";
import { createEmulator, type FaultRule } from "../../src/emulator/index.ts";
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

/** A rule that does not fit, and what is said about it, behind "A fault rule". */
const REFUSED: readonly (readonly [rule: unknown, rest: string])[] = [
  [{}, TAKES],
  [{ match: DROP.match }, TAKES],
  [{ ...DROP, match: "message.sent" }, TAKES],
  [{ ...DROP, match: [] }, TAKES],
  [{ ...DROP, action: "drop" }, TAKES],
  [{ ...DROP, action: {} }, TAKES],
  [{ ...DROP, action: { type: 1 } }, TAKES],
  [{ ...DROP, time: 1 }, ' has no field "time". Did you mean "times"?'],
  [{ ...DROP, often: 3 }, ' has no field "often". Known: match, action, times, probability.'],
  [{ mach: DROP.match, action: DROP.action }, ' has no field "mach". Did you mean "match"?'],
  [
    { match: { event: "message.sent" }, action: DROP.action },
    `'s "match" has no field "event". Known: route, webhook, eventType, messageId.`,
  ],
  [{ match: { rout: WHOAMI }, action: { type: "truncate" } }, `'s "match" has no field "rout". Did you mean "route"?`],
  [
    { match: { messageID: "msg_1", webhook: true }, action: DROP.action },
    `'s "match" has no field "messageID". Did you mean "messageId"?`,
  ],
  [{ match: {}, action: DROP.action }, `'s "match" must have "route", for API calls, or, for webhooks, ${PART}`],
  [
    { match: { route: WHOAMI, webhook: true }, action: { type: "truncate" } },
    `'s "match" has either "route", for API calls, or, for webhooks, ${PART}`,
  ],
  [{ ...DROP, match: { webhook: false } }, `'s "match.webhook" must be true; it is false.`],
  [{ ...DROP, match: { eventType: "" } }, `'s "match.eventType" must be a text of 1 to 512 characters; it is empty.`],
  [{ ...DROP, match: { messageId: 7 } }, `'s "match.messageId" must be a text of 1 to 512 characters; it is 7.`],
  [{ ...CALL, match: { route: ["x"] } }, `'s "match.route" must be a text of 1 to 200 characters; it is a list.`],
  [
    { ...CALL, match: { route: "x".repeat(201) } },
    `'s "match.route" must be a text of 1 to 200 characters; it has 201.`,
  ],
  [
    { ...CALL, match: { route: "GET /api/core/whoam" } },
    ` matches no route "GET /api/core/whoam". Did you mean "GET /api/core/whoami"?`,
  ],
  [onEvent("dorp"), ' has no action "dorp" for webhooks. Did you mean "drop"?'],
  [onEvent("duplicate!"), ' has no action "duplicate!" for webhooks. Did you mean "duplicate"?'],
  [onEvent("truncate"), ' has no action "truncate" for webhooks, only for API calls, which "match.route" names.'],
  [onCall("drop"), ' has no action "drop" for API calls, only for webhooks.'],
  [
    onCall("explode"),
    ' has no action "explode" for API calls. Known: status, delay, reset, truncate, badGateway, revokeToken.',
  ],
  [onEvent("drop", { ms: 1 }), `'s action "drop" has no field "ms"; it takes none.`],
  [onEvent("delay", { sm: 1 }), `'s action "delay" has no field "sm". Did you mean "ms"?`],
  [onEvent("missingHeader", { ms: 1 }), `'s action "missingHeader" has no field "ms". Known: header.`],
  [onEvent("delay"), `'s "action.ms" must be a whole number from 1 to 86400000; it is missing.`],
  [onCall("delay"), `'s "action.ms" must be a whole number from 0 to 600000; it is missing.`],
  [onCall("delay", { ms: "5" }), `'s "action.ms" must be a whole number from 0 to 600000; it is a text.`],
  [onCall("delay", { ms: 0.5 }), `'s "action.ms" must be a whole number from 0 to 600000; it is 0.5.`],
  [onCall("delay", { ms: 600_001 }), `'s "action.ms" must be a whole number from 0 to 600000; it is 600001.`],
  [onEvent("staleTimestamp", { ms: null }), `'s "action.ms" must be a whole number from 1 to 31557600000; it is null.`],
  [onEvent("dribble", { ms: {} }), `'s "action.ms" must be a whole number from 1 to 60000; it is an object.`],
  [onCall("status", { status: 200 }), `'s "action.status" must be a whole number from 400 to 599; it is 200.`],
  [
    onCall("status", { status: 500, retryAfterSeconds: -1 }),
    `'s "action.retryAfterSeconds" must be a whole number from 0 to 86400; it is -1.`,
  ],
  [onCall("status", { status: 500, code: true }), `'s "action.code" must be a text of 1 to 64 characters; it is true.`],
  [onCall("reset", { when: "later" }), `'s "action.when" must be "before" or "after"; it is another text.`],
  [onEvent("missingHeader", { header: 1 }), `'s "action.header" must be "timestamp" or "signature"; it is 1.`],
  ...["text/plain\r\nx-more: 1", "text/pläin", "a\0", " a/b", "a/b ", "\ta/b"].map((value) => {
    const message = `'s "action.value" must be printable ASCII without spaces around it; it is another text.`;
    return [onEvent("contentType", { value }), message] as const;
  }),
  [
    onEvent("contentType", { value: "a".repeat(129) }),
    `'s "action.value" must be a text of 1 to 128 characters; it has 129.`,
  ],
  [{ ...DROP, times: 0 }, `'s "times" must be a whole number from 1 to 1000000; it is 0.`],
  [{ ...DROP, probability: 1.1 }, `'s "probability" must be a number from 0 to 1; it is 1.1.`],
  [{ ...DROP, probability: -1 }, `'s "probability" must be a number from 0 to 1; it is -1.`],
  [
    { ...DROP, [`\n${"y".repeat(99)}`]: 1 },
    ` has no field "\\n${"y".repeat(62)}…". Known: match, action, times, probability.`,
  ],
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
    await expect(createEmulator({ faults: faults as never })).rejects.toMatchObject({
      code: "invalid_option",
      message,
    });
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
    const command = addEmulatorFlags(new Command("emulator")).exitOverride();
    const { options } = emulatorInput(command.parse(["--fault", JSON.stringify(rule)], { from: "user" }));
    const { faults = [] } = options;
    emulator.control.faults.add(faults[0] as FaultRule);
    expect(emulator.control.faults.list().map((one) => one.rule)).toEqual([rule, rule, rule]);
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
