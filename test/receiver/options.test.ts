/** The table of mistakes that `createReceiver` finds, what it says of them, and what it takes when an option is left out. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createReceiver, openInbox, type ReceiverOptions, SetupError } from "../../src/index.ts";
import { retentionOption } from "../../src/receiver/options.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { DAY, HOUR, MINUTE, memoryBench, recordedLog, SECRET, sqliteBench } from "./bench.ts";
import { inbound } from "./events.ts";

const NOW = createFakeClock().now();

function make(options: Record<string, unknown>) {
  const { logger } = recordedLog();
  const base = { secrets: SECRET, store: sqliteStore("never-opened.db"), clock: createFakeClock(), logger };
  return createReceiver({ ...base, ...options } as ReceiverOptions);
}

/** The error that these options make. */
function mistake(options: Record<string, unknown>): SetupError {
  try {
    make(options);
  } catch (error) {
    if (error instanceof SetupError) return error;
    throw error;
  }
  throw new Error("No mistake was found.");
}

const bounds: readonly [string, number, number, string][] = [
  ["concurrency", 1, 1_000, "handlers"],
  ["handlerTimeoutMs", 10, 3_600_000, "ms"],
  ["leaseMs", 1_000, 3_600_000, "ms"],
  ["maxAttempts", 1, 100, "attempts"],
  ["maxBodyBytes", 1_024, 33_554_432, "bytes"],
  ["firstSequence", 0, 10_000, '(or "any")'],
];

describe("createReceiver(): numbers", () => {
  it.each(bounds)("takes %s from %d to %d %s", (name, min, max, unit) => {
    expect(() => make({ [name]: min })).not.toThrow();
    expect(() => make({ [name]: max })).not.toThrow();
    for (const value of [min - 1, max + 1, min + 0.5, Number.NaN, Number.POSITIVE_INFINITY, "8", null, -1]) {
      const error = mistake({ [name]: value });
      expect(error).toMatchObject({ code: "invalid_option", fields: { option: name } });
      expect(error.message).toContain(`must be a whole number from ${min} to ${max} ${unit}; it is `);
    }
  });

  it("bounds a rate, and names what it may be per", () => {
    const perSecond = 10;
    for (const rate of [{ perSecond: 0.01 }, { perSecond: 10_000, per: "source" }, { perSecond, per: () => "key" }])
      expect(() => make({ rate })).not.toThrow();
    for (const value of [0, -1, 10_001, Number.NaN, "10", undefined])
      expect(mistake({ rate: { perSecond: value } }).fields).toEqual({ option: "rate.perSecond" });
    const unknown = mistake({ rate: { perSecond, per: "tenant" } });
    expect(unknown.fields).toEqual({ option: "rate.per" });
    expect(unknown.message).toContain('must be "inbox", "source", or a function that returns the key of an event');
    expect(mistake({ rate: { perSeconds: 1 } }).message).toContain('Did you mean "perSecond"?');
    expect(mistake({ rate: 10 }).message).toContain("rate takes an options object");
  });

  it("bounds a concurrency of each key, and names what it may be per", () => {
    for (const concurrency of [
      { each: 1, per: "source" },
      { total: 1_000, each: 1_000, per: () => "key" },
    ])
      expect(() => make({ concurrency })).not.toThrow();
    for (const value of [0, 1_001, 1.5, undefined])
      expect(mistake({ concurrency: { each: value, per: "source" } }).fields).toEqual({ option: "concurrency.each" });
    expect(mistake({ concurrency: { each: 1, total: 0, per: "source" } }).fields).toEqual({
      option: "concurrency.total",
    });
    for (const per of ["inbox", undefined, 1])
      expect(mistake({ concurrency: { each: 1, per } }).fields).toEqual({ option: "concurrency.per" });
  });

  it.each(["past", "future"])("refuses 0, negative, NaN and Infinity as toleranceMs.%s: never off (RCV-2)", (way) => {
    for (const value of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, DAY + 1, 0.5]) {
      const error = mistake({ toleranceMs: { [way]: value } });
      expect(error.fields).toEqual({ option: `toleranceMs.${way}` });
    }
    expect(() => make({ toleranceMs: { [way]: DAY } })).not.toThrow();
  });

  it("refuses one number as toleranceMs, and a misspelt way", () => {
    expect(mistake({ toleranceMs: 300_000 }).message).toContain("takes an options object");
    expect(mistake({ toleranceMs: { pastMs: 1 } }).message).toBe(
      'toleranceMs has no option "pastMs". Did you mean "past"?',
    );
  });

  it.each(["handledBodiesMs", "otherBodiesMs", "identitiesMs", "deadMs"])("bounds retention.%s", (name) => {
    for (const value of [-1, 3_650 * DAY + 1, 1.5, "7 days"]) {
      const error = mistake({ retention: { [name]: value } });
      expect(error.fields).toEqual({ option: `retention.${name}` });
      expect(error.message).toContain("must be a whole number from 0 to 315360000000 ms; it is ");
    }
  });

  it("names the likely retention for a misspelt one, which would otherwise keep what was to go", () => {
    const { message } = mistake({ retention: { handledBodyMs: 0 } });
    expect(message).toBe('retention has no option "handledBodyMs". Did you mean "handledBodiesMs"?');
  });

  it.each(["identitiesMs", "deadMs"])("refuses retention.%s below tolerance and a day (RCV-6)", (name) => {
    const shortest = 90 * MINUTE + 5 * MINUTE + DAY;
    expect(() => make({ retention: { [name]: shortest } })).not.toThrow();
    expect(mistake({ retention: { [name]: shortest - 1 } }).message).toContain(`at least ${shortest} ms`);
    const wide = { past: 2 * HOUR, future: HOUR };
    expect(() => make({ toleranceMs: wide, retention: { [name]: 27 * HOUR } })).not.toThrow();
    expect(() => make({ toleranceMs: wide, retention: { [name]: 27 * HOUR - 1 } })).toThrow(SetupError);
  });

  it("keeps bodies as short as wanted", () => {
    expect(() => make({ retention: { handledBodiesMs: 0, otherBodiesMs: 0 } })).not.toThrow();
  });
});

