/** The option `lane` changes between two starts on one inbox: an event stays the same event, whatever lane it is in. */
import { createHash, createHmac } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createReceiver, type HandlerContext, type SourceEvents, type WebhookSource } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { defineSource, type KeyringProvider, stripe } from "../../src/sources/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { incomingOf, type SignedRequest, signedRequest } from "../../src/tools/testing/index.ts";
import { sized } from "../setup/form.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";

const SECOND = 1_760_000_000;

/** The option `lane` at a start. */
const LANES = {
  "of the source": {},
  none: { lane: null },
  "one for each type": { lane: ({ type }: { readonly type: string }) => type },
  "one for all": { lane: () => "all" },
} as const;
type Lane = (typeof LANES)[keyof typeof LANES];

/** A delivery by its number: two of the same number are the same event. */
const contentOf = (number: number) => ({
  ...{ id: `id_${number}`, type: number % 2 === 0 ? "made" : "changed" },
  ...{ object: `object_${number % 3}`, position: (number * 4) % 7 },
});

const acme = defineSource<ReturnType<typeof contentOf>>({
  preset: "acme",
  lastRetryMs: 0,
  verify(head, body, keys) {
    const signature = Buffer.from(head.header("x-signature") ?? "", "hex");
    const key = keys.find((each) => each.signed(signature, "sha256", body));
    return key === undefined ? { ok: false, code: "signature_mismatch" } : { ok: true, key, signedAt: null };
  },
  parse: (body) => ({ ok: true, event: JSON.parse(Buffer.from(body).toString()) }),
  order: "position",
  place: ({ id, type, object, position }) => ({ type, id, lane: object, at: position }),
});

interface Form {
  source(secrets: string | KeyringProvider, lane: Lane): WebhookSource<SourceEvents>;
  send(number: number, secret: string): SignedRequest;
}

const FORMS: Readonly<Record<"stripe" | "acme", Form>> = {
  stripe: {
    source: (secrets, lane) => stripe({ secrets, ...lane }),
    send(number, secret) {
      const { object, position, ...event } = contentOf(number);
      const content = { ...event, created: SECOND + position, data: { object: { id: object } } };
      return signedRequest(content, { source: "stripe", secret });
    },
  },
  acme: {
    source: (secrets, lane) => acme({ secrets, ...lane }),
    send(number, secret) {
      const body = Buffer.from(JSON.stringify(contentOf(number)));
      return {
        method: "POST",
        headers: { "x-signature": createHmac("sha256", secret).update(body).digest("hex") },
        body,
      };
    },
  },
};

const SECRET = "a secret of some characters";
const secretOf = (tenant: string | null) => `${SECRET} ${tenant}`;

/** One run of the process. */
const run = fc.record({
  lane: fc.constantFrom(...(Object.keys(LANES) as (keyof typeof LANES)[])),
  deliveries: fc.array(fc.record({ number: fc.nat({ max: 5 }), tenant: fc.constantFrom("a", "b") }), { maxLength: 6 }),
  /** Whether it handles its events, or leaves them to the next one. */
  drains: fc.boolean(),
});
const course = fc.array(run, { minLength: 2, maxLength: 4 });

/** Both tenants are the same to a source without tenants. */
async function holds(preset: keyof typeof FORMS, hasTenants: boolean, file: string, runs: readonly Run[]) {
  const { source, send } = FORMS[preset];
  const secrets = hasTenants
    ? ({ tenant = "" }: { tenant?: string }) => ({ secret: secretOf(tenant), tenant })
    : secretOf(null);
  const accepted = new Set<string>();
  const handled: string[] = [];
  const see = (_event: object, ctx: HandlerContext) => void handled.push(ctx.identity);
  for (const [index, { lane, deliveries, drains }] of runs.entries()) {
    const store = sqliteStore(file, { minFreeBytes: 0 });
    const receiver = createReceiver({ store, source: source(secrets, LANES[lane]), logger: silentLogger });
    receiver.onAny(see);
    for (const { number, tenant } of deliveries) {
      const owner = hasTenants ? tenant : null;
      const answer = await receiver.handle({ ...incomingOf(send(number, secretOf(owner))), tenant });
      const identity = createHash("sha256")
        .update(JSON.stringify([preset, owner, contentOf(number).id]))
        .digest("hex");
      const { outcome } = JSON.parse(answer.body) as { readonly outcome: string };
      expect(outcome === "duplicate").toBe(accepted.has(identity));
      accepted.add(identity);
    }
    if (drains || index === runs.length - 1) await receiver.drain();
    await receiver.stop();
  }
  expect(handled.toSorted()).toEqual([...accepted].toSorted());
}
type Run = typeof run extends fc.Arbitrary<infer T> ? T : never;

it.each([
  ["stripe", false],
  ["stripe", true],
  ["acme", false],
  ["acme", true],
] as const)(
  "%s handles each event once under one identity, with tenants: %s",
  { timeout: 600_000 },
  async (preset, hasTenants) => {
    const property = fc.asyncProperty(course, async (runs) => {
      const folder = await mkdtemp(join(MEMORY_DISK, "oncehook-"));
      try {
        await holds(preset, hasTenants, join(folder, "inbox.db"), runs);
      } finally {
        await rm(folder, { recursive: true });
      }
    });
    await fc.assert(property, { numRuns: sized({ quick: 15, full: 200 }) });
  },
);
