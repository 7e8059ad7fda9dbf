/** Who calls, by the bearer token (AUT-1 to AUT-7, AUT-9, AUT-11). */
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";

/** The client of the request's bearer token; null when there is none that is valid now, or client or account is inactive. */
export function callerOf({ state }: Service, headers: Headers, now: number): Client | null {
  const token = state.tokens.get(bearerOf(headers) ?? "");
  if (token === undefined) return null;
  if (now >= token.expiresAt) {
    state.tokens.remove(token.accessToken);
    return null;
  }
  const client = state.clients.get(token.apiClientId);
  return client !== undefined && isActive({ state }, client) ? client : null;
}

/** Whether a client and its parent account may use the service (TOK-9, TOK-10). */
export function isActive({ state }: Pick<Service, "state">, client: Client): boolean {
  return client.status === "ACTIVE" && state.accounts.get(client.accountId)?.status === "ACTIVE";
}

/** Makes the request's own token unknown; for the fault of that name. */
export function revokeBearer({ state }: Service, headers: Headers): void {
  state.tokens.remove(bearerOf(headers) ?? "");
}

/** The scheme is matched whatever its case (AUT-9); one space, one token, nothing after it (AUT-2). */
function bearerOf(headers: Headers): string | undefined {
  return /^bearer ([\w.~+/=-]+)$/i.exec(headers.get("authorization") ?? "")?.[1];
}
