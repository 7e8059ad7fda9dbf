/** The credentials of a token request, by HTTP Basic or in its body, and the client that they prove (TOK-3, TOK-17, TOK-18, TOK-22). */
import { isSameSecret } from "../../signature/secret.ts";
import { formDecoded } from "../http/form.ts";
import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";

interface Pair {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** What was presented: the readings it has, or why it cannot be used at all. */
export type Presented =
  | { readonly ok: true; readonly readings: readonly Pair[] }
  | { readonly ok: false; readonly problem: string };

const MISSING: Presented = {
  ok: false,
  problem: "client_id and client_secret are required, both in the body or by HTTP Basic.",
};

export function presentedCredentials(headers: Headers, fields: ReadonlyMap<string, string>): Presented {
  const clientId = fields.get("client_id");
  const clientSecret = fields.get("client_secret");
  const basic = basicReadings(headers);
  if (basic === null) {
    if (clientId === undefined || clientSecret === undefined) return MISSING;
    return { ok: true, readings: [{ clientId, clientSecret }] };
  }
  // What cannot be decoded proves nothing, whatever the body says: 401 in the end (TOK-18).
  if (basic.length === 0) return { ok: true, readings: [] };
  if (basic.some((pair) => pair.clientId === "" || pair.clientSecret === "")) return MISSING;
  const readings = basic.filter(
    (pair) =>
      (clientId ?? pair.clientId) === pair.clientId && (clientSecret ?? pair.clientSecret) === pair.clientSecret,
  );
  if (readings.length > 0) return { ok: true, readings };
  return { ok: false, problem: "HTTP Basic and the body hold different credentials." };
}

/** As sent (curl), then form-decoded (OAuth's rule); none when it cannot be decoded, null without a Basic header. */
function basicReadings(headers: Headers): readonly Pair[] | null {
  const header = headers.get("authorization") ?? "";
  if (!/^basic(?: |$)/i.test(header)) return null;
  const text = base64Text(header.slice("basic".length).trim());
  const colon = text?.indexOf(":") ?? -1;
  if (text === null || colon === -1) return [];
  const raw = { clientId: text.slice(0, colon), clientSecret: text.slice(colon + 1) };
  const clientId = formDecoded(raw.clientId);
  const clientSecret = formDecoded(raw.clientSecret);
  return clientId === null || clientSecret === null ? [raw] : [raw, { clientId, clientSecret }];
}

function base64Text(encoded: string): string | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(encoded, "base64"));
  } catch {
    return null;
  }
}

/** The client of the first pair that is right. */
export function provenClient({ state }: Pick<Service, "state">, readings: readonly Pair[]): Client | undefined {
  const clients = [...state.clients.values()];
  for (const { clientId, clientSecret } of readings) {
    const client = clients.find((one) => one.clientId === clientId);
    // Compared for an unknown client too, so that the time an answer takes does not tell which ids exist (TOK-22).
    const right = isSameSecret(clientSecret, client?.clientSecret ?? "");
    if (right && client !== undefined) return client;
  }
  return undefined;
}
