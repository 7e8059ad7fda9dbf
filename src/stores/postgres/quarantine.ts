/** Keeps correctly signed bodies that are no events, within the quota of their signer. */
import type { NewQuarantine } from "../../inbox/record.ts";
import type { QuarantineAnswer, Turn } from "../../inbox/store.ts";
import type { Session } from "./session.ts";
import type { TallySheet } from "./tally.ts";

/** Counted in the statement that inserts, so that neighbours of one turn see each other; an advisory lock keeps others out. */
const LOCK = "select pg_advisory_xact_lock(hashtext('oncehook quarantine' || $1::text))";
const KEEP = `with held as (select count(*) as rows, coalesce(sum(bytes), 0) as bytes from (
    select bytes from {}.quarantine where state = 0 and signer = $12::text
    union all select bytes from {}.quarantine where state = 0 and signer is null and slot = $3::text and scope = $4::text) each),
  known as (select 1 from {}.quarantine where digest = $1::bytea),
  room as (select 1 from held where rows < $10::bigint and bytes + $7::int <= $11::bigint),
  kept as (
    insert into {}.quarantine (digest, reason, slot, scope, signed, accepted, bytes, trace, raw, signer)
    select $1::bytea, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, $7::int, $8::text, $9::bytea, $12::text
    from room
    on conflict (digest) do nothing returning 1)
  select exists (select 1 from known) as known, exists (select 1 from room) as fits, exists (select 1 from kept) as kept`;

export async function quarantineAll(
  session: Session,
  sheet: TallySheet,
  { turn, now }: { readonly turn: Pick<Turn<never>, "quarantines" | "quarantineQuota">; readonly now: number },
): Promise<QuarantineAnswer[]> {
  // Sorted, so that two turns never wait for each other.
  for (const signer of [...new Set(turn.quarantines.map((body) => body.signer))].sort()) {
    await session.rows("quarantine_lock", LOCK, [signer]);
  }
  const answers: QuarantineAnswer[] = [];
  for (const body of turn.quarantines) {
    answers.push(await keep(session, sheet, { body, quota: turn.quarantineQuota, now }));
  }
  return answers;
}

interface Keeping {
  readonly body: NewQuarantine;
  readonly quota: Turn<never>["quarantineQuota"];
  readonly now: number;
}

async function keep(session: Session, sheet: TallySheet, { body, quota, now }: Keeping): Promise<QuarantineAnswer> {
  const { digest, reason, slot, signer, scope, signedAt, trace, raw } = body;
  sheet.signed(signedAt);
  const values = [Buffer.from(digest), reason, slot, scope, signedAt, now, raw.byteLength, trace, Buffer.from(raw)];
  const [row] = await session.rows<{ known: boolean; fits: boolean; kept: boolean }>("quarantine", KEEP, [
    ...values,
    quota.maxRows,
    quota.maxBytes,
    signer,
  ]);
  if (row?.known === true) return "duplicate";
  // One that had room and was not kept came through another signer meanwhile, where this statement did not see it.
  if (row?.kept !== true) return row?.fits === true ? "duplicate" : "full";
  sheet.count("quarantined");
  sheet.gauge("held", 1);
  sheet.gauge("held_bytes", raw.byteLength);
  return "held";
}
