import { describe, expect, it } from "vitest";
import { callOf } from "../../../src/messaging/client/call.ts";
import type { EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { rotateSecret } from "../../../src/messaging/rotation/index.ts";
import { liveSecrets } from "../../../src/messaging/rotation/slots.ts";
import { seededRandom } from "../../../src/tools/testing/index.ts";
import { around, Turns } from "./broken.ts";
import { expectAgreement, failureOf, serviceSecret, serviceState, sightingOf, startSetting } from "./support.ts";

const ORDERS = 12;
/** How long a caller comes later than another, or repeats what had no answer. */
const MOST_TURNS = 30;
const LOSSY_ORDERS = 15;
/** Of the first 300 orders of four callers, four ended wrong once: two are from here on. */
const FIRST_LOSSY_ORDER = 110;

type Readings = NonNullable<EmulatorOptions["unspecified"]>;
interface Case {
  readonly unspecified?: Readings;
  readonly force?: boolean;
  readonly empty?: boolean;
}

const CASES: readonly Case[] = [
  {},
  { force: true },
  { empty: true },
  { unspecified: { secretGeneration: "always" } },
  { unspecified: { secretGeneration: "always" }, empty: true },
  { unspecified: { rejectRotationDuringOverlap: true } },
];

describe("rotateSecret(), twice at once", () => {
  it.each(CASES)(`ends with the service's current secret in ${ORDERS} orders: %j (WHK-18, WHK-21)`, async (given) => {
    const outcomes = new Set<string>();
    for (let seed = 0; seed < ORDERS; seed++) for (const each of await twice(given, seed)) outcomes.add(each);
    const allowed = [
      "fulfilled",
      "rotation_refused",
      "rotation_conflict",
      ...(given.unspecified === undefined ? [] : ["INVALID_REQUEST"]),
    ];
    for (const outcome of outcomes) expect(allowed).toContain(outcome);
    expect(outcomes).toContain("fulfilled");
  });

  it("goes on with the other's secret, when that came first", async () => {
    const setting = await startSetting();
    setting.sightings = [sightingOf({ seenAt: setting.clock.now() })];
    await failureOf(rotateSecret({ ...setting.options, waitMs: 0 }));
    setting.sightings = [];
    const [first, second] = await Promise.all([rotateSecret(setting.options), rotateSecret(setting.options)]);
    expect([first.resumed, second.resumed]).toEqual([true, true]);
    expect(second).toEqual(first);
    await expectAgreement(setting);
    // The first secret, `next`, and one commit.
    expect((await setting.secrets.read("delivery"))?.revision).toBe(3);
  });

  it("is done when another process ended it with the same secret while it waited", async () => {
    const setting = await startSetting();
    setting.sightings = [sightingOf({ seenAt: setting.clock.now() })];
    const waiting = rotateSecret(setting.options);
    await setting.clock.advance(300);
    const other = { ...setting.secrets, receivers: async () => [] };
    const ended = await rotateSecret({ ...setting.options, secrets: other });
    const before = await setting.secrets.read("delivery");
    setting.sightings = [];
    await setting.clock.advance(5_000);
    expect(await waiting).toEqual({ ...ended, resumed: false });
    expect(await setting.secrets.read("delivery")).toEqual(before);
  });

  it("leaves a third rotation as it is, when it makes up for a second one (WHK-18)", async () => {
    const setting = await startSetting({ emulator: { unspecified: { secretGeneration: "always" } } });
    const since = setting.clock.now();
    const third = { secret: "what-a-third-rotation-has-begun-with", since, rotatedAtBefore: null, hadSecret: true };
    const { webhooks } = setting.client;
    const update: typeof webhooks.update = (...args) =>
      callOf(
        (async () => {
          const answer = await webhooks.update(...args).withResponse();
          const { revision = 0 } = (await setting.secrets.read("delivery")) ?? {};
          const current = "what-the-second-rotation-ended-with";
          await setting.secrets.write("delivery", { current, previous: [], next: third, rotatedAt: null }, revision);
          return answer;
        })(),
      );
    await rotateSecret({ ...setting.options, client: { webhooks: { ...webhooks, update } } });
    expect(await setting.secrets.read("delivery")).toMatchObject({
      current: serviceSecret(setting),
      next: third,
      rotatedAt: serviceState(setting).rotatedAt,
    });
  });

  it("is in conflict with a rotation that ended with another secret meanwhile, and leaves the service alone", async () => {
    const setting = await startSetting();
    const other = "a-secret-that-another-rotation-made";
    setting.sightings = [sightingOf({ seenAt: setting.clock.now() })];
    const rotation = failureOf(rotateSecret(setting.options));
    await setting.clock.advance(300);
    const { revision = 0 } = (await setting.secrets.read("delivery")) ?? {};
    await setting.secrets.write("delivery", { current: other, previous: [], next: null, rotatedAt: null }, revision);
    const before = serviceSecret(setting);
    setting.sightings = [];
    await setting.clock.advance(5_000);
    expect(await rotation).toMatchObject({ name: "RotationError", code: "rotation_conflict" });
    expect(serviceSecret(setting)).toBe(before);
  });

  it("gives up on a store in which somebody else's write is always first", async () => {
    const setting = await startSetting();
    const secrets = { ...setting.secrets, write: async () => false };
    expect(await failureOf(rotateSecret({ ...setting.options, secrets }))).toMatchObject({ code: "rotation_conflict" });
  });
});

describe("rotateSecret(), more than twice at once", () => {
  it("stores what the service went back to, when an answer was lost and a third rotation came between (WHK-20)", async () => {
    const setting = await startSetting();
    const { clock, secrets, client } = setting;
    const [asked, asksAgain, saving, saves] = [gate(), gate(), gate(), gate()];
    const update: typeof client.webhooks.update = (...args) =>
      callOf(
        (async () => {
          await client.webhooks.update(...args);
          asked.open();
          await asksAgain.opened;
          return client.webhooks.update(...args).withResponse();
        })(),
      );
    const first = rotateSecret({ ...setting.options, client: { webhooks: { ...client.webhooks, update } } });
    await asked.opened;
    await rotateSecret(setting.options);
    await clock.advance(1);
    const write: typeof secrets.write = async (kind, slots, revision) => {
      if (slots.next === null) {
        saving.open();
        await saves.opened;
      }
      return secrets.write(kind, slots, revision);
    };
    const third = rotateSecret({ ...setting.options, secrets: { ...secrets, write }, force: true });
    await saving.opened;
    await clock.advance(1);
    asksAgain.open();
    await first;
    saves.open();
    await third;
    await expectAgreement(setting);
    expect((await secrets.read("delivery"))?.rotatedAt).toBe(serviceState(setting).rotatedAt);
  });

  it.each([3, 4])("agrees with the service, %i at once, answers lost (WHK-18, WHK-20, WHK-21)", async (callers) => {
    const wrong: number[] = [];
    for (let order = 0; order < LOSSY_ORDERS; order++) {
      const seed = FIRST_LOSSY_ORDER + order;
      if (!(await agreesAfterLosses(callers, seed))) wrong.push(seed);
    }
    expect(wrong).toEqual([]);
  });
});

/** Forced rotations whose updates are carried out more than once, as by a client that got no answer. */
async function agreesAfterLosses(callers: number, seed: number): Promise<boolean> {
  const setting = await startSetting();
  const turns = new Turns();
  const random = seededRandom(seed + 1);
  const pass = async (most: number) => {
    for (let left = Math.floor(random() * most); left > 0; left--) await turns.around(async () => {});
  };
  const works = Array.from({ length: callers }, async () => {
    const options = around({ ...setting.options, force: true }, turns.around);
    const { get, update } = options.client.webhooks;
    const repeated: typeof update = async (...args) => {
      for (let losses = 0; losses < 2 && random() < 0.4; losses++) {
        await update(...args);
        await pass(MOST_TURNS);
      }
      return update(...args);
    };
    await pass(MOST_TURNS);
    return rotateSecret({ ...options, client: { webhooks: { get, update: repeated } } });
  });
  await turns.run(works, setting.clock, random);
  const stored = await setting.secrets.read("delivery");
  const { currentSecret, rotatedAt } = serviceState(setting);
  return stored?.current === currentSecret && stored.next === null && stored.rotatedAt === rotatedAt;
}

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Two rotations whose operations take turns; how each of them ended. */
async function twice(
  { unspecified = {}, force = false, empty = false }: Case,
  seed: number,
): Promise<readonly string[]> {
  const setting = await startSetting({ emulator: { unspecified }, empty });
  const turns = new Turns();
  const works = [1, 2].map(() => rotateSecret(around({ ...setting.options, force }, turns.around)));
  const settled = await turns.run(works, setting.clock, seededRandom(seed + 1));
  await expectAgreement(setting);
  const { previousSecret } = serviceState(setting);
  const stored = await setting.secrets.read("delivery");
  const known = stored === null ? [] : liveSecrets(stored, setting.clock.now());
  if (previousSecret !== null) expect(known).toContain(previousSecret);
  return settled.map((each) => (each.status === "fulfilled" ? each.status : each.reason.code));
}
