/** What a proof programme is: one claim, put to the test for as long as it takes; and what most of them need for it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface Programme {
  /** As in `npm run prove -- NAME`. */
  readonly name: string;
  /** The claim, in a sentence. */
  readonly what: string;
  /** It has a form that is small enough to be run for each planted bug: the same checks on less, without the controls. */
  readonly hasSmallForm?: true;
  /** Part of its claim is a time, or what the machine can do: nothing may run beside it. */
  readonly needsQuiet?: true;
  run(terms: Terms): Promise<Proof>;
}

export interface Terms {
  /** The long form instead of the short one. */
  readonly full: boolean;
  /** The small form, of a programme that has one. */
  readonly small: boolean;
  /** Prints a line of progress. */
  say(line: string): void;
}

export interface Proof {
  /** How much was looked at; zero proves nothing. */
  readonly count: number;
  readonly unit: string;
  /** Empty when the claim held. */
  readonly problems: readonly string[];
}

/** How much the wanted form looks at. */
export function sizeOf<Size>(
  { full, small }: Pick<Terms, "full" | "small">,
  sizes: { readonly small?: Size; readonly short: Size; readonly full: Size },
): Size {
  if (full) return sizes.full;
  return small ? (sizes.small ?? sizes.short) : sizes.short;
}

/** `SEED=n` takes another one. */
export function seedOr(usual: number): number {
  return Number(process.env.SEED ?? usual);
}

/** The names of what had to happen for an outcome to say something, and did not. */
export function missingFrom(shown: Readonly<Record<string, boolean>>): string[] {
  return Object.entries(shown).flatMap(([what, holds]) => (holds ? [] : [what]));
}

/** Works on all items in their order, so many at once. */
export async function inTurn<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = [...items.entries()];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      results[next[0]] = await work(next[1], next[0]);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

/** Adds up the numbers of reports by their names. */
export function summed(reports: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const counts of reports)
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

/** Gives a new folder to `use`, and removes it afterwards. @param parent - default: on a real disk */
export async function inFolder<T>(use: (folder: string) => Promise<T>, parent = tmpdir()): Promise<T> {
  const folder = await mkdtemp(join(parent, "oncehook-proof-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves with whether `holds` became true in time; looks every `everyMs`. */
export async function within(ms: number, holds: () => boolean | Promise<boolean>, everyMs = 20): Promise<boolean> {
  for (const deadline = performance.now() + ms; !(await holds()); await sleep(everyMs))
    if (performance.now() > deadline) return false;
  return true;
}
