import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KeyringError, PermanentError, SetupError, StoreError } from "../../src/errors.ts";
import { describeFailure, explained, failureCode, maskingOf, NOTHING_QUOTED } from "../../src/inbox/masking.ts";
import { parseEvent } from "../../src/sources/messaging/parse.ts";
import { SERVICE_SHOWS } from "../../src/sources/messaging/source.ts";
import type { WebhookEvent } from "../../src/sources/messaging/types.ts";
import { inboundBody } from "../sources/messaging/examples.ts";

function inboundWith(body: string): WebhookEvent {
  const json = JSON.parse(inboundBody) as { data: object };
  const parsed = parseEvent(Buffer.from(JSON.stringify({ ...json, data: { ...json.data, body } })));
  if (!parsed.ok) throw new Error(parsed.code);
  return parsed.event;
}

/** Hides what an event of the messaging service may not show. */
const maskingFor = (event: object | null) =>
  maskingOf({ event, bytes: 0, head: null, shows: SERVICE_SHOWS, named: [] });

describe("describeFailure()", () => {
  it("keeps code, message and whole milliseconds", () => {
    const error = Object.assign(new Error("connect refused"), { code: "ECONNREFUSED" });
    expect(describeFailure(error, NOTHING_QUOTED, 12.6)).toEqual({
      ...{ code: "ECONNREFUSED", message: "connect refused", durationMs: 13 },
    });
    expect(describeFailure(error, NOTHING_QUOTED, -0.4).durationMs).toBe(0);
  });

  it.each<[unknown, string, string]>([
    ["just a string", "thrown", "just a string"],
    [null, "thrown", "A value that is not an Error was thrown (null)."],
    [undefined, "thrown", "A value that is not an Error was thrown (undefined)."],
    [42, "thrown", "A value that is not an Error was thrown (number)."],
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
    [
      Object.assign(new Error(), { message: { not: "a string" } }),
      "Error",
      "A value that is not an Error was thrown (object).",
    ],
  ])("makes something of %j thrown", (thrown, code, message) => {
    expect(describeFailure(thrown, NOTHING_QUOTED, 0)).toEqual({ code, message, durationMs: 0 });
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
    expect(describeFailure(hostile, maskingFor(inboundWith("Hello there")), 1)).toEqual({
      ...{ code: "thrown", message: "A value that is not an Error was thrown (object).", durationMs: 1 },
    });
  });

  it("cuts messages to 500 characters and codes to 64, and leaves no half character", () => {
    const error = Object.assign(new Error(`${"x".repeat(499)}👍`), { code: "E".repeat(100) });
    const { code, message } = describeFailure(error, NOTHING_QUOTED, 0);
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
