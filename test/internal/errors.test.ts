/** Most of this file is checked by the compiler: a misspelt code, or a type that cannot be imported, fails `tsc`. */
import { describe, expect, expectTypeOf, it } from "vitest";
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
} from "../../src/client/index.ts";
import {
  DeadLettered,
  KeyringError,
  LeaseLost,
  type OncehookError,
  type OncehookErrorCode,
  PermanentError,
  RetryAfter,
  type ServiceErrorCode,
  SetupError,
  StoreError,
} from "../../src/index.ts";
import {
  type ReceiverSighting,
  RotationError,
  type RotationErrorCode,
  type WebhookKind,
} from "../../src/rotation/index.ts";
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
    () => new KeyringError(""),
    () => new LeaseLost(),
    () => new RetryAfter(1),
    () => new PermanentError(""),
    () => new DeadLettered(""),
    () => new SetupError("closed", ""),
    () => new StoreError("closed", ""),
    () => new RotationError("not_rotated", ""),
    () => new ConnectionError("", facts),
    () => new ResponseValidationError([], facts),
    () => new InvalidArgumentError("whoami", []),
    () => new RecipientsRejectedError({ accepted: 0, rejected: 1 }, facts),
  ])("are there at run time too: %s", (make) => {
    expect(make().code).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });
});

describe("the cause of an error", () => {
  it("is kept, and not there at all without one", () => {
    const cause = new Error("the disk");
    expect(new StoreError("closed", "", { cause })).toMatchObject({ cause });
    expect(new StoreError("closed", "")).not.toHaveProperty("cause");
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
