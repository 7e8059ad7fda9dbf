/** Bugs of the kind that receivers of webhooks have, each as a change of our own sources, and who must find it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BY_HAND } from "./by-hand.ts";
import { IN_USE } from "./in-use.ts";
import { MUTANTS } from "./mutants.ts";
import { mutantNamed } from "./mutations.ts";
import { type Edit, editAt, type Place } from "./places.ts";

export interface Bug {
  readonly name: string;
  /** What it is about, as in rooms.ts. */
  readonly room: string;
  /** Default: by hand. */
  readonly madeBy?: "mutation";
  /** It is in the small form too, which runs the programmes alone. */
  readonly inSmall?: true;
  /** The tests that must find it too: a file or a folder, as for `npx vitest run`. */
  readonly tests: string;
  /** The programme, as in `npm run prove -- NAME --small`. Default: none was seen to find it yet, and the test alone must. */
  readonly caughtBy?: string;
  /** A part of the line that the programme must say: another failure would show something else. */
  readonly says?: string;
  /** Default: what mutations.ts makes of its name. */
  readonly places?: readonly Place[];
}

/** In the order of the matrix. */
export const BUGS: readonly Bug[] = [
  ...BY_HAND,
  ...IN_USE,
  ...MUTANTS.map((mutant): Bug => ({ ...mutant, madeBy: "mutation" })),
];

/** The changes of a bug in the sources below `root`. @throws where a place is not there, or twice */
export function editsOf(root: string, { room, name, places }: Bug): readonly Edit[] {
  if (places === undefined) return [mutantNamed(root, room, name).edit];
  return places.map((place) => editAt(readFileSync(join(root, place.file), "utf8"), place));
}
