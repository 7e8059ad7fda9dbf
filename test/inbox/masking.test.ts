import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maskText } from "../../src/inbox/masking.ts";
import { maskNumbers } from "../../src/internal/logger.ts";
import { parseEvent } from "../../src/service/parse.ts";
import type { WebhookEvent } from "../../src/service/types.ts";
import { inboundBody } from "../service/examples.ts";
import { sized } from "../setup/form.ts";

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

/** Texts that are no part of what replaces them. */
const text = fc
  .string({ minLength: 4, maxLength: 40, unit: fc.constantFrom(...'abkz \n\t"\\/é👍1234567890.$&') })
  .filter((value) => !"[text]".includes(value) && !/^[\d\s.()-]*$/.test(value));

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
    const event = unknownWith({ note: "late shift", deep: [{ any: ["hidden thing"] }], status: "open", code: "E_42" });
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
