import { describe, expect, it } from "vitest";
import type { EffectFunction } from "../../src/inbox/store.ts";
import { declaredEffects, refuseUnrun, refuseUnwaited, refuseWithoutConnection } from "../../src/inbox/store-rules.ts";

/** A query builder as Drizzle and Knex make them: it runs when it is awaited. */
function builder() {
  const seen = { runs: 0 };
  // biome-ignore lint/suspicious/noThenProperty: the kind under test
  return { seen, query: { then: () => void seen.runs++ } };
}

class Repository {
  async save(_tx: unknown): Promise<void> {}
}

/** What compilers make of an async function for old targets: nothing of it can be seen before it runs. */
const transpiled = (_tx: unknown) => Promise.resolve();

describe("refuseUnwaited()", () => {
  it.each<[string, EffectFunction<never>]>([
    ["an async function", async function save(_tx: unknown) {}],
    ["an async arrow function", async (_tx: unknown) => {}],
    ["an async method", new Repository().save],
    ["a bound async function", new Repository().save.bind(new Repository())],
    ["a proxy of one", new Proxy(async (_tx: unknown) => {}, {})],
  ])("refuses %s only where the transaction does not wait", (_what, effect) => {
    expect(() => refuseUnwaited(effect, "never")).toThrow(expect.objectContaining({ code: "async_effect" }));
    expect(() => refuseUnwaited(effect, "during")).not.toThrow();
  });

  it.each<[string, EffectFunction<never>]>([
    ["a generator", function* (_tx: unknown) {}],
    ["an async generator", async function* (_tx: unknown) {}],
  ])("refuses %s everywhere: nobody runs it", (_what, effect) => {
    for (const waits of ["never", "during"] as const)
      expect(() => refuseUnwaited(effect, waits)).toThrow(/generator, which would not run/);
  });

  it("takes plain functions, also those that turn out to return a promise", () => {
    for (const effect of [(_tx: unknown) => {}, function named() {}, transpiled])
      expect(() => refuseUnwaited(effect, "never")).not.toThrow();
  });
});

describe("refuseUnrun()", () => {
  it("refuses a promise where the transaction does not wait, and keeps its rejection from the process", async () => {
    expect(() => refuseUnrun(Promise.reject(new Error("later")), "never")).toThrow(/returned a promise.*synchronously/);
    await new Promise(setImmediate);
  });

  it("refuses a query that nobody ran, and does not run it", async () => {
    const { seen, query } = builder();
    expect(() => refuseUnrun(query, "never")).toThrow(/query that was not run.*\.run\(\)/);
    await new Promise(setImmediate);
    expect(seen.runs).toBe(0);
  });

  it.each(["never", "during"] as const)("refuses an array of queries or promises (waits: %s)", async (waits) => {
    const { seen, query } = builder();
    expect(() => refuseUnrun(["done", query], waits)).toThrow(/array of queries/);
    expect(() => refuseUnrun([Promise.reject(new Error("later"))], waits)).toThrow(/array of queries/);
    await new Promise(setImmediate);
    expect(seen.runs).toBe(0);
  });

  it("takes results: nothing, counts, rows and arrays of them", () => {
    for (const result of [undefined, null, 1, "text", { changes: 1 }, [{ id: 1 }], [], () => {}])
      for (const waits of ["never", "during"] as const) expect(() => refuseUnrun(result, waits)).not.toThrow();
  });
});

describe("refuseWithoutConnection()", () => {
  const orm = { insert: () => {} };

  it.each<[string, EffectFunction<never>]>([
    ["an arrow function", () => orm.insert()],
    [
      "a function",
      function save() {
        orm.insert();
      },
    ],
    ["an async arrow function", async () => orm.insert()],
    ["a method", { save() {} }.save],
    ["one whose body assigns", () => Object.assign(orm, { insert: (a = 1) => a })],
  ])("refuses %s without a parameter, and says what else is allowed", (_what, effect) => {
    const refused = expect.objectContaining({
      code: "invalid_argument",
      message: expect.stringMatching(/\(tx\).* Or so\./),
    });
    expect(() => refuseWithoutConnection(effect, " Or so.")).toThrow(refused);
  });

  it.each<[string, EffectFunction<never>]>([
    ["a parameter", (_tx: unknown) => {}],
    ["a pattern", ({ query: _ }: { query: unknown }) => {}],
    ["a rest parameter", (..._all: unknown[]) => {}],
    ["a default", (_tx: unknown = null) => {}],
    [
      "arguments",
      function () {
        // biome-ignore lint/complexity/noArguments: what old wrappers do
        return arguments.length;
      },
    ],
    ["what was bound", ((_order: unknown, _tx: unknown) => {}).bind(null, 1)],
    ["a wrapper of the runtime's", ((..._all: unknown[]) => {}).bind(null)],
  ])("takes a function with %s", (_what, effect) => {
    expect(() => refuseWithoutConnection(effect)).not.toThrow();
  });
});

describe("declaredEffects()", () => {
  it.each([
    [{ text: "a", values: [1] }, [{ text: "a", values: [1] }]],
    [{ text: "a" }, [{ text: "a", values: [] }]],
    [{ sql: "a", params: [1], typings: [] }, [{ text: "a", values: [1] }]],
    [{ sql: "a", parameters: [1], query: {} }, [{ text: "a", values: [1] }]],
    [{ sql: "a", bindings: [1] }, [{ text: "a", values: [1] }]],
    [
      [{ text: "a" }, { sql: "b", params: [] }],
      [
        { text: "a", values: [] },
        { text: "b", values: [] },
      ],
    ],
    [[], []],
  ])("reads %j", (given, expected) => {
    expect(declaredEffects(given as never)).toEqual(expected);
  });

  it.each([
    [null],
    ["insert into x values (1)"],
    [{}],
    [{ text: 1 }],
    [{ text: "a", values: "b" }],
    [[{ text: "a" }, null]],
  ])("refuses %j, with what to pass", (given) => {
    expect(() => declaredEffects(given as never)).toThrow(/must be a function of the connection, a statement/);
  });
});
