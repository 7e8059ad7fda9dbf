/** `npm run prove -- durable`: for 200 deliveries (`--full` 1,000) the kernel tells that write and sync came before the 2xx. */
import type { Programme, Proof } from "../programme.ts";
import { straceIsMissing } from "./strace.ts";
import type { Verdicts } from "./trace.ts";
import { tracedRun } from "./traced-run.ts";

const SHORT = 200;
const FULL = 1_000;
const CONTROL = 50;

export const durable: Programme = {
  name: "durable",
  what: "the row of every delivery is written and synced before its 2xx leaves, by the kernel's account",
  async run({ full, say }): Promise<Proof> {
    const unit = "deliveries synced before their 2xx";
    const missing = straceIsMissing();
    if (missing !== null) return { count: 0, unit, problems: [`left out: ${missing}`] };
    const deliveries = full ? FULL : SHORT;
    const verdicts = await tracedRun({ deliveries });
    say(`FULL     ${lineOf(verdicts)}`);
    const problems = verdicts.unsynced.map((marker) => `${marker} was acknowledged before it was synced`);
    const count = new Set(verdicts.synced).size;
    if (count !== deliveries) problems.push(`only ${count} of ${deliveries} were seen synced`);
    // The control: a driver that only says FULL. In neither mode does a commit sync the log.
    for (const pretence of ["NORMAL", "OFF"] as const) {
      const control = await tracedRun({ deliveries: CONTROL, pretence });
      say(`${pretence.padEnd(8)} ${lineOf(control)}`);
      const unsynced = new Set(control.unsynced).size;
      if (unsynced !== CONTROL) problems.push(`with ${pretence} only ${unsynced} of ${CONTROL} were seen unsynced`);
    }
    return { count, unit, problems: problems.slice(0, 20) };
  },
};

function lineOf({ synced, unsynced }: Verdicts): string {
  return `${synced.length} answers after the sync of their row, ${unsynced.length} before it`;
}