describe("createReceiver(): names and choices", () => {
  it.each([
    ["handlerTimeout", "handlerTimeoutMs"],
    ["concurency", "concurrency"],
    ["secret", "secrets"],
    ["maxBodyByte", "maxBodyBytes"],
    ["Store", "store"],
  ])("names the likely option for %s: %s", (misspelt, likely) => {
    const error = mistake({ [misspelt]: 1 });
    expect(error.message).toBe(`createReceiver has no option "${misspelt}". Did you mean "${likely}"?`);
    expect(error.fields).toEqual({ option: misspelt });
  });

  it("lists the known options when none is close", () => {
    expect(mistake({ xyzzyplughfrotz: 1 }).message).toMatch(/Known: secrets, store, name/);
  });

  it.each([
    ["ack", "immediately"],
    ["onDead", "stop"],
    ["quarantine", "drop"],
    ["migrate", "never"],
    ["gapWait", "long"],
    ["timestampFormat", "seconds"],
    ["signatureEncoding", "hexadecimal"],
    ["name", ""],
    ["name", "n".repeat(65)],
    ["name", 5],
    ["name", ["inbox"]],
    ["logEvents", "yes"],
    ["logger", console.log],
    ["logger", null],
    ["logger", { info() {}, warn() {}, error() {} }],
    ["store", undefined],
    ["store", "inbox.db"],
    ["store", null],
  ])("refuses %s: %j", (option, value) => {
    expect(mistake({ [option]: value })).toMatchObject({ code: "invalid_option", fields: { option } });
  });

  it.each([undefined, null, [], "options"])("refuses %j in the place of the options", (options) => {
    expect(() => createReceiver(options as never)).toThrow(SetupError);
  });

  it.each([undefined, null, 7])(
    "refuses retention and toleranceMs that are no objects, save undefined: %j",
    (value) => {
      const makeBoth = () => [make({ retention: value }), make({ toleranceMs: value })];
      if (value === undefined) expect(makeBoth).not.toThrow();
      else expect(makeBoth).toThrow(SetupError);
    },
  );

  it("takes every choice that the types show", () => {
    const choices = {
      ack: ["stored", "handled"],
      onDead: ["continue", "block"],
      quarantine: ["store", "reject"],
      migrate: ["auto", "check"],
      gapWait: ["balanced", "strict", "eager", () => 0],
      timestampFormat: ["auto", "s", "ms", () => 0],
      signatureEncoding: ["auto", "hex", "base64", "base64url"],
      firstSequence: [0, 1, "any"],
      name: ["n".repeat(64)],
    };
    for (const [option, values] of Object.entries(choices)) {
      for (const value of values) expect(() => make({ [option]: value })).not.toThrow();
    }
  });

  it('refuses ack: "stored" with a store that is not durable (RCV-3)', () => {
    const error = mistake({ store: memoryStore({ volatile: true }), ack: "stored" });
    expect(error).toMatchObject({ code: "invalid_option", message: expect.stringMatching(/durable.*sqliteStore/) });
    expect(() => make({ store: memoryStore({ volatile: true }) })).not.toThrow();
  });
});

