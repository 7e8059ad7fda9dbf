/** `npm run prove -- slow`: 200 slow attackers (`--full` 2,000) against a server of each adapter, with signed traffic beside them. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { signedRequest } from "../../src/tools/testing/index.ts";
import { Asked, compiled, worker } from "./process.ts";
import { inFolder, missingFrom, type Programme, type Proof, type Terms } from "./programme.ts";
import { post } from "./sender.ts";
import { idleServer } from "./slow-attacks.ts";
import { type Adapter, type Flaw, NOBODY, type ServerOptions, type Sort } from "./slow-besieged.ts";
import { attackers, isBusy, type Outcome, type Plan, type Shortcoming, siege } from "./slow-siege.ts";
import { isInstalled, MODE_COUNT } from "./slow-slowhttptest.ts";

const ADAPTERS: readonly Adapter[] = ["node", "express", "fastify"];
interface Form {
  readonly attackers: number;
  readonly stuck: number;
  readonly foreign: number;
  readonly forMs: number;
  readonly nextAfterMs: number;
  readonly mostP99Ms: number;
  /** Which adapters are sent large bodies, and for how long. */
  readonly large: readonly Adapter[];
  readonly largeMs: number;
}

/** The next server is attacked while the one before only waits for its attackers' deadlines. */
const SHORT: Form = {
  attackers: 200,
  stuck: 0,
  large: ["node"],
  largeMs: 12_000,
  foreign: 25,
  forMs: 2_000,
  nextAfterMs: 5_000,
  mostP99Ms: 250,
};
/** One after the other. */
const FULL: Form = {
  attackers: 2_000,
  stuck: 1,
  large: ADAPTERS,
  largeMs: 40_000,
  foreign: 250,
  forMs: 40_000,
  nextAfterMs: 60_000,
  mostP99Ms: 100,
};
/** As many in both forms: more than the budget holds, and much work for a server, however slowly it comes. */
const STALLED = 80;
const CRUMBS = 8;
/** What holds no bounds is to be seen to. */
const MANY_CRUMBS = 24;
/** What each careless front must be seen to do. */
const CONTROLS: readonly (readonly [Flaw, Shortcoming])[] = [
  ["slots first", "refused"],
  ["no bounds", "memory"],
];
/** Forged requests that wait for one look-up: more than there are places of deliveries in work. */
const INVENTED = 300;

export const slowAttackers: Programme = {
  name: "slow",
  what: "signed traffic is answered in time and with 2xx, in bounded memory, whatever slow attackers do to the same server",
  async run({ full, say }: Terms): Promise<Proof> {
    const form = full ? FULL : SHORT;
    const foreign = isInstalled() ? form.foreign : 0;
    if (foreign === 0) say("slowhttptest is not installed: only our own attackers come");
    const bystander = worker("slow-attacks.js", idleServer);
    const bystanderPort = await bystander.ask<number>("work");
    const plan = { ...form, foreign, bystanderPort, count: countOf(form) };
    const problems: string[] = [];
    let attempts = 0;
    const sieges = ADAPTERS.map(async (adapter, index) => {
      await sleep(index * form.nextAfterMs);
      const outcome = await siege({ ...plan, adapter, flaw: "none" });
      attempts += outcome.attempts + MODE_COUNT * foreign;
      say(`${adapter.padEnd(11)} ${lineOf(outcome)}`);
      problems.push(...outcome.found.map(({ line }) => `${adapter}: ${line}`));
      return outcome;
    });
    const outcomes = await Promise.all(sieges);
    problems.push(...(await flood({ ...plan, ...SHORT, foreign: 0 }, say)));
    // Careless fronts take the processors from whoever is beside them, so nobody who is judged is.
    problems.push(...(await unseen({ ...plan, ...SHORT, foreign: 0 }, say)));
    for (const adapter of form.large) {
      const outcome = await largeBodies(adapter, form.largeMs);
      attempts += outcome.attempts;
      say(`${"large".padEnd(11)} ${outcome.taken} of ${outcome.sent} taken by ${adapter}, ${outcome.attempts} attacks`);
      problems.push(...shortcomings(outcome).map((line) => `large, ${adapter}: ${line}`));
    }
    if (outcomes.some(isBusy))
      say("the machine is busy: p99 is only told, and twice the time is granted for letting go");
    problems.push(...(await bystander.stop()));
    return { count: attempts, unit: `slow connections to ${ADAPTERS.length} adapters`, problems };
  },
};

function countOf({ attackers, stuck }: Form): Readonly<Record<Sort, number>> {
  const some = attackers / 10;
  return {
    ...NOBODY,
    "slow headers": attackers - STALLED - CRUMBS - 3 * some - stuck,
    "dripping body": some,
    "stalled body": STALLED,
    "body of crumbs": CRUMBS,
    "steady body": some,
    "slow reader": some,
    "stuck reader": stuck,
  };
}

