/** One process's share of the cases: what it was asked to do, and what it found. */
import { isDeepStrictEqual } from "node:util";
import { eventIdentity, type ParseResult, parseEvent } from "../../../src/sources/messaging/parse.ts";
import type { Case } from "./case.ts";
import { Dice } from "./dice.ts";
import { FLAWS, type Flaw, type Verify, verifyOurs } from "./flaws.ts";
import { generatedCase } from "./generated.ts";
import { type JsonCase, jsonCase } from "./json-case.ts";
import { mutatedCase } from "./mutated.ts";
import { fuzzOverHttp } from "./over-http.ts";
import { isEvent, nameOfEvent } from "./shape.ts";
import { headersOf, Ledger, NOW, type Signed, signedAt, signedPool } from "./signed.ts";
import { Watch } from "./watch.ts";

/** How many cases of each sort. */
export interface Counts {
  readonly mutated: number;
  readonly generated: number;
  readonly json: number;
  readonly http: number;
}

export interface Share {
  readonly seed: number;
  readonly counts: Counts;
  /** Built in on purpose. */
  readonly flaw?: Flaw;
}

export interface Outcome {
  readonly cases: number;
  readonly kinds: Readonly<Record<string, number>>;
  /** Unmutated ones, all taken. */
  readonly controls: number;
  /** Mutated ones that say the same as what was signed, such as one written in capitals. */
  readonly takenAsSigned: number;
  readonly events: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly slowestMs: number;
  readonly growthMib: number;
  readonly problems: readonly string[];
}

/** Identities of so many events are compared with each other at a time, so that the heap stays as it is. */
const NAMES = 20_000;

export async function fuzzShare({ seed, counts, flaw }: Share): Promise<Outcome> {
  const watch = new Watch();
  const pool = signedPool();
  const requests = new Requests(watch, pool, flaw === undefined ? verifyOurs : FLAWS[flaw].verify);
  const bodies = new Bodies(watch, requests);
  const diceOf = (sort: number, index: number) => new Dice(seed + sort * 0x1000, index);
  const nameOf = (sort: string, index: number, kind: string) => `seed ${seed}, ${sort} ${index} (${kind})`;
  await watch.whole("mutated requests", counts.mutated, (index) => {
    const request = mutatedCase(diceOf(1, index), pool);
    requests.judge(nameOf("mutated", index, request.kind), request);
  });
  await watch.whole("generated requests", counts.generated, (index) => {
    const request = generatedCase(diceOf(2, index));
    requests.judge(nameOf("generated", index, request.kind), request);
  });
  await watch.whole("JSON", counts.json, (index) => {
    const one = jsonCase(diceOf(3, index));
    bodies.judge(nameOf("json", index, one.kind), one);
  });
  const statuses = await fuzzOverHttp(watch, { pool, count: counts.http, diceOf, nameOf });
  const { cases, slowestMs, growthMib, problems } = watch;
  const { controls, takenAsSigned } = requests;
  return {
    ...{ cases, kinds: Object.fromEntries(watch.kinds), controls, takenAsSigned, events: bodies.events, statuses },
    ...{ slowestMs, growthMib, problems },
  };
}

/** Asks the verifier, and compares what it says with the ledger of what was signed. */
class Requests {
  controls = 0;
  takenAsSigned = 0;
  readonly #watch: Watch;
  readonly #ledger: Ledger;
  readonly #verify: Verify;
  readonly #signedBodies: ReadonlySet<Buffer>;

  constructor(watch: Watch, pool: readonly Signed[], verify: Verify) {
    this.#watch = watch;
    this.#ledger = new Ledger(pool);
    this.#signedBodies = new Set(pool.map(({ body }) => body));
    this.#verify = verify;
  }

  judge(name: string, request: Case): void {
    this.#watch.count(request.kind);
    const isTaken = this.#watch.run(name, () => this.#verify(request));
    // What was verified gets to the parser; what was not and is strange must do no harm there either.
    if (isTaken === true || !this.#signedBodies.has(request.body))
      this.#watch.run(name, () => parseEvent(request.body));
    if (isTaken === undefined) return;
    if (request.due === "accepted") this.controls += 1;
    else if (isTaken) this.takenAsSigned += 1;
    if (isTaken && request.due === "refused") this.#watch.found(`${name} was accepted wrongly`);
    if (isTaken && request.due === "unless signed" && !this.#ledger.hasSigned(request)) {
      this.#watch.found(`${name} was accepted, and nobody signed it`);
    }
    if (!isTaken && request.due === "accepted") this.#watch.found(`${name} was refused, though it is as it was signed`);
  }

  /** For what is signed here and now. */
  takes(name: string, body: Buffer): boolean {
    const headers = headersOf(signedAt(body, NOW));
    const request: Case = { kind: "json", headers, body, now: NOW, due: "accepted" };
    return this.#watch.run(name, () => this.#verify(request)) === true;
  }
}

/** Has signed bodies verified and parsed, and compares what becomes of them with a second reading of the specification. */
class Bodies {
  events = 0;
  readonly #watch: Watch;
  readonly #requests: Requests;
  /** By identity, what the event is; by what it is, its identity. */
  readonly #names = new Map<string, string>();

  constructor(watch: Watch, requests: Requests) {
    this.#watch = watch;
    this.#requests = requests;
  }

  judge(name: string, { kind, body, due }: JsonCase): void {
    this.#watch.count(kind);
    if (!this.#requests.takes(name, body)) this.#watch.found(`${name} was refused, though it is rightly signed`);
    const result = this.#watch.run(name, () => parseEvent(body));
    if (result === undefined) return;
    const isDue = due === "by shape" ? isEvent(JSON.parse(body.toString())) : due === "event";
    if (result.ok !== isDue) {
      this.#watch.found(`${name} is ${isDue ? "an event" : "none"}, but was read as ${said(result)}: ${start(body)}`);
    }
    if (!result.ok) return;
    this.events += 1;
    if (!isDeepStrictEqual(result.event, JSON.parse(body.toString()))) {
      this.#watch.found(`${name} was read as another value: ${start(body)}`);
    }
    this.#compare(name, eventIdentity(result.event, body), nameOfEvent({ ...result.event }, body));
  }

  /** Two events share an identity exactly when they are one. */
  #compare(name: string, identity: string, event: string): void {
    const [other = event, known = identity] = [this.#names.get(identity), this.#names.get(event)];
    if (other !== event) this.#watch.found(`${name}: ${event} has the identity of ${other}`);
    if (known !== identity) this.#watch.found(`${name}: ${event} has two identities`);
    if (this.#names.size > 2 * NAMES) this.#names.clear();
    this.#names.set(identity, event).set(event, identity);
  }
}

function said(result: ParseResult): string {
  return result.ok ? "an event" : `${result.code} ${result.issues.join("; ")}`;
}

function start(body: Buffer): string {
  return JSON.stringify(body.toString("utf8", 0, 300));
}
