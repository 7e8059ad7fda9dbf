import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  isKnownEvent,
  isTerminal,
  KNOWN_EVENT_TYPES,
  parseEvent,
  ruleOf,
} from "../../../src/sources/messaging/parse.ts";
import { bodies, bytes, deliveryBody, failedBody, inboundBody, sentBody } from "./examples.ts";

type Fields = Record<string, unknown>;
const TEXT_RULE = "expected 1 to 512 characters of well-formed Unicode, at most 1300 bytes";
const outboundTypes = ["message.queued", "message.sent", "message.delivery", "message.failed"] as const;

/** A body with some top-level fields and some fields of `data` replaced; undefined leaves one out. */
const altered = (body: string, fields: Fields, data: Fields = {}) => {
  const event = JSON.parse(body);
  return bytes(JSON.stringify({ ...event, ...fields, data: { ...event.data, ...data } }));
};
const codeOf = (input: unknown) => {
  const result = parseEvent(input);
  return result.ok ? "ok" : result.code;
};
const issuesOf = (input: unknown) => {
  const result = parseEvent(input);
  return result.ok ? "ok" : result.issues;
};

describe("parseEvent() on the specification's events", () => {
  it.each(KNOWN_EVENT_TYPES)("reads %s with every field as it was sent (EVT-1, EVT-2)", (eventType) => {
    const result = parseEvent(bytes(bodies[eventType]));
    expect(result).toEqual({ ok: true, event: JSON.parse(bodies[eventType]) });
  });

  it.each(outboundTypes)("keeps a status of %s that the specification does not show (EVT-13, RCV-11)", (eventType) => {
    for (const status of ["undelivered", "", "Sent", "queued"]) {
      expect(parseEvent(altered(bodies[eventType], {}, { status }))).toMatchObject({
        ok: true,
        event: { data: { status } },
      });
    }
  });

  it("reads a delivery without a provider reference, or a null one (EVT-7, EVT-13)", () => {
    expect(codeOf(altered(deliveryBody, {}, { providerMessageRef: undefined }))).toBe("ok");
    expect(codeOf(altered(deliveryBody, {}, { providerMessageRef: null }))).toBe("ok");
    expect(codeOf(altered(deliveryBody, {}, { providerMessageRef: 5 }))).toBe("invalid_event");
  });

  it("wants an error with code, message and details on a failed event only (EVT-6)", () => {
    const error = { code: "C", message: "M", details: { providerStatus: 500 }, more: 1 };
    expect(codeOf(altered(failedBody, {}, { error }))).toBe("ok");
    expect(codeOf(altered(failedBody, {}, { error: null }))).toBe("invalid_event");
    expect(codeOf(altered(failedBody, {}, { error: { ...error, details: [] } }))).toBe("invalid_event");
    expect(codeOf(altered(deliveryBody, {}, { error }))).toBe("ok");
  });

  it("keeps unknown fields at every level (RCV-11)", () => {
    for (const eventType of KNOWN_EVENT_TYPES) {
      const body = altered(
        bodies[eventType],
        { extra: { a: [1, null] }, constructor: 1 },
        { more: "x", toString: "y" },
      );
      expect(parseEvent(body)).toEqual({ ok: true, event: JSON.parse(body.toString()) });
    }
  });

  it("wants neither a sequence nor a top-level message id of an inbound event (EVT-3, RCV-10)", () => {
    const result = parseEvent(bytes(inboundBody));
    expect(result.ok && "sequence" in result.event).toBe(false);
    expect(codeOf(altered(inboundBody, { sequence: 99_999, messageId: "msg_2001" }))).toBe("ok");
    expect(codeOf(altered(inboundBody, { messageId: "msg_other" }))).toBe("invalid_event");
  });
});

