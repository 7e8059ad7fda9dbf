/** Removes a person's data from the SQLite inbox and from its file; what identifies an event stays. */

import type { Act, ActResult } from "../../inbox/store.ts";
import { sleep } from "../../internal/clock.ts";
import { checkpoint } from "./checkpoints.ts";
import { HELD, KEEP, STATE, STATUS } from "./codes.ts";
import { LANES_OF_MESSAGE } from "./find.ts";
import { rearm } from "./lanes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import type { LaneRow } from "./statements.ts";
import type { Work } from "./work.ts";

type Subject = Extract<Act, { kind: "erase" }>["subject"];

const PAUSE_MS = 25;
const EVENTS_OF_LANE = "select id from oncehook_event where lane = ?";

export function erase(work: Work, subject: Subject): ActResult {
  // Freed space is overwritten even where that costs writes.
  work.db.pragma("secure_delete = ON");
  try {
    const lanes = lanesOf(work, subject);
    if (lanes.some((lane) => lane.leased !== null)) return { ok: false, reason: "in_progress" };
    let count = 0;
    for (const lane of lanes) count += eraseLane(work, lane);
    count += eraseQuarantined(work, "peer" in subject ? subject.peer : subject.messageId);
    return { ok: true, count };
  } finally {
    work.db.pragma("secure_delete = FAST");
  }
}

/** Takes the erased data out of the write-ahead log, as soon as no other connection reads it. */
export async function emptyLog(inbox: OpenInbox): Promise<void> {
  const { clock, busyTimeoutMs } = inbox.patience;
  const deadline = clock.monotonic() + busyTimeoutMs;
  while (!checkpoint(inbox.db, "TRUNCATE")) {
    if (clock.monotonic() >= deadline) {
      const message = "Erased data stays in the write-ahead log until its readers end: erase again, or close them.";
      return inbox.context.logger.warn({ location: inbox.patience.location }, message);
    }
    await sleep(clock, PAUSE_MS);
  }
}

function lanesOf(work: Work, subject: Subject): LaneRow[] {
  const [ids, value] =
    "peer" in subject
      ? ["select id from oncehook_lane where peer = ?", subject.peer]
      : [LANES_OF_MESSAGE, subject.messageId];
  const rows = work.db.prepare(ids).all(value) as { readonly id: number }[];
  return rows.flatMap(({ id }) => work.sql.laneById.get(id) ?? []);
}

function eraseLane(work: Work, lane: LaneRow): number {
  const { db, ledger, now } = work;
  const of = lane.id;
  db.prepare(`delete from oncehook_body where event in (${EVENTS_OF_LANE})`).run(of);
  db.prepare(`delete from oncehook_conflict where event in (${EVENTS_OF_LANE})`).run(of);
  db.prepare(`update oncehook_attempt set error = '' where event in (${EVENTS_OF_LANE})`).run(of);
  const { changes: discarded } = db
    .prepare(`update oncehook_event set state = ?, keep = ?, finished = ? where lane = ? and state = 0`)
    .run(STATE.discarded, KEEP.identity, now, of);
  ledger.add("discarded", discarded);
  ledger.add("pending", -discarded);
  const { changes: events } = db
    .prepare("update oncehook_event set error = null, keep = iif(state = 2, keep, ?) where lane = ?")
    .run(KEEP.identity, of);
  db.prepare("update oncehook_lane set peer = null, reference = null where id = ?").run(of);
  // Nothing is pending in it any more; a blocked one stays parked behind its dead letter.
  if (lane.status !== STATUS.blocked) rearm(work, lane);
  return events;
}

function eraseQuarantined(work: Work, text: string): number {
  const rows = work.db
    .prepare("select id, state, bytes from oncehook_quarantine where raw is not null and instr(raw, ?) > 0")
    .all(Buffer.from(text)) as { readonly id: number; readonly state: number; readonly bytes: number }[];
  const clear = work.db.prepare("update oncehook_quarantine set raw = null, state = ? where id = ?");
  for (const { id, state, bytes } of rows) {
    clear.run(HELD.discarded, id);
    if (state !== HELD.held) continue;
    work.ledger.add("held", -1);
    work.ledger.add("held_bytes", -bytes);
  }
  return rows.length;
}
