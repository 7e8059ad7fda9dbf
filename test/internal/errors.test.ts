/** What errors carry. Much of it is checked by the compiler: a misspelt code, or a type that cannot be imported, fails `tsc`. */
import { describe, expect, expectTypeOf, it } from "vitest";
import {
  DeadLettered,
  KeyringError,
  LeaseLost,
  OncehookError,
  type OncehookErrorCode,
  PermanentError,
  RetryAfter,
  type ServiceErrorCode,
  SetupError,
  StoreError,
} from "../../src/index.ts";
import {
  ApiError,
  ConflictError,
  ConnectionError,
  InvalidArgumentError,
  OAuthError,
  RecipientsRejectedError,
  type Refusal,
  ResponseValidationError,
  type ServiceError,
} from "../../src/messaging/client/index.ts";
import {
  type ReceiverSighting,
  RotationError,
  type RotationErrorCode,
  type WebhookKind,
} from "../../src/messaging/rotation/index.ts";
import type { ContractExpect, SecretStoreContractOptions, storeContract } from "../contracts/index.ts";

const facts = { operation: "messages.send", attempts: 1, idempotencyKey: "key-1" };

describe("the codes of errors", () => {
  it("are oncehook's own, and no others, on what oncehook found itself", () => {
    type Own =
      | SetupError
      | StoreError
      | KeyringError
      | LeaseLost
      | RetryAfter
      | PermanentError
      | DeadLettered
      | ConnectionError
      | ResponseValidationError
      | InvalidArgumentError
      | RecipientsRejectedError;
    expectTypeOf<Own["code"]>().toEqualTypeOf<OncehookErrorCode>();
    const error = new SetupError("invalid_option", "No such option.");
    // @ts-expect-error a misspelt code
    expect(error.code === "invalid_opton").toBe(false);
    expect(error.code === "invalid_option").toBe(true);
  });

  it("are a rotation's four on a RotationError", () => {
    expectTypeOf<RotationError["code"]>().toEqualTypeOf<RotationErrorCode>();
    const error = new RotationError("not_rotated", "It shows no rotation.");
    // @ts-expect-error of oncehook, but of no rotation
    expect(error.code === "store_full").toBe(false);
    expect(error.code).toBe("not_rotated");
  });

  it.each([ApiError, OAuthError])("may be any of the service's on %o (CLI-7)", (ServiceAnswer) => {
    const refusal = { status: 418, code: "TEAPOT", message: "", details: {}, requestId: null, retryAfterMs: null };
    const error: OncehookError | ServiceError = new ServiceAnswer(refusal satisfies Refusal, facts);
    expectTypeOf(error.code).toEqualTypeOf<OncehookErrorCode | ServiceErrorCode>();
    expect(error.code === "TEAPOT").toBe(true);
  });

  it.each<() => OncehookError>([
    () => new RotationError("not_rotated", ""),
    () => new ConnectionError("", facts),
    () => new ResponseValidationError([], facts),
    () => new InvalidArgumentError("whoami", []),
    () => new RecipientsRejectedError({ accepted: 0, rejected: 1 }, facts),
  ])("are there at run time too: %s", (make) => {
    expect(make().code).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });
});

describe("the types that public functions use", () => {
  it("can be imported, so that a test can make what a caller gets", () => {
    const refusal: Refusal = {
      status: 409,
      code: "CONFLICT",
      message: "The key was used for another request.",
      details: {},
      requestId: "req_1",
      retryAfterMs: null,
    };
    expect(new ConflictError(refusal, facts)).toMatchObject({ code: "CONFLICT", status: 409, requestId: "req_1" });
    expectTypeOf<SecretStoreContractOptions["expect"]>().toEqualTypeOf<ContractExpect>();
    expectTypeOf<Parameters<typeof storeContract>[0]["expect"]>().toEqualTypeOf<ContractExpect>();
    expectTypeOf<WebhookKind>().toEqualTypeOf<"inbound" | "delivery">();
    expectTypeOf<ReceiverSighting["keyringVersion"]>().toEqualTypeOf<string>();
  });
});

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
  it("says what to do, unless it gets a message of its own", () => {
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
