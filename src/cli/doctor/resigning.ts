/** Whether a retry of the service still passes: it does if it is signed anew, or if the tolerance covers the schedule. */
import { type Finding, lasting, ok, warning } from "./finding.ts";
import type { Opened } from "./store-open.ts";

/** From the first attempt to the last. */
const SCHEDULE_MS = 81 * 60_000;
/** The default of `toleranceMs.future`; what is recorded is the sum of past and future. */
const FUTURE_MS = 5 * 60_000;

export function resigningFindings({ stats, inbox }: Opened): Finding[] {
  const { toleranceMs } = inbox.rules;
  if (stats.serviceResigns) return [ok("retries", "The service signs its retries anew.")];
  if (toleranceMs - FUTURE_MS >= SCHEDULE_MS)
    return [ok("retries", "Not seen that the service signs retries anew; the tolerance covers its last one.")];
  const what = `Not seen that the service signs retries anew, and the tolerance of ${lasting(toleranceMs)} ends before its last retry.`;
  return [warning("tolerance_short", what, "Leave toleranceMs.past at 90 minutes.")];
}
