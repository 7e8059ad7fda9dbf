/** `npm run prove -- disk`: a full disk, I/O errors, a disk that takes no writes and a foreign lock, under load. */
import { breachCounts, breachLines } from "../history.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { FAULTS } from "./faults.ts";
import { type Outcome, shortcomings, throughWindows } from "./window.ts";

const SHORT = 1;
const FULL = 20;
const MOST_STALL_MS = 250;
/** A fault that needs neither strace nor root. */
const ANYWHERE = "foreign lock";

export const diskFaults: Programme = {
  name: "disk",
  what: "a disk that fails is answered with 503 and nothing else, nothing acknowledged is lost, and all goes on by itself within 5 s",
  hasSmallForm: true,
  async run({ full, small, say }: Terms): Promise<Proof> {
    const faults = small ? FAULTS.filter(({ name }) => name === ANYWHERE) : FAULTS;
    const problems: string[] = [];
    let windows = 0;
    for (const fault of faults) {
      const reason = fault.missing();
      if (reason !== null) {
        say(`${fault.name.padEnd(15)} left out: ${reason}`);
        continue;
      }
      const outcome = await throughWindows(fault, full ? FULL : SHORT);
      windows += outcome.windows.length;
      say(`${fault.name.padEnd(15)} ${lineOf(outcome)}`);
      const found = [...breachLines(outcome.breaches), ...shortcomings(outcome, full ? MOST_STALL_MS : null)];
      problems.push(...found.map((problem) => `${fault.name}: ${problem}`));
    }
    if (!small) problems.push(...(await unseen(say)));
    return { count: windows, unit: `windows of ${faults.length} faults`, problems };
  },
};

/** The control: a front that answers before it stores. */
async function unseen(say: Terms["say"]): Promise<string[]> {
  const control = FAULTS.find(({ name }) => name === ANYWHERE);
  if (control === undefined) return ["there is no fault for the control"];
  const careless = await throughWindows(control, 1, true);
  say(`${"answers first".padEnd(15)} ${lineOf(careless)}`);
  const isSeen = careless.breaches.some(({ kind }) => kind === "lost");
  return isSeen ? [] : ["answers before the commit were not seen to lose anything"];
}

function lineOf({ windows, breaches, acknowledged }: Outcome): string {
  const most = (pick: (window: Outcome["windows"][number]) => number) => Math.max(...windows.map(pick));
  const refused = windows.reduce((sum, window) => sum + window.refused, 0);
  const times = `recovered within ${most(({ recoveredMs }) => recoveredMs)} ms, longest stall ${most(({ stallMs }) => stallMs)} ms`;
  return `${acknowledged} acknowledged, ${refused} refused in ${windows.length} windows, ${times}: ${breachCounts(breaches)}`;
}
