/** `npm run prove -- power`: the disk as a power cut leaves it at each of 100 acknowledgements (`--full` 2,000), rebuilt from what was synced. */
import { straceIsMissing } from "../durability/strace.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { cutPower, type Outcome } from "./run.ts";

const SHORT = { processes: 2, deliveries: 50 };
const FULL = { processes: 20, deliveries: 100 };
const SMALL = { processes: 1, deliveries: 40 };
const CONTROL = { processes: 1, deliveries: 40, pretence: "NORMAL" } as const;

export const power: Programme = {
  name: "power",
  what: "a disk that holds what was synced before a 2xx, and any part of what was not, holds every acknowledged event",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const unit = "power cuts at an acknowledgement";
    const missing = straceIsMissing();
    if (missing !== null) return { count: 0, unit, problems: [`left out: ${missing}`] };
    const seed = Number(process.env.SEED ?? 20_251_120);
    const shorter = small ? SMALL : SHORT;
    const terms = full ? FULL : shorter;
    const outcome = await cutPower({ seed, ...terms });
    say(`SEED=${seed} ${lineOf(outcome)}`);
    const problems = [...problemsOf(outcome), ...shortcomings(outcome, terms)].map(
      (problem) => `SEED=${seed} ${problem}`,
    );
    if (!small) problems.push(...(await unseen(seed, say)));
    return { count: outcome.cuts, unit, problems };
  },
};

/** The control: a driver that only says `FULL`. */
async function unseen(seed: number, say: Terms["say"]): Promise<string[]> {
  const control = await cutPower({ seed, ...CONTROL });
  say(`NORMAL ${lineOf(control)}`);
  return control.lost.length === 0 ? ["with NORMAL nothing was seen lost"] : [];
}

function problemsOf({ lost, damaged, unlike }: Outcome): string[] {
  return [
    ...lost.slice(0, 20).map((marker) => `lost ${marker}`),
    ...damaged.slice(0, 20),
    ...unlike.map((name) => `the recording of ${name} does not make the file that is there`),
  ];
}

/** What must have happened for the outcome to say something. */
function shortcomings({ cuts, between, checkpoints }: Outcome, { processes, deliveries }: typeof SHORT): string[] {
  const shown = {
    [`only ${cuts} acknowledgements were seen`]: cuts === processes * deliveries,
    [`only ${between} cuts fell between acknowledgements`]: between > cuts / 10,
    // In its rest, and when it closes.
    [`the log was copied into the file only ${checkpoints} times`]: checkpoints >= 1.5 * processes,
  };
  return Object.entries(shown)
    .filter(([, holds]) => !holds)
    .map(([shortcoming]) => shortcoming);
}

function lineOf({ cuts, between, disks, syncs, checkpoints, lost, damaged }: Outcome): string {
  const looked = `${cuts} cuts at an acknowledgement and ${between} between, ${disks} disks`;
  return `${looked}, ${syncs} syncs, ${checkpoints} of them of the file itself: ${lost.length} lost, ${damaged.length} damaged`;
}
