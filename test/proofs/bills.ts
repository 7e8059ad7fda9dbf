/** Stripe's events of many objects: those of an object come shuffled, and some of them much later. */
import { fixtures, shuffled } from "../../src/tools/testing/index.ts";
import type { HandledEffect } from "./history.ts";
import { otherIdentity } from "./sources.ts";

export interface Bill {
  readonly source: "billing" | "held";
  readonly event: object;
  /** As `ctx.identity`. */
  readonly identity: string;
}

const EVENTS = 4;
/** The share of events that come later than the others of their object. */
const DELAYED = 0.3;
/** How many of these come with the events of each next object. */
const ARRIVE = 0.05;

export class Bills {
  readonly #random: () => number;
  readonly #lanes: number;
  readonly #delayed: Bill[] = [];
  #visits = 0;

  constructor(random: () => number, lanes: number) {
    this.#random = random;
    this.#lanes = lanes;
  }

  /** New events of one object, which share seconds in pairs, and delayed ones of others. After the last object it is the first one's turn again. */
  next(): readonly Bill[] {
    const visit = this.#visits++;
    const object = visit % this.#lanes;
    const source = object % 2 === 0 ? "billing" : "held";
    const bills = Array.from({ length: EVENTS }, (_, index): Bill => {
      const fixture = fixtures.stripe({ id: `evt_${visit}_${index}`, data: { id: `${source}_${object}` } });
      const event = { ...fixture, created: fixture.created + visit * EVENTS + Math.floor(index / 2) };
      return { source, event, identity: otherIdentity(source, JSON.stringify(event)) };
    });
    const arriving = this.#delayed.filter(() => this.#random() < ARRIVE);
    for (const bill of arriving) this.#delayed.splice(this.#delayed.indexOf(bill), 1);
    const delayed = bills.filter(() => this.#random() < DELAYED);
    this.#delayed.push(...delayed);
    return shuffled([...bills.filter((bill) => !delayed.includes(bill)), ...arriving], this.#random);
  }
}

/** How many of Stripe's events were late, and of how many, at the source without a hold-back and at the one with it. */
export function lateBills(effects: readonly HandledEffect[]): Record<Bill["source"], readonly [number, number]> {
  const of = (source: Bill["source"]): readonly [number, number] => {
    const all = effects.filter(({ lane }) => lane.startsWith(`${source}_`));
    return [all.filter(({ late }) => late).length, all.length];
  };
  return { billing: of("billing"), held: of("held") };
}

/** In words, for a line of progress. */
export function lateLine({ billing, held }: ReturnType<typeof lateBills>): string {
  return `${billing.join(" of ")} of Stripe's late, ${held.join(" of ")} with a hold-back`;
}
