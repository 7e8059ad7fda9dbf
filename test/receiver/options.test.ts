/** The table of mistakes that `createReceiver` finds. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createReceiver, type ReceiverOptions, SetupError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { DAY, HOUR, MINUTE, recordedLog, SECRET } from "./bench.ts";

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

/** Just outside the bounds, and what is no whole number at all. */
const bounds: readonly [string, number, number][] = [
  ["concurrency", 1, 1_000],
  ["handlerTimeoutMs", 10, 3_600_000],
  ["leaseMs", 1_000, 3_600_000],
  ["maxAttempts", 1, 100],
  ["maxBodyBytes", 1_024, 1_048_576],
  ["firstSequence", 0, 10_000],
];

describe("createReceiver(): numbers", () => {
  it.each(bounds)("takes %s from %d to %d", (name, min, max) => {
    expect(() => make({ [name]: min })).not.toThrow();
    expect(() => make({ [name]: max })).not.toThrow();
    for (const value of [min - 1, max + 1, min + 0.5, Number.NaN, Number.POSITIVE_INFINITY, "8", null, -1]) {
      const error = mistake({ [name]: value });
      expect(error).toMatchObject({ code: "invalid_option", fields: { option: name } });
      expect(error.message).toContain(`from ${min} to ${max}`);
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
    expect(mistake({ toleranceMs: { pastMs: 1 } }).message).toContain('Did you mean "past"?');
  });

  it.each(["handledBodiesMs", "otherBodiesMs", "identitiesMs", "deadMs"])("bounds retention.%s", (name) => {
    for (const value of [-1, 3_650 * DAY + 1, 1.5, "7 days"]) {
      expect(mistake({ retention: { [name]: value } }).fields).toEqual({ option: `retention.${name}` });
    }
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
    expect(error.message).toContain(`has no option "${misspelt}". Did you mean "${likely}"?`);
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
    expect(mistake({ store: memoryStore({ volatile: true }), ack: "stored" }).message).toMatch(/durable.*sqliteStore/);
    expect(() => make({ store: memoryStore({ volatile: true }) })).not.toThrow();
  });
});

describe("createReceiver(): secrets", () => {
  const short = "only-15-bytes-x";
  const previous = { secret: "the-previous-secret-of-32-bytes-" };

  it.each([
    ["missing", undefined, "secrets"],
    ["null", null, "secrets"],
    ["empty", "", "secrets"],
    ["blank", " ".repeat(20), "secrets"],
    ["short", short, "secrets"],
    ["a number", 1234567890123456, "secrets"],
    ["an empty list", { current: [] }, "secrets.current"],
    ["without current", {}, "secrets.current"],
    ["a short previous", { current: SECRET, previous: { secret: short, validUntil: NOW + DAY } }, "secrets.previous"],
    ["a short next", { current: SECRET, next: short }, "secrets.next"],
    ["a previous without an end", { current: SECRET, previous }, "secrets.previous"],
    [
      "a previous for 8 days and 1 ms",
      { current: SECRET, previous: { ...previous, validUntil: NOW + 8 * DAY + 1 } },
      "secrets.previous.validUntil",
    ],
    ["unsigned as a whole", "dangerouslyUnsigned", "secrets"],
    ["one kind alone", { inbound: SECRET }, "secrets.delivery"],
    [
      "an unscoped secret among clients",
      { current: [{ secret: SECRET, apiClientId: "a" }, { secret: `${SECRET}b`, apiClientId: "b" }, `${SECRET}c`] },
      "secrets.current[2]",
    ],
    ["nine secrets", { current: Array.from({ length: 9 }, (_, index) => `${SECRET}${index}`) }, "secrets"],
  ])("refuses %s, and names the option (RCV-9)", (_, secrets, option) => {
    const error = mistake({ secrets });
    expect(error.message).toContain(`"${option}`);
    expect(error.message).not.toContain(short);
    expect(error.message).not.toContain(SECRET);
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
