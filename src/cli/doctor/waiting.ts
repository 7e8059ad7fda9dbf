/** What waits in the inbox: for a worker longer than it should, or for a person. */
import type { Clock } from "../../internal/clock.ts";
import { counted } from "../inbox/printable.ts";
import { type Finding, lasting, ok, problem } from "./finding.ts";
import type { Opened } from "./store-open.ts";

/** No gap is waited for any longer; what failed is retried meanwhile. */
const LONGEST_WAIT_MS = 90 * 60_000;
/** By the default of `retention.deadMs`. */
const KEPT_DAYS = 90;

export async function waitingFindings({ inbox, stats }: Opened, clock: Clock): Promise<Finding[]> {
  const { gauges, oldestPendingAt } = stats;
  const age = (acceptedAt: number | undefined) =>
    acceptedAt === undefined ? "" : `; the oldest was accepted ${lasting(Math.max(0, clock.now() - acceptedAt))} ago`;
  const findings: Finding[] = [];
  if (oldestPendingAt !== null && oldestPendingAt < clock.now() - LONGEST_WAIT_MS) {
    const what = `${counted(gauges.pending, "event")} pending${age(oldestPendingAt)}.`;
    const fix =
      'Look why: "oncehook inbox ls --state pending --oldest". Handlers may be too slow, failing, or not running.';
    findings.push(problem("backlog", what, fix));
  }
  if (gauges.dead > 0) {
    const { items } = await inbox.find({ states: ["dead"], order: "oldest", limit: 1 });
    const what = `${counted(gauges.dead, "dead letter")}${age(items[0]?.acceptedAt)}; kept for ${KEPT_DAYS} days.`;
    const fix =
      '"oncehook inbox ls --group-by error", mend the cause, then "oncehook inbox replay --all --skip-superseded".';
    findings.push(problem("dead_letters", what, fix));
  }
  if (gauges.blockedLanes > 0) {
    const what = `${counted(gauges.blockedLanes, "message")} blocked by a dead letter.`;
    const fix = 'Mend the cause, then "oncehook inbox replay" the dead letters, or "oncehook inbox unblock".';
    findings.push(problem("blocked_lanes", what, fix));
  }
  if (gauges.quarantined > 0) {
    const what = `${counted(gauges.quarantined, "signed body", "signed bodies")} in quarantine: no event could be read from them.`;
    const fix = '"oncehook inbox quarantine ls"; upgrade oncehook if the service sends something new, then replay.';
    findings.push(problem("quarantined", what, fix));
  }
  if (findings.length > 0) return findings;
  return [ok("inbox", `${counted(gauges.pending, "event")} pending; nothing waits for a person.`)];
}
