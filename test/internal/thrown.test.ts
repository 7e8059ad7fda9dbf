/** What the errors carry at run time; their types are in errors.test.ts. */
import { describe, expect, it } from "vitest";
import {
  DeadLettered,
  KeyringError,
  LeaseLost,
  OncehookError,
  PermanentError,
  RetryAfter,
  SetupError,
  StoreError,
} from "../../src/errors.ts";

const cause = new Error("below");
const fields = { option: "limit" };

describe("OncehookError", () => {
  it.each([
    [new OncehookError("closed", "It is closed.", { cause, fields }), "OncehookError", "closed"],
    [new SetupError("no_inbox", "It is closed.", { cause, fields }), "SetupError", "no_inbox"],
    [new StoreError("store_full", "It is closed.", { cause, fields }), "StoreError", "store_full"],
    [new KeyringError("It is closed.", { cause, fields }), "KeyringError", "keyring_unavailable"],
    [new PermanentError("It is closed.", { cause, fields }), "PermanentError", "permanent_failure"],
    [new DeadLettered("It is closed.", { cause, fields }), "DeadLettered", "dead_lettered"],
    [new RetryAfter(5, "It is closed.", { cause, fields }), "RetryAfter", "retry_after"],
  ])("keeps what it is given (%s)", (error, name, code) => {
    expect(error).toBeInstanceOf(OncehookError);
    expect(error).toMatchObject({ name, code, message: "It is closed.", cause, fields });
  });

  it("has no cause and no fields unless it is given some", () => {
    const error = new OncehookError("closed", "It is closed.");
    expect("cause" in error).toBe(false);
    expect(error.fields).toEqual({});
  });
});

describe("LeaseLost", () => {
  it("says what to do, unless it is told what happened", () => {
    expect(new LeaseLost()).toMatchObject({
      ...{ name: "LeaseLost", code: "lease_lost" },
      message: "This event is already settled, or its lease was lost: register effects before the handler returns.",
    });
    expect(new LeaseLost("It passed on.").message).toBe("It passed on.");
  });
});

describe("RetryAfter", () => {
  it.each([0, 0.5, 86_400_000])("takes %d ms", (ms) => {
    expect(new RetryAfter(ms)).toMatchObject({ ms, message: `The handler asked for a retry in ${ms} ms.` });
  });

  it.each([-1, 86_400_001, Number.NaN, Number.POSITIVE_INFINITY])("refuses %s ms", (ms) => {
    expect(() => new RetryAfter(ms)).toThrow(
      expect.objectContaining({
        code: "invalid_option",
        message: `RetryAfter takes 0 to 86,400,000 milliseconds (24 h), not ${ms}.`,
      }),
    );
  });

  it("refuses a text, and does not repeat it", () => {
    expect(() => new RetryAfter("+15550100002" as never)).toThrow(/\(24 h\), not a string\.$/);
  });
});
