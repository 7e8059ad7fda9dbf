import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  errorFields,
  failureCode,
  logFieldsOf,
  MOST_SEARCHED,
  maskingOf,
  type Quoted,
} from "../../src/inbox/masking.ts";
import { maskNumbers } from "../../src/internal/logger.ts";
import { parseEvent } from "../../src/sources/messaging/parse.ts";
import { SERVICE_SHOWS } from "../../src/sources/messaging/source.ts";
import type { WebhookEvent } from "../../src/sources/messaging/types.ts";
import { sized } from "../setup/form.ts";
import { inboundBody } from "../sources/messaging/examples.ts";

function inboundWith(body: string): WebhookEvent {
  const json = JSON.parse(inboundBody) as { data: object };
  const parsed = parseEvent(Buffer.from(JSON.stringify({ ...json, data: { ...json.data, body } })));
  if (!parsed.ok) throw new Error(parsed.code);
  return parsed.event;
}

function unknownWith(data: unknown): WebhookEvent {
  const parsed = parseEvent(Buffer.from(JSON.stringify({ eventType: "message.read", data })));
  if (!parsed.ok) throw new Error(parsed.code);
  return parsed.event;
}

/** The stored form of an error that says `message` about an event of the messaging service. */
function maskText(message: string, event: object | null): string {
  return maskingOf({ event, bytes: 0, head: null, shows: SERVICE_SHOWS, named: [] }).text(message);
}

/** What hides an event of another source. */
function other(event: object, more: Partial<Quoted> = {}) {
  return maskingOf({ event, bytes: 0, head: null, shows: [], named: [], ...more });
}

/** Texts that are no part of what replaces them. */
const text = fc
  .string({ minLength: 4, maxLength: 40, unit: fc.constantFrom(...'abkz \n\t"\\/é👍1234567890.$&') })
  .filter((value) => !"[text]".includes(value) && !/^[\d\s.()-]*$/.test(value));

describe("logFieldsOf()", () => {
  const DIGEST = "a".repeat(64);
  const of = (name: string | null, id: string | null) => {
    const lane = { source: "billing", tenant: "acme", name, order: name === null ? null : ("position" as const) };
    return logFieldsOf({ eventId: 7, lane, id, sequence: 3, eventType: "invoice.paid" });
  };

  it("has the source, and the lane and the id that there are", () => {
    const always = { eventId: 7, eventType: "invoice.paid", sequence: 3, source: "billing" };
    expect(of("sub_1", "evt_1")).toEqual({ ...always, lane: "sub_1", id: "evt_1" });
    expect(of("sub_1", null)).toEqual({ ...always, lane: "sub_1" });
    expect(of(null, "evt_1")).toEqual({ ...always, id: "evt_1" });
  });

  it("has no digest of a body, and no number of an event that has none yet", () => {
    expect(Object.keys(of(DIGEST, `${DIGEST}:1`))).toEqual(["eventId", "eventType", "sequence", "source"]);
    const { lane, id } = { lane: { source: "billing", tenant: null, name: null, order: null }, id: "evt_1" } as const;
    const fields = logFieldsOf({ eventId: undefined, lane, id, sequence: 0, eventType: "invoice.paid" });
    expect(fields).toEqual({ eventType: "invoice.paid", sequence: 0, source: "billing", id: "evt_1" });
  });
});

describe("maskNumbers()", () => {
  it.each([
    ["to +15550100002 failed", "to …02 failed"],
    ["(555) 010-0002", "(…02"],
    ["+1 (555) 010-0002.", "…02."],
    ["15550100002,15550100003", "…02,…03"],
    ["123456 stays, 1234567 goes", "123456 stays, …67 goes"],
    ["status 503 after 30000 ms", "status 503 after 30000 ms"],
  ])("turns %j into %j", (message, masked) => {
    expect(maskNumbers(message)).toBe(masked);
  });

  it("leaves no run of seven digits, whatever is around it", () => {
    const piece = fc.oneof(fc.stringMatching(/^\+?[\d ().-]{1,30}$/), fc.string());
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        expect(maskNumbers(pieces.join(""))).not.toMatch(/\d(?:[\s().-]{0,3}\d){6}/);
      }),
      { numRuns: sized({ quick: 300, full: 2_000 }) },
    );
  });
});

