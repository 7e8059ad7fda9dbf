/** Takes correctly signed bodies that are no events, within their quota. */
import type { NewQuarantine } from "../../inbox/record.ts";
import type { QuarantineAnswer, QuarantineQuota } from "../../inbox/store.ts";
import type { Work } from "./work.ts";

const NOTHING = { rows: 0, bytes: 0 };

export function quarantine(work: Work, incoming: NewQuarantine, quota: QuarantineQuota): QuarantineAnswer {
  const { sql, ledger, now } = work;
  const { reason, slot, signer, scope, signedAt, digest, raw, trace } = incoming;
  ledger.signed(signedAt);
  if (sql.quarantineKnown.get(digest) !== undefined) return "duplicate";
  const held = sql.quarantineHeld.get(signer) ?? NOTHING;
  const older = sql.quarantineHeldOfOlder.get(slot, scope) ?? NOTHING;
  const bytes = held.bytes + older.bytes + raw.byteLength;
  if (held.rows + older.rows >= quota.maxRows || bytes > quota.maxBytes) return "full";
  sql.insertQuarantine.run(digest, reason, slot, signer, scope, signedAt, now, raw.byteLength, trace, raw);
  ledger.add("quarantined");
  ledger.add("held");
  ledger.add("held_bytes", raw.byteLength);
  return "held";
}