describe("parseEvent() on broken known events", () => {
  it("refuses an event that lacks any field of the specification (EVT-2, EVT-4, EVT-10)", () => {
    let tried = 0;
    for (const body of Object.values(bodies)) {
      const event = JSON.parse(body);
      for (const name of Object.keys(event)) {
        expect(codeOf(bytes(JSON.stringify({ ...event, [name]: undefined })))).toBe("invalid_event");
        tried++;
      }
      for (const name of Object.keys(event.data)) {
        if (name === "providerMessageRef") continue;
        expect(codeOf(altered(body, {}, { [name]: undefined }))).toBe("invalid_event");
        tried++;
      }
    }
    expect(tried).toBe(65);
  });

  it("refuses a value of another type in any field", () => {
    for (const body of Object.values(bodies)) {
      const event = JSON.parse(body);
      for (const name of Object.keys(event)) {
        expect(codeOf(bytes(JSON.stringify({ ...event, [name]: [[]] })))).toBe("invalid_event");
      }
      for (const name of Object.keys(event.data)) {
        expect(codeOf(altered(body, {}, { [name]: name === "media" ? "" : [[]] }))).toBe("invalid_event");
      }
    }
  });

  it.each(KNOWN_EVENT_TYPES)("refuses %s with the other direction (EVT-1)", (eventType) => {
    const direction = eventType === "message.inbound" ? "outbound" : "inbound";
    expect(issuesOf(altered(bodies[eventType], { direction }))).toEqual([
      `direction: expected ${direction === "inbound" ? "outbound" : "inbound"}`,
    ]);
  });

  it.each([0, 1, 9_999, 10_000, "1e4", "1.0", "-0"])("takes the sequence %s", (sequence) => {
    expect(codeOf(bytes(sentBody.replace('"sequence":2', `"sequence":${sequence}`)))).toBe("ok");
  });

  it.each(["-1", "10001", "1.5", "1e400", "9007199254740993", "1e300", "null", '"2"', "true", "[2]"])(
    "refuses the sequence %s",
    (sequence) => {
      expect(codeOf(bytes(sentBody.replace('"sequence":2', `"sequence":${sequence}`)))).toBe("invalid_event");
    },
  );

  it.each(["9007199254740992", "1e400", "1763629201000.5", '"1763629201000"', "null"])(
    "refuses the time %s: no safe integer",
    (time) => {
      expect(codeOf(bytes(sentBody.replace("1763629201000", time)))).toBe("invalid_event");
      expect(codeOf(bytes(inboundBody.replace("1763629203900", time)))).toBe("invalid_event");
    },
  );

  it.each(["apiClientId", "data.messageId"])("says that %s cannot be part of an identity", (path) => {
    const body = path === "apiClientId" ? sentBody.replace("apc_7", "") : sentBody.replaceAll("msg_1001", "");
    expect(issuesOf(bytes(body))).toEqual([`${path}: ${TEXT_RULE}`]);
  });

  it("refuses message ids that disagree", () => {
    for (const eventType of outboundTypes) {
      expect(issuesOf(altered(bodies[eventType], { messageId: "msg_1" }))).toEqual([
        "messageId: expected the value of data.messageId",
      ]);
    }
  });

  it.each([
    ["empty", '""', false],
    ["a lone high surrogate", '"a\\ud83d"', false],
    ["a lone low surrogate", '"\\ude00a"', false],
    ["surrogates in the wrong order", '"\\ude00\\ud83d"', false],
    ["513 characters", `"${"x".repeat(513)}"`, false],
    ["512 characters", `"${"x".repeat(512)}"`, true],
    ["1,301 bytes", `"xx${"€".repeat(433)}"`, false],
    ["1,300 bytes", `"x${"€".repeat(433)}"`, true],
    ["1,301 bytes by escapes", `"xx${"\\u20ac".repeat(433)}"`, false],
    ["a surrogate pair by escapes", '"\\ud83d\\ude00"', true],
    ["U+FFFD", '"\ufffd"', true],
    ["a NUL", '"a\\u0000b"', true],
    ["a space", '" "', true],
  ])("identity strings: %s", (_name, text, fits) => {
    const code = fits ? "ok" : "invalid_event";
    expect(codeOf(bytes(sentBody.replace('"apc_7"', text)))).toBe(code);
    expect(codeOf(bytes(sentBody.replaceAll('"msg_1001"', text)))).toBe(code);
    expect(codeOf(bytes(inboundBody.replace('"msg_2001"', text)))).toBe(code);
    expect(codeOf(bytes(`{"eventType":${text}}`))).toBe(code);
  });

  it("names paths and rules in its issues, and never a value", () => {
    const marks: Fields = {};
    const event = JSON.parse(failedBody);
    for (const name of Object.keys(event)) if (name !== "eventType") marks[name] = { SECRET: "SECRET" };
    const data = { error: { code: 1, SECRET: 1 }, to: ["SECRET"], status: { SECRET: 1 } };
    const results = [
      parseEvent(bytes(JSON.stringify({ ...event, ...marks }))),
      parseEvent(altered(failedBody, { sequence: 987_654, direction: "SECRET", apiClientId: "SECRET\ud800" }, data)),
      parseEvent(bytes('{"eventType":"SECRET\\ud800"}')),
      parseEvent(bytes("SECRET")),
      parseEvent("SECRET"),
    ];
    for (const result of results) {
      expect(result.ok).toBe(false);
      expect(JSON.stringify(result)).not.toMatch(/SECRET|987654/);
    }
    expect(results[1]).toMatchObject({
      issues: expect.arrayContaining([
        "sequence: expected at most 10000",
        "data.to: expected string",
        "data.error.code: expected string",
      ]),
    });
  });
});