describe("maskText()", () => {
  it("takes out the text of an inbound event, plain or quoted in JSON", () => {
    const event = inboundWith('Meet "me"\nat 5');
    const message = `Cannot insert Meet "me"\nat 5 of ${JSON.stringify(event)}`;
    const masked = maskText(message, event);
    expect(masked).not.toContain('Meet "me"');
    expect(masked).not.toContain('Meet \\"me');
    expect(masked).not.toContain("15550100001");
    expect(masked).toContain("Cannot insert [text] of");
  });

  it("takes out a part of a body's JSON too, without the quotes around the text", () => {
    const event = inboundWith('Meet "me"\nat 5');
    const part = JSON.stringify('Text: Meet "me"\nat 5, and more').slice(1, -1);
    expect(maskText(`Cannot parse ${part}`, event)).toBe("Cannot parse Text: [text], and more");
  });

  it("takes out body and text of an unknown event, the longer first", () => {
    const event = unknownWith({ body: "secret", text: "secret plan" });
    expect(maskText("it said secret plan, secret", event)).toBe("it said [text], [text]");
  });

  it.each([[null], [7], ["text"], [{}], [{ body: 7 }]])("finds no text in data %j", (data) => {
    expect(maskText("as it was", unknownWith(data))).toBe("as it was");
  });

  it("leaves texts of less than four characters, which would blank out the message", () => {
    expect(maskText("not ok", inboundWith("ok"))).toBe("not ok");
  });

  it.each([
    ["the beginning of it", 'Unexpected token "Meet me at t"...', 'Unexpected token "[text]"...'],
    ["the middle of it", 'Unexpected "...t me at the bri"...', 'Unexpected "...[text]"...'],
    ["a word of it, in capitals", "Unknown keyword BRIDGE!", "Unknown keyword [text]!"],
    ["its words in another order", "bridge, tomorrow: 4711", "[text], [text]: [text]"],
    ["a word within a URL", "GET /search?q=Meet%20me%20at%20the", "GET /search?q=[text]"],
    ["short words alone", "at me it is", "at me it is"],
    ["numbers", "to +15550100002, not +1 555 010 0003", "to …02, not …03"],
    ["the end of its number", "ends with 0002", "ends with [text]"],
    ["no other part of a number", "after 5550 ms, 0100 times", "after 5550 ms, 0100 times"],
    ["ids", "msg_2001 of cnv_9 at num_3", "msg_2001 of cnv_9 at num_3"],
    ["something else", "Cannot read properties of undefined", "Cannot read properties of undefined"],
  ])("takes %s out", (_what, message, masked) => {
    expect(maskText(message, inboundWith("Meet me at the bridge 👍 4711 tomorrow"))).toBe(masked);
  });

  it("leaves an id whole, though a text or a number has a part of it", () => {
    const event = unknownWith({ messageId: "msg_0002", note: "0002 is the code", to: "+15550100002" });
    expect(maskText("No order for msg_0002 by 0002", event)).toBe("No order for msg_0002 by [text]");
  });

  it("is not kept from a text by an id that is a part of its words", () => {
    const event = unknownWith({ messageId: "idge", note: "Meet me at the bridge" });
    expect(maskText("Unknown word bridge", event)).toBe("Unknown word [text]");
  });

  it("takes out a short code that is all of a text", () => {
    expect(maskText("Not a name: 47 11", inboundWith("47 11"))).toBe("Not a name: [text]");
  });

  it("takes short words out where a script needs few letters, and emoji", () => {
    const event = inboundWith("明天 10 点 👍");
    expect(maskText("Not a date: 明天. Nor 👍.", event)).toBe("Not a date: [text]. Nor [text].");
  });

  it("takes out every string of an event that an inspector would not show", () => {
    const deep = [{ any: ["hidden thing"] }];
    const event = unknownWith({ note: "late shift", deep, status: "open", error: { code: "E_42" } });
    expect(maskText("late shift, hidden thing, open, E_42", event)).toBe("[text], [text], open, E_42");
  });

  it.each([
    ["postgres://app:pa55word@db:5432/shop is gone", "postgres://…@db:5432/shop is gone"],
    ["401 for Authorization: Bearer abc.def-123", "401 for Authorization: Bearer …"],
    ["basic authentication failed", "basic authentication failed"],
  ])("takes the credentials out of %j", (message, masked) => {
    expect(maskText(message, null)).toBe(masked);
  });

  it("is quick with a text of 256 KiB", () => {
    const event = inboundWith("word and another ".repeat(16_000));
    const before = performance.now();
    maskText("another word ".repeat(200), event);
    expect(performance.now() - before).toBeLessThan(1_000);
  });

  it("never lets the event's text through, wherever it stands", () => {
    fc.assert(
      fc.property(text, fc.string({ maxLength: 30 }), fc.string({ maxLength: 30 }), (body, before, after) => {
        const event = inboundWith(body);
        expect(maskText(`${before}${body}${after}`, event)).not.toContain(body);
        expect(maskText(`${before}${JSON.stringify({ body })}${after}`, event)).not.toContain(
          JSON.stringify(body).slice(1, -1),
        );
      }),
      { numRuns: sized({ quick: 200, full: 1_000 }) },
    );
  });
});

