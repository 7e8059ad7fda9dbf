/**
 * Schema 3: the lanes that wait for time or for somebody (blocked, gap, backoff), for lists of them. A lane on its ordinary way,
 * ready and leased, is not in it, and costs no write.
 */
export const parkedLanes = "create index lane_parked on lane (status, id) where status in (1, 4, 5);";
