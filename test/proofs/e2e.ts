/** `npm run prove -- e2e`: client, service and receiver at work together under every reading of how deliveries are signed. */
import { availableParallelism } from "node:os";
import { ALL_READINGS, nameOf, SOME_READINGS } from "./end-to-end/readings.ts";
import { type Outcome, type Run, run } from "./end-to-end/run.ts";
import { countsOf, findings } from "./ledger.ts";
import { type Answer, apart } from "./process.ts";
import { inTurn, missingFrom, type Programme, type Proof } from "./programme.ts";

const SHORT = 100;
const FULL = 200;
/** Readings. */
const SMALL = 2;

/** Short: twelve readings, 100 messages each. Full: all 96, 200 messages each. */
export const endToEnd: Programme = {
  name: "e2e",
  what: "0 lost, 0 handled twice, 0 out of order, 0 unverified, under every reading of how deliveries are signed",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const fewer = small ? SOME_READINGS.slice(0, SMALL) : SOME_READINGS;
    const readings = full ? ALL_READINGS : fewer;
    const messages = full ? FULL : SHORT;
    const problems: string[] = [];
    let proven = 0;
    await inTurn(readings, availableParallelism(), async (reading) => {
      const terms: Run = { reading, messages };
      const answer = await apart("end-to-end/run.js", run, terms);
      const found = problemsOf(answer);
      if (found.length === 0) proven += 1;
      problems.push(...found.map((problem) => `${nameOf(reading)}: ${problem}`));
      say(`${nameOf(reading).padEnd(40)} ${lineOf(answer)}`);
    });
    if (proven < readings.length) problems.push(`only ${proven} of ${readings.length} readings held`);
    return { count: readings.length, unit: "readings", problems };
  },
};

function problemsOf(answer: Answer<Outcome>): string[] {
  if ("error" in answer) return [answer.error];
  return [...findings(answer.outcome), ...shortcomings(answer.outcome)];
}

/** What must have happened for the outcome to say something. */
export function shortcomings(outcome: Outcome): string[] {
  const { messages, events, inbound, failedAttempts, rotations, signedOtherwise } = outcome;
  return missingFrom({
    [`only ${events} events`]: events > 2 * messages,
    [`only ${inbound} customers' messages`]: inbound >= messages / 20,
    [`only ${failedAttempts} attempts failed`]: failedAttempts > messages / 2,
    [`${rotations} rotations`]: rotations === 6,
    "no delivery was signed with another secret than the current one": signedOtherwise > 0 || !meetsOldSecrets(outcome),
  });
}

/** With `both` the current secret's signature is there as well; with `current`, only a frozen one is older. */
function meetsOldSecrets({ reading: { overlapSigning, retrySignature } }: Outcome): boolean {
  return overlapSigning === "previous" || overlapSigning === "alternate" || retrySignature === "frozen";
}

function lineOf(answer: Answer<Outcome>): string {
  if ("error" in answer) return answer.error;
  const { events, attempts, failedAttempts, signedOtherwise } = answer.outcome;
  const traffic = `${events} events, ${attempts} attempts (${failedAttempts} failed, ${signedOtherwise} by another secret)`;
  return `${traffic}: ${countsOf(answer.outcome)}`;
}
