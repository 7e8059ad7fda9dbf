/** `npm run prove -- rotations`: rotations under load, in all readings of how the service signs meanwhile; and a careless one. */
import { availableParallelism } from "node:os";
import { countsOf, findings } from "./ledger.ts";
import { apart } from "./process.ts";
import { inTurn, type Programme, type Proof } from "./programme.ts";
import { type Outcome, rotateUnderLoad, type Trial } from "./rotations-trial.ts";

const EVENTS_PER_SECOND = 200;
const SHORT = 2;
const FULL = 50;
/** Readings, with a rotation each. */
const SMALL = 2;

/** Short: two rotations in each of the eight readings. Full: fifty in each. */
export const rotations: Programme = {
  name: "rotations",
  what: "0 deliveries refused and 0 events lost in rotations under 200 events/s, in all readings of overlap and retry signing",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const problems: string[] = [];
    let count = 0;
    const trials = small ? trialsOf(1).slice(0, SMALL) : trialsOf(full ? FULL : SHORT);
    await inTurn(trials, availableParallelism(), async (trial) => {
      const name = nameOf(trial);
      const answer = await apart("rotations-trial.js", rotateUnderLoad, trial);
      say(`${name.padEnd(20)} ${"error" in answer ? answer.error : lineOf(answer.outcome)}`);
      const found = "error" in answer ? [answer.error] : problemsOf(answer.outcome, trial);
      problems.push(...found.map((problem) => `${name}: ${problem}`));
      if (trial.isCareless !== true && "outcome" in answer) count += answer.outcome.rotations;
    });
    return { count, unit: "rotations", problems };
  },
};

function trialsOf(rotations: number): Trial[] {
  const base = { rotations, eventsPerSecond: EVENTS_PER_SECOND };
  const readings = (["current", "previous", "both", "alternate"] as const).flatMap((overlapSigning) =>
    (["fresh", "frozen"] as const).map((retrySignature) => ({ overlapSigning, retrySignature })),
  );
  const careless = { overlapSigning: "current", retrySignature: "fresh" } as const;
  return [
    ...readings.map((signing) => ({ ...base, signing })),
    { ...base, rotations: 1, signing: careless, isCareless: true },
  ];
}

/** What was found, and what must have happened for it to say something. */
function problemsOf(outcome: Outcome, { signing, isCareless = false }: Trial): string[] {
  const { events, attempts, turnedAway, unauthorized, bySlot } = outcome;
  if (isCareless) return unauthorized > 0 ? [] : ["a receiver that got the secret after the service refused nothing"];
  const problems = findings(outcome);
  if (unauthorized > 0) problems.push(`${unauthorized} deliveries were answered with 401`);
  if (turnedAway * 50 < events || attempts <= events) problems.push(`only ${turnedAway} deliveries were turned away`);
  // With a signature of each secret, one is always the current one's.
  const needsOthers = signing.overlapSigning !== "both";
  if (needsOthers && bySlot.previous + bySlot.next === 0) problems.push("no delivery needed another secret");
  return problems;
}

function nameOf({ signing: { overlapSigning, retrySignature }, isCareless = false }: Trial): string {
  return isCareless ? "careless" : `${overlapSigning}, ${retrySignature}`;
}

function lineOf(outcome: Outcome): string {
  const { rotations, events, attempts, turnedAway, unauthorized, bySlot } = outcome;
  const traffic = `${rotations} rotations, ${events} events, ${attempts} attempts (${turnedAway} turned away)`;
  const slots = `by current ${bySlot.current}, previous ${bySlot.previous}, next ${bySlot.next}`;
  return `${traffic}, ${slots}: ${unauthorized} refused, ${countsOf(outcome)}`;
}
