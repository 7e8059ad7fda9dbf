/** What of a body may be seen by whoever may not see numbers and texts. */
import { describe, expect, it } from "vitest";
import { maskedBody } from "../../../src/receiver/shown.ts";

/** Of the body with this JSON. */
const seen = (value: unknown) => maskedBody(Buffer.from(JSON.stringify(value)));

const IDS = ["apiClientId", "messageId", "conversationId", "numberId", "providerMessageRef"];
const WORDS = ["eventType", "direction", "status", "code"];

describe("maskedBody(): ids and words", () => {
  it.each(IDS)("shows %s where it looks like an id", (key) => {
    for (const id of ["a", "msg_1", "MSG-2.b:9_Z", "7f", "-"]) expect(seen({ [key]: id })).toEqual({ [key]: id });
  });

  it.each(IDS)("leaves out a text in %s", (key) => {
    for (const text of ["call me", " msg_1", "msg_1 ", "msg_1!", "é", "msg_1\n2"]) {
      expect(seen({ [key]: text })).toEqual({ [key]: "[text]" });
    }
    expect(seen({ [key]: "+15550100002" })).toEqual({ [key]: "…02" });
  });

  it.each(WORDS)("shows %s where it looks like a word of a program", (key) => {
    for (const word of ["a", "Z", "message.sent", "SEND_FAILED:x-9"])
      expect(seen({ [key]: word })).toEqual({ [key]: word });
  });

  it.each(WORDS)("leaves out of %s what somebody may have to type in, and texts", (key) => {
    for (const text of ["483920", "4a", "_a", ".a", "call me", "sent!", " sent", "é"]) {
      expect(seen({ [key]: text })).toEqual({ [key]: "[text]" });
    }
    expect(seen({ [key]: "15550100002" })).toEqual({ [key]: "…02" });
  });

  it("takes no other field for an id or a word", () => {
    for (const key of ["", "id", "body", "text", "messageid", "to", "from", "note", "occurredAt", "toString"]) {
      expect(seen({ [key]: "msg_1" })).toEqual({ [key]: "[text]" });
    }
  });

  it("shows the application's own reference, by which people search, with the numbers in it masked", () => {
    const references = ["order-77", "Zoë's order", "for +1 (555) 010-0002, twice", "15550100002", "483920"];
    expect(references.map((externalReference) => seen({ externalReference }))).toEqual([
      { externalReference: "order-77" },
      { externalReference: "Zoë's order" },
      { externalReference: "for …02, twice" },
      { externalReference: "…02" },
      { externalReference: "483920" },
    ]);
  });
});

describe("maskedBody(): texts", () => {
  it.each([
    ["+15550100002", "…02"],
    ["15550100003", "…03"],
    ["+1 (555) 010-00-04", "…04"],
    ["1.555.010.0005", "…05"],
    ["5550106", "…06"],
  ])("keeps the last two digits of the number %j", (text, shown) => {
    expect(seen({ to: text })).toEqual({ to: shown });
  });

  it.each([
    "483920",
    "12 34 56",
    "+",
    "-- ..",
    " ",
    "ok",
    "Call 5550100002",
    "5550100002 please",
    "++15550100002",
    "555_0100002",
    "[text]",
  ])("leaves out %j", (text) => {
    expect(seen({ to: text })).toEqual({ to: "[text]" });
  });

  it("shows that a text is empty", () => {
    expect(seen({ body: "", messageId: "", code: "", externalReference: "" })).toEqual({
      ...{ body: "", messageId: "", code: "", externalReference: "" },
    });
  });
});