describe("maskingOf() an event of any source", () => {
  it.each<[string, object, string, string]>([
    ["a key", { members: { "alice@example.com": {} } }, "no alice@example.com", "no [text]"],
    ["a part of a key", { members: { "alice@example.com": {} } }, "no alice of example", "no [text] of [text]"],
    [
      "a key like a field's name",
      { members: { alice: {}, bob_lee: {} } },
      "no alice or Bob_Lee",
      "no [text] or [text]",
    ],
    ["a key of a map", { members: new Map([["alice@example.com", 1]]) }, "no alice@example.com", "no [text]"],
    ["an item of a set", { names: new Set(["Alice Smith"]) }, "no Alice Smith", "no [text]"],
    ["a key within JSON", { 'a "b" c': 1 }, 'in {"a \\"b\\" c":1}', 'in {"[text]":1}'],
    ["a number below seven digits", { otp: 482_913 }, "otp 482913, not 482914", "otp [number], not 482914"],
    ["a number next to letters", { order: 4711 }, "in ORD4711 and ord_4711a", "in ORD[number] and ord_[number]a"],
    ["a number with a fraction", { sum: -129.95 }, "sum -129.95", "sum -[number]"],
    ["a large whole number", { id: 4_711_471_147_114_711n }, "id 4711471147114711", "id …11"],
    ["the end of a number that may be a phone's", { to: 15_550_100_002 }, "ends with 0002", "ends with [text]"],
    ["a status and a code", { status: "alice.smith", code: "Ab9-Coupon" }, "alice.smith Ab9-Coupon", "[text] [text]"],
    ["a field of a nested list", { a: [[["deep text"]]] }, "deep text", "[text]"],
    [
      "a text of keys like prototypes",
      JSON.parse('{"__proto__":{"constructor":"hidden text"}}'),
      "hidden text",
      "[text]",
    ],
  ])("hides %s", (_what, event, message, masked) => {
    expect(other(event).text(message)).toBe(masked);
  });

  it.each<[string, object, string]>([
    ["a number in a longer one", { order: 4711 }, "147110 and 0.47112"],
    ["a number of three digits", { count: 500 }, "after 500 ms"],
    [
      "names of fields that every API has",
      { customer: 1, email: 2, lineItems: [], error_code: 3 },
      "email of customer: lineItems, error_code",
    ],
    ["a part of a field's name", { metadataFor: 1, preferred_carrier: 2 }, "meta for carrier"],
  ])("leaves %s", (_what, event, message) => {
    expect(other(event).text(message)).toBe(message);
  });

  it("hides kept headers, and the parameters of a kept query", () => {
    const head = JSON.stringify({
      "x-link": "https://x.example/reset?t=deadbeef",
      ":query": "mail=bob%40example.com&n=1",
    });
    const masking = other({}, { head });
    expect(masking.text("link https://x.example/reset?t=deadbeef")).toBe("link [text]");
    expect(masking.text("for bob@example.com, token deadbeef")).toBe("for [text], token [text]");
  });

  it("shows the fields that the source names, wherever a value of them stands, and the event's type", () => {
    const event = {
      number: 4711,
      id: "evt_1Nabc",
      created: 1_760_000_000,
      data: { object: { id: "in_99", lines: [{ invoice: "in_99" }] } },
    };
    const masking = other(event, { shows: ["id", "created", "data.object.id", "number"], named: ["invoice.paid"] });
    const message = "invoice.paid evt_1Nabc of in_99";
    expect(masking.text(message)).toBe(message);
    expect(masking.text("evt_1Nabc at 1760000000")).toBe("evt_1Nabc at …00");
    expect(other(event).text(message)).toBe("invoice.paid [text] of [text]");
  });

  it("shows nothing in a named field that is not an id or a word, and of a number two digits", () => {
    const event = { id: "call me now", ref: "15550100002", order: "order-15550100002" };
    const masking = other(event, { shows: ["id", "ref", "order"] });
    expect(masking.text("call me now: 15550100002, order-15550100002")).toBe("[text]: …02, [text]");
  });

  it("takes no code and no name of an error from the event", () => {
    const masking = other({ coupon: "Ab9_Secret", person: "Alice", members: { bobby: 1 } });
    const thrown = Object.assign(new Error("no"), { code: "Ab9_Secret", name: "Alice" });
    expect(failureCode(thrown, masking)).toBe("thrown");
    expect(errorFields(thrown, masking)).toMatchObject({ code: "thrown", error: "no" });
    expect(failureCode(Object.assign(new Error("no"), { code: "bobby" }), masking)).toBe("Error");
    expect(failureCode(Object.assign(new Error("no"), { code: "no_such_coupon" }), masking)).toBe("no_such_coupon");
  });
});