describe("parseEvent() on unknown event types (RCV-11)", () => {
  it.each([
    "{}",
    '{"direction":5,"apiClientId":[],"messageId":{},"sequence":"x","occurredAt":"now","data":7}',
    '{"direction":null,"apiClientId":null,"messageId":null,"sequence":null,"occurredAt":null,"data":null}',
    '{"direction":"outbound","apiClientId":"c","messageId":"m","sequence":1.5}',
    '{"direction":"outbound","apiClientId":"c","messageId":"m","sequence":1e400}',
    '{"direction":"outbound","apiClientId":"c","messageId":"m","sequence":7,"data":{"messageId":"m"}}',
    '{"direction":"outbound","apiClientId":"","messageId":"","sequence":0}',
    '{"direction":"outbound","apiClientId":"\\ud800","messageId":"m","sequence":1}',
    '{"direction":"inbound","messageId":"m","data":{"messageId":"other"}}',
    '{"direction":"outbound","data":{"messageId":"other"}}',
    '{"direction":"sideways","data":["x"]}',
    '{"constructor":{"prototype":1}}',
  ])("keeps %s as it is", (rest) => {
    const fields = { eventType: "message.read", ...JSON.parse(rest) };
    const result = parseEvent(
      bytes(
        JSON.stringify(fields).replace(
          '"sequence":null',
          `"sequence":${JSON.parse(rest).sequence === null ? "null" : "1e400"}`,
        ),
      ),
    );
    expect(result).toEqual({ ok: true, event: fields });
    expect(result.ok && isKnownEvent(result.event)).toBe(false);
  });

  it.each(["Message.sent", "message.sent ", "message", "__proto__", "constructor", "toString"])(
    "takes %j for an unknown type",
    (eventType) => {
      expect(codeOf({ eventType })).toBe("ok");
    },
  );

  it.each([0, 10_000])("takes the sequence %i", (sequence) => {
    expect(codeOf(bytes(`{"eventType":"message.read","direction":"outbound","sequence":${sequence}}`))).toBe("ok");
  });

  it.each(["-1", "10001", "1e300", "9007199254740993"])("refuses the integer sequence %s", (sequence) => {
    const body = bytes(`{"eventType":"message.read","direction":"outbound","sequence":${sequence}}`);
    const issues = ["sequence: expected 0 to 10000"];
    expect(parseEvent(body)).toEqual({ ok: false, code: "invalid_event", issues });
  });

  it("refuses an outbound one whose message ids disagree", () => {
    const text = '{"eventType":"message.read","direction":"outbound","messageId":"a","data":{"messageId":"b"}}';
    const issues = ["messageId: expected the value of data.messageId"];
    expect(parseEvent(bytes(text))).toEqual({ ok: false, code: "invalid_event", issues });
  });

  it.each(["{}", '{"eventType":null}', '{"eventType":1}', '{"eventType":["message.sent"]}', '{"eventType":""}'])(
    "refuses %s: no event type",
    (text) => {
      expect(issuesOf(bytes(text))).toEqual([`eventType: ${TEXT_RULE}`]);
    },
  );
});

