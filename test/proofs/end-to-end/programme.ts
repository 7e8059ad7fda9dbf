/** `npm run prove -- e2e`: client, service and receiver at work together under every reading of how deliveries are signed. */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { countsOf, findings } from "../outages/verdict.ts";
import { type Answer, apart } from "../apart.ts";
import type { Programme, Proof } from "../programme.ts";
import { ALL_READINGS, nameOf, SOME_READINGS } from "./readings.ts";
import type { Outcome, Run } from "./run.ts";

const SHORT = 100;
const FULL = 200;
/** Readings. */
const SMALL = 2;
/** Beside this file, where it was compiled to. */
const CHILD = fileURLToPath(new URL("./child.js", import.meta.url));

/** Short: twelve readings, 100 messages each. Full: all 96, 200 messages each. */
export const endToEnd: Programme = {
  name: "e2e",
  what: "0 lost, 0 handled twice, 0 out of order, 0 unverified, under every reading of how deliveries are signed",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const fewer = small ? SOME_READINGS.slice(0, SMALL) : SOME_READINGS;
    const readings = full ? ALL_READINGS : fewer;
    const messages = full ? FULL : SHORT;
    const waiting = [...readings];
    const problems: string[] = [];
    let proven = 0;
    const work = async () => {
      for (let reading = waiting.shift(); reading !== undefined; reading = waiting.shift()) {
        const run: Run = { reading, messages };
        const answer = await apart<Outcome>(CHILD, run);
        const found = problemsOf(answer);
        if (found.length === 0) proven += 1;
        problems.push(...found.map((problem) => `${nameOf(reading)}: ${problem}`));
        say(`${nameOf(reading).padEnd(40)} ${lineOf(answer)}`);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, work));
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
  const shown = {
    [`only ${events} events`]: events > 2 * messages,
    [`only ${inbound} customers' messages`]: inbound >= messages / 20,
    [`only ${failedAttempts} attempts failed`]: failedAttempts > messages / 2,
    [`${rotations} rotations`]: rotations === 6,
    "no delivery was signed with another secret than the current one": signedOtherwise > 0 || !meetsOldSecrets(outcome),
  };
  return Object.entries(shown)
    .filter(([, holds]) => !holds)
    .map(([shortcoming]) => shortcoming);
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