describe("maskingOf() a large event", () => {
  const LEFT_OUT = "[The message is left out: its event is too large to be searched for what may not be shown.]";
  const many = (count: number) => ({ texts: Array.from({ length: count }, (_, n) => `text${n}`) });

  it.each<[string, object, Partial<Quoted>, string]>([
    ["as many values as may be searched", many(MOST_SEARCHED.values - 2), {}, "no [text]"],
    ["more values", many(MOST_SEARCHED.values - 1), {}, LEFT_OUT],
    ["more keys", Object.fromEntries(many(MOST_SEARCHED.values).texts.map((text) => [text, 1])), {}, LEFT_OUT],
    [
      "a text as long as may be searched",
      { a: "x".repeat(MOST_SEARCHED.bytes - 10), texts: ["text17"] },
      {},
      "no [text]",
    ],
    ["a longer text", { a: "x".repeat(MOST_SEARCHED.bytes), texts: ["text17"] }, {}, LEFT_OUT],
    ["a body as large as may be searched", many(20), { bytes: MOST_SEARCHED.bytes }, "no [text]"],
    ["a larger body, of which nothing is looked at", notLookedAt(), { bytes: MOST_SEARCHED.bytes + 1 }, LEFT_OUT],
    ["a getter that throws", notLookedAt(), {}, LEFT_OUT],
  ])("says instead of a message that it is left out: %s", (_what, event, more, masked) => {
    expect(other(event, more).text("no text17")).toBe(masked);
  });

  it("keeps the codes and names of programs, and no other", () => {
    const masking = other({}, { bytes: MOST_SEARCHED.bytes + 1 });
    const thrown = (code: string, name: string) => Object.assign(new Error("no"), { code, name });
    const said = [thrown("ECONNREFUSED", "Error"), thrown("Ab9_Secret", "TypeError"), thrown("ab", "alice")].map(
      (error) => failureCode(error, masking),
    );
    expect(said).toEqual(["ECONNREFUSED", "TypeError", "thrown"]);
    expect(errorFields(new TypeError("no text17"), masking)).toMatchObject({ error: `TypeError: ${LEFT_OUT}` });
  });

  it("searches an event once, whatever is asked of an error with causes", () => {
    let looked = 0;
    const event = {
      get text() {
        looked++;
        return "text17";
      },
    };
    const masking = other(event);
    const error = new Error("no text17", { cause: new Error("text17", { cause: new Error("text17 again") }) });
    expect(errorFields(error, masking)).toMatchObject({
      error: "Error: no [text]",
      causes: ["Error: [text]", "Error: [text] again"],
    });
    failureCode(error, masking);
    expect(looked).toBe(1);
  });
});

function notLookedAt(): object {
  return {
    get text(): string {
      throw new Error("It was looked at.");
    },
  };
}
