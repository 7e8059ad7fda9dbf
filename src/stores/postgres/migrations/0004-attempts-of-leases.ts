/**
 * Schema 4: what a claim changes about an event, its attempts and when they began, stands on the lane while the event is leased, and on
 * the event from the end of the lease on. So a claim writes no event; the row of its lane it writes anyway. `leased_epoch` is that of the
 * claim: one of an older version writes the event, and leaves here what is no longer so. An attempt that is told here alone is not counted by an
 * older version that takes the lease over.
 */
export const attemptsOfLeases = `
alter table lane add column leased_epoch int, add column leased_attempts int, add column leased_started bigint;
`;
