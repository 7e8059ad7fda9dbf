/** `npm run prove -- mutants`: what verifies a delivery, with one thing changed, 1,600 times (`--full` all rooms): of each room the tests notice enough. */
import { fileURLToPath } from "node:url";
import type { Programme, Proof, Terms } from "../programme.ts";
import { OTHER_ROOMS, type Room, SIGNATURE } from "./rooms.ts";
import { fetchStryker, mutate, type StrykerTerms } from "./stryker.ts";
import { judge, mutantsOf, type Verdict } from "./verdict.ts";

/** From where this file is compiled to. */
const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
/** Names of rooms, apart by commas, instead of all. */
const ONLY = process.env.ROOMS?.split(",") ?? null;

export const mutants: Programme = {
  name: "mutants",
  what: "of each room's mutants the tests kill as many as the room's floor asks for: of what verifies a delivery, and in full of the core, the sources, the stores and the adapters",
  async run({ full, say }: Terms): Promise<Proof> {
    const all = full || ONLY !== null ? [SIGNATURE, ...OTHER_ROOMS] : [SIGNATURE];
    const rooms = all.filter(({ name }) => ONLY === null || ONLY.includes(name));
    const terms = { root: ROOT, packages: await fetchStryker(), withStatic: full };
    const problems: string[] = [];
    let count = 0;
    for (const room of rooms) {
      const verdict = await verdictOn(room, terms);
      for (const mutant of verdict.lived) say(`lived: ${mutant}`);
      say(lineOf(room, verdict));
      problems.push(...verdict.problems.map((problem) => `${room.name}: ${problem}`));
      count += verdict.tried;
    }
    return { count, unit: "mutants", problems };
  },
};

async function verdictOn(room: Room, terms: StrykerTerms): Promise<Verdict> {
  return judge(mutantsOf(await mutate(room, terms)), room.floor);
}

function lineOf({ name, floor }: Room, { tried, killed, score, leftOut, problems }: Verdict): string {
  const rest = leftOut === 0 ? "" : `, ${leftOut} that need a new start left out`;
  const percent = `${score.toFixed(1)} % (floor ${floor} %)`;
  return `${name.padEnd(12)} ${killed} of ${tried} killed, ${percent}${rest}; ${problems.length} problems`;
}
