/**
 * Schema 3: the lanes that wait for time or for somebody (blocked, gap, backoff), for lists of them. A lane on its ordinary way,
 * ready and leased, is not in it, and costs no write. Comparisons, because a list of codes makes each write of a lane dearer by
 * a fifth: SQLite builds a table of it each time.
 */
export const parkedLanes =
  "create index oncehook_lane_parked on oncehook_lane (status) where status = 1 or status > 3;";
