/** The token request, written once: who the client is, in the form body (recommended) or by HTTP Basic (CLI-1). */
import { Buffer } from "node:buffer";
import { USER_AGENT } from "../internal/package.ts";
import type { ResolvedOptions } from "./options.ts";

export interface TokenRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** All spellings of the secret in it, which no error may show. */
  readonly secrets: readonly string[];
}

type Credentials = Pick<ResolvedOptions, "baseUrl" | "clientId" | "clientSecret" | "authMethod">;

export function tokenRequest({ baseUrl, clientId, clientSecret, authMethod }: Credentials): TokenRequest {
  const url = `${baseUrl}/api/auth/token`;
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    accept: "application/json",
    "user-agent": USER_AGENT,
  };
  const grant = { grant_type: "client_credentials" };
  // Both parts are form-encoded first (RFC 6749, 2.3.1), or a colon in the id would end it.
  const basic = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString("base64");
  const secrets = [basic, formEncoded(clientSecret), clientSecret];
  if (authMethod === "basic") {
    const body = new URLSearchParams(grant).toString();
    return { url, headers: { ...headers, authorization: `Basic ${basic}` }, body, secrets };
  }
  const body = new URLSearchParams({ ...grant, client_id: clientId, client_secret: clientSecret }).toString();
  return { url, headers, body, secrets };
}

function formEncoded(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}
