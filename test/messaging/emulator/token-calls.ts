/** Calls of the token route, for its tests. */
import { expect } from "vitest";
import type { Credentials, Emulator } from "../../../src/messaging/emulator/index.ts";
import { type Called, call } from "./support.ts";

export const TOKEN_PATH = "/api/auth/token";
export const FORM = { "content-type": "application/x-www-form-urlencoded" };
export const GRANT = { grant_type: "client_credentials" };

/** A token request by form. */
export function form(emulator: Emulator, fields: Readonly<Record<string, string>>, headers = {}): Promise<Called> {
  const body = new URLSearchParams(fields).toString();
  return call(emulator, "POST", TOKEN_PATH, { body, headers: { ...FORM, ...headers } });
}

/** A client's credentials as fields of a body. */
export function credentials({ clientId, clientSecret }: Credentials) {
  return { client_id: clientId, client_secret: clientSecret };
}

/** A Basic header of a text as it is. */
export function basic(text: string | Uint8Array) {
  return { authorization: `Basic ${Buffer.from(text).toString("base64")}` };
}

/** Expects an error in the OAuth shape. */
export function refuses(called: Called, status: number, error: string): void {
  expect(called.body).toEqual({ error, error_description: expect.stringMatching(/\w\.$/) });
  expect(called.status).toBe(status);
  expect(called.headers.get("content-type")).toBe("application/json");
}
