/** Reads a quarantined body again: what its replay would accept, and why it would accept nothing. */
import type { WebhookEvent } from "../events/types.ts";
import type { QuarantineRecord } from "../inbox/record.ts";
import { scopeCovers } from "../signature/verify.ts";

export type QuarantinedEvent =
  | { readonly ok: true; readonly event: WebhookEvent; readonly raw: Uint8Array }
  | { readonly ok: false; readonly reason: "body_pruned" }
  | { readonly ok: false; readonly reason: "invalid_event"; readonly message: string };

export async function quarantinedEvent({ raw, scope }: QuarantineRecord): Promise<QuarantinedEvent> {
  if (raw === null) return { ok: false, reason: "body_pruned" };
  // Loaded here: a command that only looks needs no schema, which takes longer to load than the inbox to open.
  const { parseEvent } = await import("../events/parse.ts");
  const parsed = parseEvent(raw);
  if (!parsed.ok) return invalid(`The body is still no event to this version of oncehook (${parsed.code}).`);
  if (scopeCovers(scope, parsed.event)) return { ok: true, event: parsed.event, raw };
  return invalid(
    "The secret that signed this body does not vouch for the event in it: it covers another direction or API client.",
  );
}

function invalid(message: string): QuarantinedEvent {
  return { ok: false, reason: "invalid_event", message };
}