describe("createReceiver(): secrets", () => {
  const short = "only-15-bytes-x";
  const previous = { secret: "the-previous-secret-of-32-bytes-" };

  // What makes a keyring wrong: test/sources/messaging/keyring.test.ts and setup-errors.test.ts.
  it.each([
    [undefined, 'Option "secrets" is missing: pass the webhook signing secret.'],
    [short, 'Option "secrets" is 15 bytes long'],
    [{ current: SECRET, previous: { ...previous, validUntil: NOW + 8 * DAY + 1 } }, '"secrets.previous.validUntil"'],
    [{ current: [SECRET, short] }, 'Option "secrets.current[1]" is 15 bytes long'],
  ])("refuses %# at once, names the option, and shows no secret (RCV-9)", (secrets, says) => {
    const { message } = mistake({ secrets });
    expect(message).toContain(says);
    expect(message).not.toContain(short);
    expect(message).not.toContain(SECRET);
  });

  it("takes a previous secret for 8 days, and one unsigned kind with a warning on every start (RCV-8)", () => {
    expect(() =>
      make({ secrets: { current: SECRET, previous: { ...previous, validUntil: NOW + 8 * DAY } } }),
    ).not.toThrow();
    for (let start = 0; start < 2; start++) {
      const { log, logger } = recordedLog();
      make({ secrets: { inbound: "dangerouslyUnsigned", delivery: SECRET }, logger });
      expect(log).toMatchObject([{ level: "warn", fields: { code: "keyring_warning" } }]);
      expect(log[0]?.message).toContain('"secrets.inbound" is "dangerouslyUnsigned"');
    }
  });

  it("does not read the environment", () => {
    vi.stubEnv("WEBHOOK_SECRET", SECRET);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(mistake({ secrets: undefined }).code).toBe("invalid_secret");
  });
});

describe("createReceiver(): what is left out", () => {
  it("keeps bodies for 7 and 30 days, identities for 30 and dead letters for 90, as is documented", () => {
    const days = { handledBodiesMs: 7 * DAY, otherBodiesMs: 30 * DAY, identitiesMs: 30 * DAY, deadMs: 90 * DAY };
    expect(retentionOption(undefined, HOUR)).toEqual(days);
    expect(retentionOption({ identitiesMs: 2 * DAY }, HOUR)).toEqual({ ...days, identitiesMs: 2 * DAY });
  });

  it("takes a body of 256 KiB and no more", async () => {
    const { deliver } = memoryBench();
    const limits: number[] = [];
    const readBody = ({ maxBytes }: { readonly maxBytes: number }) => {
      limits.push(maxBytes);
      return { ok: false, reason: "truncated" } as const;
    };
    const status = async (length: string) =>
      (await deliver(inbound(), { readBody, headers: { "content-length": length } })).status;
    expect([await status("262144"), await status("262145")]).toEqual([400, 413]);
    expect(limits).toEqual([262_144]);
  });

  it('names the inbox "default", and the receiver by its name and its inbox', async () => {
    const { receiver, deliver, file, clock } = sqliteBench();
    await deliver(inbound());
    await using inbox = await openInbox({ store: sqliteStore(file), clock, logger: recordedLog().logger });
    expect(inbox.rules).toMatchObject({ name: "default" });
    expect(receiver.key).toBe(`default@sqlite:${file}`);
    expect(sqliteBench({ name: "orders" }, file).receiver.key).toBe(`orders@sqlite:${file}`);
  });

  it("shows the clock and the logger that a receiver was made with", () => {
    const { receiver, clock, log } = memoryBench();
    expect(receiver.clock).toBe(clock);
    receiver.logger.info({ mine: 1 }, "Seen.");
    expect(log).toEqual([{ level: "info", fields: { mine: 1 }, message: "Seen." }]);
  });
});
