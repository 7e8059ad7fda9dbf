import { describe, expect, it } from "vitest";
import { checkDrainOptions, type DrainOptions, Drains } from "../../src/inbox/claims.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";

describe("checkDrainOptions()", () => {
  it.each([{}, { budgetMs: 1, limit: 1 }, { budgetMs: 86_400_000, limit: 86_400_000 }])("takes %o", (options) => {
    expect(() => checkDrainOptions(options)).not.toThrow();
  });

  it.each<[object, string]>([
    [{ budgetMs: 0 }, 'Option "budgetMs" must be a whole number from 1 to 86400000 ms; it is 0.'],
    [{ budgetMs: 86_400_001 }, 'Option "budgetMs" must be a whole number from 1 to 86400000 ms; it is 86400001.'],
    [{ limit: 0 }, 'Option "limit" must be a whole number from 1 to 86400000 events; it is 0.'],
    [{ limit: 86_400_001 }, 'Option "limit" must be a whole number from 1 to 86400000 events; it is 86400001.'],
    [{ budget: 5 }, 'drain has no option "budget". Did you mean "budgetMs"?'],
    [{ limits: 5 }, 'drain has no option "limits". Did you mean "limit"?'],
  ])("refuses %o", (options, message) => {
    expect(() => checkDrainOptions(options as DrainOptions)).toThrow(
      expect.objectContaining({ code: "invalid_option", message }),
    );
  });
});

/** No lease is held. */
const NO_LEASES = { lanes: () => [], untilEnded: async () => {} };

describe("Drains", () => {
  const noTimer = () => {
    throw new Error("A timer was set.");
  };

  it("sets no timer for a drain without a budget", async () => {
    const drains = new Drains({ ...createFakeClock(), setTimeout: noTimer }, NO_LEASES, () => {});
    const drained = drains.begin({});
    drains.nothingReady();
    expect(await drained).toEqual({ claimed: 0, complete: true });
  });

  it("cuts off nothing when none is under way", async () => {
    let cuts = 0;
    const drains = new Drains(createFakeClock(), NO_LEASES, () => cuts++);
    drains.endAll();
    expect(cuts).toBe(0);
    const drained = drains.begin({});
    drains.endAll();
    expect(await drained).toEqual({ claimed: 0, complete: false });
    expect(cuts).toBe(1);
  });
});
