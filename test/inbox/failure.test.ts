import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KeyringError, PermanentError, SetupError, StoreError } from "../../src/errors.ts";
import { parseEvent } from "../../src/events/parse.ts";
import type { WebhookEvent } from "../../src/events/types.ts";
import { describeFailure, explained, failureCode, maskText } from "../../src/inbox/failure.ts";
import { maskNumbers } from "../../src/internal/mask-numbers.ts";
import { inboundBody } from "../events/examples.ts";

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

describe("describeFailure()", () => {
  it("keeps code, message and whole milliseconds", () => {
    const error = Object.assign(new Error("connect refused"), { code: "ECONNREFUSED" });
    expect(describeFailure(error, null, 12.6)).toEqual({
      ...{ code: "ECONNREFUSED", message: "connect refused", durationMs: 13 },
    });
    expect(describeFailure(error, null, -0.4).durationMs).toBe(0);
  });

  it.each<[unknown, string, string]>([
    ["just a string", "thrown", "just a string"],
    [null, "thrown", "A handler threw null."],
    [undefined, "thrown", "A handler threw undefined."],
    [42, "thrown", "A handler threw number."],
    [{ message: "of another realm", name: "TypeError" }, "TypeError", "of another realm"],
    [new PermanentError("never"), "permanent_failure", "never"],
    [Object.assign(new Error("x"), { code: 23505 }), "Error", "x"],
    [Object.assign(new Error("x"), { code: "has spaces" }), "Error", "x"],
    [Object.assign(new Error("x"), { code: "to_15550100002" }), "Error", "x"],
    [Object.assign(new Error("x"), { code: "to_555-010-0002" }), "Error", "x"],
    [Object.assign(new Error("x"), { code: "to_555.010.0002" }), "Error", "x"],
    [Object.assign(new Error("x"), { code: "to_555_010_0002" }), "Error", "x"],
    [Object.assign(new Error("x"), { code: "E_2024.11" }), "E_2024.11", "x"],
    [Object.assign(new Error("x"), { name: "not a class" }), "thrown", "x"],
    [Object.assign(new Error(), { message: { not: "a string" } }), "Error", "A handler threw object."],
  ])("makes something of %j thrown", (thrown, code, message) => {
    expect(describeFailure(thrown, null, 0)).toEqual({ code, message, durationMs: 0 });
  });

  it("survives what throws when it is looked at", () => {
    const hostile = {
      get code(): string {
        throw new Error("code");
      },
      get message(): string {
        throw new Error("message");
      },
    };
    expect(describeFailure(hostile, inboundWith("Hello there"), 1)).toEqual({
      ...{ code: "thrown", message: "A handler threw object.", durationMs: 1 },
    });
  });

  it("cuts messages to 500 characters and codes to 64, and leaves no half character", () => {
    const error = Object.assign(new Error(`${"x".repeat(499)}👍`), { code: "E".repeat(100) });
    const { code, message } = describeFailure(error, null, 0);
    expect(code).toHaveLength(64);
    expect(message).toHaveLength(500);
    expect(message.isWellFormed()).toBe(true);
  });
});

describe("failureCode()", () => {
  it("is always a short plain word", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.anything(), fc.record({ code: fc.stringMatching(/^[a-z]_[\d_$.-]{7,20}$/) })),
        (thrown) => {
          const code = failureCode(thrown);
          expect(code).toMatch(/^[A-Za-z_$][\w$.-]{0,63}$/);
          expect(code).not.toMatch(/\d(?:[_$.-]{0,3}\d){6}/);
        },
      ),
    );
  });
});

describe("explained()", () => {
  it.each([
    new StoreError("store_full", "The disk is full."),
    new SetupError("no_inbox", "The disk is full."),
    new KeyringError("The disk is full."),
  ])("adds what an error of ours says (%s)", (error) => {
    expect(explained("The turn failed.", error)).toBe("The turn failed. The disk is full.");
  });

  it.each([new Error("to +15550100002"), new PermanentError("to +15550100002"), "to +15550100002", null])(
    "adds nothing of %s, which may quote anything",
    (error) => {
      expect(explained("The turn failed.", error)).toBe("The turn failed.");
    },
  );
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
      { numRuns: 2_000 },
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

  it("never lets the event's text through, wherever it stands", () => {
    fc.assert(
      fc.property(text, fc.string({ maxLength: 30 }), fc.string({ maxLength: 30 }), (body, before, after) => {
        const event = inboundWith(body);
        expect(maskText(`${before}${body}${after}`, event)).not.toContain(body);
        expect(maskText(`${before}${JSON.stringify({ body })}${after}`, event)).not.toContain(
          JSON.stringify(body).slice(1, -1),
        );
      }),
      { numRuns: 1_000 },
    );
  });
});