describe("maskedBody(): other values", () => {
  it.each(["occurredAt", "timestamp", "sequence"])("shows the number in %s", (key) => {
    expect(seen({ [key]: 1_760_000_000_000 })).toEqual({ [key]: 1_760_000_000_000 });
    expect(seen({ [key]: [1_760_000_000_000] })).toEqual({ [key]: [1_760_000_000_000] });
  });

  it.each([
    [0, 0],
    [1.5, 1.5],
    [-7, -7],
    [483_920, 483_920],
    [5_550_107, "…07"],
    [15_550_100_002, "…02"],
    [-15_550_100_002, "-…02"],
  ])("shows of the number %d in any other field %j", (value, shown) => {
    expect(seen({ phone: value })).toEqual({ phone: shown });
    expect(seen({ "": value, code: value, messageId: value })).toEqual({ "": shown, code: shown, messageId: shown });
  });

  it("shows true, false and null", () => {
    expect(seen({ a: true, b: false, c: null, d: [null, true] })).toEqual({
      a: true,
      b: false,
      c: null,
      d: [null, true],
    });
  });

  it("masks what lists and objects hold, at any depth", () => {
    expect(
      seen({ media: [], error: {}, data: { to: ["+15550100002", "Ann"], list: [[{ messageId: "msg_1" }]] } }),
    ).toEqual({
      ...{ media: [], error: {} },
      data: { to: ["…02", "[text]"], list: [[{ messageId: "msg_1" }]] },
    });
  });

  it("takes what is in a list for what the list is", () => {
    expect(seen({ messageId: ["msg_1", "call me"], list: ["msg_1"] })).toEqual({
      ...{ messageId: ["msg_1", "[text]"], list: ["[text]"] },
    });
  });

  it("masks numbers that are names of fields, and still knows what is in them", () => {
    expect(seen({ "+15550100002": "msg_1", "order 77": 1, data: { "call 5550100003": { code: "sent" } } })).toEqual({
      ...{ "…02": "[text]", "order 77": 1 },
      data: { "call …03": { code: "sent" } },
    });
  });

  it("keeps the order of the fields", () => {
    expect(JSON.stringify(seen({ to: "+15550100002", eventType: "a", body: "b" }))).toBe(
      '{"to":"…02","eventType":"a","body":"[text]"}',
    );
  });

  it.each([
    ["msg_1", "[text]"],
    ["+15550100002", "…02"],
    ["", ""],
    [1_760_000_000_000, "…00"],
    [77, 77],
    [null, null],
    [[], []],
    [["Ann"], ["[text]"]],
  ])("takes a body that is no object: %j", (value, shown) => {
    expect(seen(value)).toEqual(shown);
  });
});

describe("maskedBody() of what nests deep", () => {
  const nested = (levels: number, [open, close]: readonly [string, string]) =>
    `${open.repeat(levels)}1${close.repeat(levels)}`;
  const shown = (levels: number, brackets: readonly [string, string]) =>
    JSON.stringify(maskedBody(Buffer.from(nested(levels, brackets))));

  it.each([[["[", "]"]], [['{"a":', "}"]]] as const)("shows as many levels as an event may have: %j", (brackets) => {
    expect(shown(64, brackets)).toBe(nested(64, brackets));
    const [open, close] = brackets;
    const deepest = `${open.repeat(64)}"[nested too deep to be shown]"${close.repeat(64)}`;
    for (const levels of [65, 5_000, 100_000]) expect(shown(levels, brackets)).toBe(deepest);
  });
});

describe("maskedBody() of what is no JSON", () => {
  it.each([
    ["", 0],
    ["+15550100002 Ann", 16],
    ['{"to":"Ann"', 11],
    // Bytes, not characters.
    ["Zoë", 4],
  ])("tells of %j only that it has %i bytes", (text, size) => {
    expect(maskedBody(Buffer.from(text))).toBe(`[${size} bytes that are not JSON]`);
  });

  it("reads bytes of any kind, and only those it is given", () => {
    const larger = new TextEncoder().encode('xx{"a":1}xx');
    expect(maskedBody(larger.subarray(2, 9))).toEqual({ a: 1 });
    expect(maskedBody(Uint8Array.of(0xff, 0xfe))).toBe("[2 bytes that are not JSON]");
  });
});