describe("parseEvent() on other values", () => {
  it.each(["null", "true", "1", '"x"', "[]", "[{}]", "-0", "1e400"])("refuses %s: no object", (text) => {
    const failure = { ok: false, code: "not_an_object" };
    const issue = text === '"x"' ? "expected the body's bytes, or an object; this is text" : "expected an object";
    expect(parseEvent(bytes(text))).toEqual({ ...failure, issues: [issue] });
  });

  it("passes on why bytes are no JSON", () => {
    expect(parseEvent(bytes(`\ufeff${sentBody}`))).toEqual({ ok: false, code: "byte_order_mark", issues: [] });
    expect(codeOf(bytes(`${sentBody}x`))).toBe("invalid_json");
    expect(codeOf(bytes(""))).toBe("invalid_json");
    expect(codeOf(Buffer.concat([bytes('{"eventType":"x'), Buffer.from([0xff]), bytes('"}')]))).toBe("invalid_utf8");
    expect(codeOf(bytes(sentBody.replace("{", '{"\\u0073equence":9,')))).toBe("duplicate_key");
    expect(codeOf(bytes(sentBody.replace("{", '{"__proto__":9,')))).toBe("forbidden_key");
    expect(codeOf(bytes(sentBody.replace("{", `{"x":${"[".repeat(64)}${"]".repeat(64)},`)))).toBe("too_deep");
  });

  it("reads an object that was parsed before, and shares nothing with it", () => {
    const value = JSON.parse(inboundBody);
    const result = parseEvent(value);
    expect(result).toEqual({ ok: true, event: value });
    value.data.media.push("later");
    expect(result).toEqual({ ok: true, event: JSON.parse(inboundBody) });
  });

  it("tells a caller who passes text that it wants bytes", () => {
    expect(issuesOf(sentBody)).toEqual(["expected the body's bytes, or an object; this is text"]);
  });

  it("never throws, whatever it is given", () => {
    const cycle: Fields = { eventType: "x" };
    cycle.self = cycle;
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level++) deep = [deep];
    const throwing = new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail, getOwnPropertyDescriptor: fail });
    const odd = [undefined, null, 0, 1n, Symbol("x"), () => 1, Number.NaN];
    const odder = [new Date(Number.NaN), new Map(), new ArrayBuffer(2), cycle, deep];
    const getter = {
      get eventType() {
        return fail();
      },
    };
    for (const value of [...odd, ...odder, throwing, getter, { toJSON: fail }, { eventType: "x", n: 1n }]) {
      expect(parseEvent(value).ok).toBe(false);
    }
  });

  it("says that a value which JSON cannot write is none", () => {
    const cycle: Fields = { eventType: "x" };
    cycle.self = cycle;
    for (const value of [undefined, fail, Symbol("x"), 1n, cycle, { toJSON: fail }]) {
      expect(parseEvent(value)).toEqual({ ok: false, code: "invalid_json", issues: [] });
    }
  });

  it("refuses a __proto__ key that another parser let through", () => {
    expect(codeOf(JSON.parse('{"eventType":"x","__proto__":{"admin":true}}'))).toBe("forbidden_key");
  });
});

function fail(): never {
  throw new Error("touched");
}

const rulesOf = (schema: z.ZodType, value: unknown) => schema.safeParse(value).error?.issues.map(ruleOf);

describe("ruleOf()", () => {
  it.each([
    ["a type", z.string(), 5, "expected string"],
    ["one value", z.literal("a"), "SECRET", "expected a"],
    ["several values", z.enum(["a", "b", "c"]), "SECRET", "expected a or b or c"],
    ["a minimum", z.number().min(3), 2, "expected at least 3"],
    ["a maximum", z.number().max(3), 4, "expected at most 3"],
    ["any other rule, by zod's name for it", z.string().regex(/^a$/), "SECRET", "invalid_format"],
  ])("says %s without the value", (_, schema, value, rule) => {
    expect(rulesOf(schema, value)).toEqual([rule]);
  });
});

it("a message ends with its delivery or its failure (EVT-8, EVT-9)", () => {
  expect(KNOWN_EVENT_TYPES.filter(isTerminal)).toEqual(["message.delivery", "message.failed"]);
  expect(isTerminal("message.read")).toBe(false);
});
