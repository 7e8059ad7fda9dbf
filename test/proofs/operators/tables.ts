/** What an inbox file holds, read past the inbox. */
import Database from "better-sqlite3";

/** Where a person's number may stand, and where it stands as a whole. */
const NAMING: Readonly<Record<string, string>> = {
  oncehook_body: "instr(raw, cast(? as blob)) > 0",
  oncehook_conflict: "instr(raw, cast(? as blob)) > 0",
  oncehook_quarantine: "instr(raw, cast(? as blob)) > 0",
  oncehook_lane: `'"' || peer || '"' = ?`,
};

/** By what they say: a copy numbers attempts and quarantined bodies anew, and ends the leases. */
const SAME: Readonly<Record<string, string>> = {
  events:
    "select id, lane, seq, type, source, tenant, hex(own_id), state, outcome, keep, finished, attempts, late, forced, accepted, signed, error from oncehook_event order by id",
  bodies: "select * from oncehook_body order by event",
  lanes:
    "select id, source, tenant, name, ord, cursor, gap_since, peer, reference, status = 1 from oncehook_lane order by id",
  gaps: "select * from oncehook_gap order by lane, hi",
  attempts:
    "select event, attempt, at, duration, error_code, error from oncehook_attempt order by event, attempt, at, duration",
  quarantine:
    "select digest, reason, slot, source, tenant, kinds, state, signed, accepted, raw, signer from oncehook_quarantine order by digest",
  audit: "select at, by, act, detail from oncehook_audit order by id",
  counters: "select name, value from oncehook_counter order by name",
};

/** The tables that name `person`. */
export function placesNaming(path: string, person: string): readonly string[] {
  return reading(path, (db) =>
    Object.entries(NAMING).flatMap(([table, condition]) => {
      const { rows } = db.prepare(`select count(*) as rows from ${table} where ${condition}`).get(`"${person}"`) as {
        readonly rows: number;
      };
      return rows > 0 ? [`${rows} rows of ${table}`] : [];
    }),
  );
}

/** What two files say differently. */
export function differencesOf(one: string, other: string): readonly string[] {
  const [from, to] = [one, other].map((path) => reading(path, said));
  return Object.keys(SAME).filter((what) => from?.get(what) !== to?.get(what));
}

function said(db: Database.Database): ReadonlyMap<string, string> {
  return new Map(Object.entries(SAME).map(([what, sql]) => [what, JSON.stringify(db.prepare(sql).all())]));
}

function reading<T>(path: string, read: (db: Database.Database) => T): T {
  const db = new Database(path, { readonly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}
