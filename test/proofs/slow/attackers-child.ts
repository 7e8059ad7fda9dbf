/** The process of the attackers: each begins again when it is let go, for as long as the attack lasts. */
import { setTimeout as sleep } from "node:timers/promises";
import { answering } from "../asked.ts";
import { type Attack, attack } from "./attacks.ts";
import type { Sort } from "./besieged.ts";

/** Before an attacker comes again. */
const AGAIN_AFTER_MS = 1_000;
/** Attackers that come in a second: they are slow, and no flood of connections. */
const ARRIVE_PER_SECOND = 200;

export interface Orders {
  readonly port: number;
  readonly count: Readonly<Record<Sort, number>>;
  /** Nobody begins again after that. */
  readonly forMs: number;
}

/** What became of one connection of an attacker. */
export interface Attempt {
  readonly sort: Sort;
  readonly localPort: number;
  /** Epoch milliseconds. */
  readonly since: number;
}

const begun: { readonly sort: Sort; readonly attack: Attack }[] = [];
let refused = 0;

async function besiege({ port, count, forMs }: Orders): Promise<void> {
  const endsAt = performance.now() + forMs;
  const sorts = Object.entries(count) as [Sort, number][];
  const attackers = sorts.flatMap(([sort, size]) => Array.from({ length: size }, () => sort));
  await Promise.all(
    attackers.map(async (sort, index) => {
      await sleep((place(index, attackers.length) / ARRIVE_PER_SECOND) * 1_000);
      for (let isFirst = true; isFirst || performance.now() < endsAt; isFirst = false) {
        if (!isFirst) await sleep(AGAIN_AFTER_MS);
        const one = await attack(sort, port).catch(() => null);
        if (one === null) refused += 1;
        else begun.push({ sort, attack: one });
        const over = sleep(Math.max(0, endsAt - performance.now()));
        await Promise.race([one?.ended, over]);
      }
    }),
  );
}

/** Sorts come mixed: 7,919 is a prime, so that each place is taken once. */
const place = (index: number, count: number) => (index * 7_919) % count;

answering(
  {
    besiege,
    /** All connections that were made, and how many were not. */
    attempts: () => ({
      refused,
      attempts: begun.map(({ sort, attack: { localPort, since } }) => ({ sort, localPort, since })),
    }),
  },
  () => {
    for (const { attack: one } of begun) one.leave();
  },
);
