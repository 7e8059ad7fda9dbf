/** `npm run prove -- sends`: 2,000 sends over connections that break before and after the commit; `--full` 50,000. */

import { FAULTS, type ProxiedCall } from "../messaging/client/fault-proxy.ts";
import type { Programme, Proof } from "./programme.ts";
import { judge } from "./sends-judge.ts";
import { clientSender, type Evidence, runSends } from "./sends-run.ts";

const SHORT = 2_000;
const SMALL = 150;
const FULL = 50_000;
const LANES = 32;
const TIMEOUT_MS = 400;

export const sends: Programme = {
  name: "sends",
  what: "one message per recipient and idempotency key over connections that break before and after the commit",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const fewer = small ? SMALL : SHORT;
    const count = full ? FULL : fewer;
    const evidence = await runSends({ count, lanes: LANES, seed: "sends", createSender: clientSender(TIMEOUT_MS) });
    const played = faultsIn(evidence.calls);
    for (const [fault, times] of played) say(`${fault.padEnd(18)} ${times}`);
    say(lineOf(evidence));
    const unplayed = [...played].filter(([, times]) => times === 0).map(([fault]) => `no request was ${fault}`);
    const problems = [...judge(evidence), ...unplayed];
    if (problems.length > 20) say(`${problems.length} problems in all`);
    return { count: evidence.sends.length, unit: "sends", problems: problems.slice(0, 20) };
  },
};

function faultsIn(calls: readonly ProxiedCall[]): Map<string, number> {
  const counts = new Map<string, number>(FAULTS.map((fault) => [fault, 0]));
  for (const { fault } of calls) if (fault !== null) counts.set(fault, (counts.get(fault) ?? 0) + 1);
  return counts;
}

function lineOf({ sends, calls, ledgers }: Evidence): string {
  const failed = sends.filter(({ first }) => !first.ok).length;
  const messages = [...ledgers.last.values()].reduce((sum, ids) => sum + ids.length, 0);
  return `${sends.length} sends in ${calls.length} requests, ${failed} failed at first; ${messages} messages for ${ledgers.last.size} recipients`;
}
