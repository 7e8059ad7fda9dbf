/** What the listener answers in the service's place, in the error shape of the path that was asked for. */
import { controlError } from "../control/refusal.ts";
import type { Ground } from "../service.ts";
import { WRONG_TOKEN_METHOD } from "./answers.ts";
import { FOREIGN_HOST } from "./own-host.ts";
import type { Place } from "./place.ts";
import { json, responseFrom } from "./responses.ts";

export interface Reason {
  readonly status: 400 | 403 | 404 | 408 | 431 | 500 | 503;
  readonly message: string;
}

/** For a method that no path has (GEN-7). */
export const NO_ROUTE: Reason = { status: 404, message: "There is no such route." };
export const NO_HOST: Reason = { status: 400, message: "The Host header is missing or names no host." };
export const FOREIGN: Reason = { status: 403, message: FOREIGN_HOST };
export const CLOSED: Reason = { status: 503, message: "The emulator is closed: nothing would be kept." };

/** Why `node:http` could not read a request. */
export function reasonOf({ code }: NodeJS.ErrnoException): Reason {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return { status: 431, message: "The headers are too long." };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { status: 408, message: "The request took too long to arrive." };
    default:
      return { status: 400, message: "This is not an HTTP request." };
  }
}

const CODES: { readonly [S in Reason["status"]]?: "FORBIDDEN" | "NOT_FOUND" | "SERVER_ERROR" } = {
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  500: "SERVER_ERROR",
  503: "SERVER_ERROR",
};

/** GEN-2, GEN-3. */
export function refusalFor({ state }: Ground, { status, message }: Reason, contract: Place["contract"]): Response {
  const code = CODES[status] ?? "INVALID_REQUEST";
  const refusal = { kind: "refusal", status, code, message, details: {} } as const;
  switch (contract) {
    case "control":
      return json(status, controlError(code, message));
    case "token":
      if (status === NO_ROUTE.status) return responseFrom(WRONG_TOKEN_METHOD, contract, "");
      return responseFrom(status >= 500 ? refusal : { ...refusal, code: "invalid_request" }, contract, "");
    case "core":
      return responseFrom(refusal, contract, state.nextId("req"));
    default:
      return contract satisfies never;
  }
}
