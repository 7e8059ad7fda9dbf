/** What of a body may be seen by whoever may not see numbers and texts. */
import { describe, expect, it } from "vitest";
import { maskedBody } from "../../../src/receiver/shown.ts";

/** Of the body with this JSON, where its source shows the fields `shows`. */
const seen = (value: unknown, ...shows: readonly string[]) => maskedBody(Buffer.from(JSON.stringify(value)), shows);

describe("maskedBody() without fields that may be shown", () => {
  it.each([
    [{}, {}],
    [{ id: "evt_1" }, { "[hidden]": "1 field" }],
    [{ "alice@example.com": { admin: true }, "+15550100002": 7, otp: 483_920 }, { "[hidden]": "3 fields" }],
    [JSON.parse('{"__proto__":{"id":1},"constructor":"x"}'), { "[hidden]": "2 fields" }],
    [[], []],
    [
      [{ id: "evt_1" }, "Ann", 7, [true]],
      [{ "[hidden]": "1 field" }, "[hidden]", "[hidden]", ["[hidden]"]],
    ],
    ["msg_1", "[hidden]"],
    ["", "[hidden]"],
    [77, "[hidden]"],
    [null, "[hidden]"],
    [true, "[hidden]"],
  ])("shows of %j how much there is", (value, shown) => {
    expect(seen(value)).toEqual(shown);
  });
});

describe("maskedBody(): fields that may be shown", () => {
  it("shows ids, words and times", () => {
    const ids =
      "a msg_1 MSG-2.b:9_Z 7f message.sent 483920 gid://shopify/Order/8209829119461 2026-01-01T12:00:00+02:00";
    for (const id of [...ids.split(" "), "/deploy", "evt_1234567890", ""]) {
      expect(seen({ id }, "id")).toEqual({ id });
      expect(seen({ to: id }, "id")).toEqual({ "[hidden]": "1 field" });
    }
  });

  it("leaves out other texts", () => {
    const texts =
      "call me| msg_1|msg_1 |msg_1!|é|msg_1\n2|alice@example.com|+|-- ..|12 34 56|Call 5550100002|5550100002 please";
    for (const text of [...texts.split("|"), "++15550100002", "[text]", "x".repeat(256)])
      expect(seen({ id: text }, "id")).toEqual({ id: "[text]" });
  });

  it.each([
    ["+15550100002", "…02"],
    ["15550100003", "…03"],
    ["+1 (555) 010-00-04", "…04"],
    ["1.555.010.0005", "…05"],
    ["5550106", "…06"],
    ["order-15550100007", "order-…07"],
  ])("keeps two digits of %j, which may be a phone number", (text, shown) => {
    expect(seen({ id: text }, "id")).toEqual({ id: shown });
  });

  it.each([0, 1.5, -7, 483_920, 15_550_100_002, 1_760_000_000_000, true, false, null])("shows %j", (value) => {
    expect(seen({ a: value }, "a")).toEqual({ a: value });
    expect(seen({ a: value }, "b")).toEqual({ "[hidden]": "1 field" });
  });

  it("shows no number that lost digits when it was parsed", () => {
    expect(maskedBody(Buffer.from('{"id":820982911946154508}'), ["id"])).toEqual({ id: "[too large a number]" });
  });

  it("follows a path through objects and lists, and shows nothing beside it", () => {
    const body = {
      id: 1,
      type: "x",
      data: { object: { id: "in_1", name: "Ann" }, id: "d", items: [{ id: "i1", to: "Ann" }, [{ id: "i2" }], "i3"] },
    };
    expect(seen(body, "id", "data.object.id", "data.items.id")).toEqual({
      id: 1,
      data: {
        object: { id: "in_1", "[hidden]": "1 field" },
        items: [{ id: "i1", "[hidden]": "1 field" }, [{ id: "i2" }], "[hidden]"],
        "[hidden]": "1 field",
      },
      "[hidden]": "1 field",
    });
  });

  it("takes what is in a list for what the list is", () => {
    expect(seen({ ids: ["msg_1", ["call me"], { a: 1 }] }, "ids")).toEqual({
      ids: ["msg_1", ["[text]"], { "[hidden]": "1 field" }],
    });
  });

  it("shows no object as a whole, and no field of another path", () => {
    expect(seen({ data: { id: "d" }, id: { data: "x" } }, "data", "id")).toEqual({
      data: { "[hidden]": "1 field" },
      id: { "[hidden]": "1 field" },
    });
    expect(seen({ "data.id": "x" }, "data.id")).toEqual({ "[hidden]": "1 field" });
  });

  it("shows of names like those of a prototype only what the body has", () => {
    expect(seen({ a: 1 }, "constructor", "toString", "__proto__.a")).toEqual({ "[hidden]": "1 field" });
    const shown = seen(JSON.parse('{"__proto__":{"a":"b"}}'), "__proto__.a") as object;
    expect(JSON.stringify(shown)).toBe('{"__proto__":{"a":"b"}}');
    expect(({} as { readonly a?: unknown }).a).toBeUndefined();
  });

  it("keeps the order of the fields", () => {
    expect(JSON.stringify(seen({ b: 1, x: 2, a: 3 }, "a", "b"))).toBe('{"b":1,"a":3,"[hidden]":"1 field"}');
  });
});

describe("maskedBody() of what nests deep", () => {
  const nested = (levels: number, [open, close]: readonly [string, string]) =>
    `${open.repeat(levels)}1${close.repeat(levels)}`;
  const path = Array.from({ length: 64 }, () => "a").join(".");
  const shown = (levels: number, brackets: readonly [string, string]) =>
    JSON.stringify(maskedBody(Buffer.from(nested(levels, brackets)), [path, `${path}.a`]));

  it("shows as many levels as an event may have", () => {
    expect(shown(64, ['{"a":', "}"])).toBe(nested(64, ['{"a":', "}"]));
    expect(shown(64, ["[", "]"])).toBe(`${"[".repeat(64)}"[hidden]"${"]".repeat(64)}`);
    for (const [open, close] of [
      ["[", "]"],
      ['{"a":', "}"],
    ] as const) {
      const deepest = `${open.repeat(64)}"[nested too deep to be shown]"${close.repeat(64)}`;
      for (const levels of [65, 5_000, 100_000]) expect(shown(levels, [open, close])).toBe(deepest);
    }
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
    expect(maskedBody(Buffer.from(text), ["to"])).toBe(`[${size} bytes that are not JSON]`);
  });

  it("reads bytes of any kind, and only those it is given", () => {
    const larger = new TextEncoder().encode('xx{"a":1}xx');
    expect(maskedBody(larger.subarray(2, 9), ["a"])).toEqual({ a: 1 });
    expect(maskedBody(Uint8Array.of(0xff, 0xfe), ["a"])).toBe("[2 bytes that are not JSON]");
  });
});
