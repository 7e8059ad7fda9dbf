/** `npm run prove -- mutants`: what verifies a delivery, with one thing changed, 1,400 times (`--full` all of it, and the core): a test notices each. */
import { fileURLToPath } from "node:url";
import type { Programme, Proof, Terms } from "../proofs/programme.ts";
import { EXPLAINED } from "./explained.ts";
import { OTHER_ROOMS, type Room, SIGNATURE } from "./rooms.ts";
import { fetchStryker, mutate, type StrykerTerms } from "./stryker.ts";
import { judge, mutantsOf, type Verdict } from "./verdict.ts";

/** From where this file is compiled to. */
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Names of rooms, apart by commas, instead of all. */
const ONLY = process.env.ROOMS?.split(",") ?? null;

export const mutants: Programme = {
  name: "mutants",
  what: "the tests kill every mutant of what verifies a delivery, 95 % of events and inbox, 90 % of the core, but those with a written reason",
  async run({ full, say }: Terms): Promise<Proof> {
    const all = full || ONLY !== null ? [SIGNATURE, ...OTHER_ROOMS] : [SIGNATURE];
    const rooms = all.filter(({ name }) => ONLY === null || ONLY.includes(name));
    const terms = { root: ROOT, packages: await fetchStryker(), withStatic: full };
    const problems: string[] = [];
    let count = 0;
    for (const room of rooms) {
      const verdict = await verdictOn(room, terms);
      say(lineOf(room, verdict));
      problems.push(...verdict.problems.map((problem) => `${room.name}: ${problem}`));
      count += verdict.tried;
    }
    return { count, unit: "mutants", problems };
  },
};

async function verdictOn(room: Room, terms: StrykerTerms): Promise<Verdict> {
  const report = await mutate(room, terms);
  return judge(mutantsOf(report), { explained: EXPLAINED, least: room.least });
}

function lineOf({ name }: Room, { tried, killed, explained, leftOut, problems }: Verdict): string {
  const rest = leftOut === 0 ? "" : `, ${leftOut} that need a new start left out`;
  return `${name.padEnd(12)} ${killed} of ${tried} killed, ${explained} explained${rest}; ${problems.length} problems`;
}