/** Forged requests for tenants that are looked up in vain, and nothing else: each adapter's receiver has the same places. */
async function flood(plan: Omit<Plan, "adapter" | "flaw" | "count">, say: Terms["say"]): Promise<string[]> {
  const count = { ...NOBODY, "invented tenant": INVENTED };
  const outcomes = await Promise.all(
    (["none", "slots first"] as const).map((flaw) => siege({ ...plan, adapter: "node", count, flaw })),
  );
  const [outcome, careless] = outcomes;
  for (const each of outcomes) say(`${"tenants".padEnd(11)} ${lineOf(each)}`);
  const isSeen = careless?.found.some(({ kind }) => kind === "refused");
  return [
    ...(outcome?.found ?? []).map(({ line }) => `tenants: ${line}`),
    ...(isSeen ? [] : ['a front with "slots first" was not seen to refuse deliveries while tenants were invented']),
  ];
}

async function unseen(terms: Omit<Plan, "adapter" | "flaw" | "count">, say: Terms["say"]): Promise<string[]> {
  const plan = { ...terms, adapter: "node", count: { ...countOf(SHORT), "body of crumbs": MANY_CRUMBS } } as const;
  const outcomes = await Promise.all(
    CONTROLS.map(async ([flaw, wanted]) => ({ flaw, wanted, outcome: await siege({ ...plan, flaw }) })),
  );
  return outcomes.flatMap(({ flaw, wanted, outcome }) => {
    say(`${flaw.padEnd(11)} ${lineOf(outcome)}`);
    return [wanted, "held" as const]
      .filter((kind) => !outcome.found.some((found) => found.kind === kind))
      .map((kind) => `a front with "${flaw}" was not seen: nothing was "${kind}"`);
  });
}

function lineOf({ delivered, p99Ms, bystanderP99Ms, memory, attempts, held, found }: Outcome): string {
  const times = `p99 ${p99Ms.toFixed(0)} ms (${bystanderP99Ms.toFixed(0)} elsewhere)`;
  const space = `${memory.idle} MiB idle, ${memory.peak} at most`;
  const longest = [...held].map(([sort, ms]) => `${sort} ${(ms / 1_000).toFixed(1)}`).join(", ");
  const kinds = [...new Set(found.map(({ kind }) => kind))].join(", ") || "nothing amiss";
  return `${delivered} delivered, ${times}, ${space}, ${attempts} attacks, held at most (s): ${longest}; ${kinds}`;
}

/** What they send is more than all bodies may hold together. */
const STALLED_STARTS = 1_100;
const SIZES = [200_000, 2_000_000, 10_000_000, 24_000_000] as const;
const IN_PIECES = { count: 10, everyMs: 50 };
const LARGE_EVERY_MS = 500;
const LEAST_TAKEN = 0.99;

interface LargeOutcome {
  readonly sent: number;
  readonly taken: number;
  readonly attempts: number;
}

/** Large bodies that come in pieces, next to attackers who send the start of one and then nothing: GitHub's, which are never sent again. */
function largeBodies(adapter: Adapter, forMs: number): Promise<LargeOutcome> {
  return inFolder(async (folder) => {
    const options: ServerOptions = { adapter, path: join(folder, "inbox.db"), flaw: "none", bodies: "large" };
    const server = new Asked(compiled("slow-child.js"), options);
    const attacking = attackers();
    try {
      const port = await server.ask<number>("listen");
      const count = { ...NOBODY, "stalled start": STALLED_STARTS };
      const [statuses, attempts] = await Promise.all([
        deliverLarge(port, performance.now() + forMs),
        attacking.besiege({ port, forMs, count }),
      ]);
      const taken = statuses.filter((status) => status >= 200 && status < 300).length;
      return { sent: statuses.length, taken, attempts: attempts.length };
    } finally {
      await Promise.all([server.kill(), attacking.end()]);
    }
  });
}

function shortcomings({ sent, taken, attempts }: LargeOutcome): string[] {
  return missingFrom({
    [`only ${attempts} attackers came`]: attempts >= STALLED_STARTS,
    [`${sent - taken} of ${sent} large bodies were refused`]: taken >= sent * LEAST_TAKEN,
    "no body of each size was sent": sent >= SIZES.length,
  });
}

/** Returns the status of each answer, 0 for none. */
async function deliverLarge(port: number, endsAt: number): Promise<readonly number[]> {
  const answers: Promise<number>[] = [];
  for (; performance.now() < endsAt; await sleep(LARGE_EVERY_MS)) {
    const content = { n: answers.length, text: "x".repeat(SIZES[answers.length % SIZES.length] ?? 0) };
    const target = { port, path: "/webhooks/known", agent: false, pieces: IN_PIECES } as const;
    answers.push(post(target, signedRequest(content, { source: "github" })).then(({ status }) => status));
  }
  return Promise.all(answers);
}
