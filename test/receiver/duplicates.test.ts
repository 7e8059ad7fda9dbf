import { describe, expect, it } from "vitest";
import { CommittedIdentities } from "../../src/receiver/engine.ts";

const DIGEST = new Uint8Array(32).fill(1);
const OTHER = new Uint8Array(32).fill(2);

function filled(count: number): CommittedIdentities {
  const identities = new CommittedIdentities();
  for (let event = 0; event < count; event++)
    identities.remember(`key ${event}`, { event, lane: event, digest: DIGEST });
  return identities;
}

describe("CommittedIdentities", () => {
  it("finds what was committed (RCV-6)", () => {
    expect(filled(3).find("key 1", DIGEST)).toEqual({ event: 1, lane: 1, digest: DIGEST });
  });

  it("leaves another body under a known identity to the store", () => {
    expect(filled(3).find("key 1", OTHER)).toBeNull();
  });

  it("finds the last 5,000 whatever came before", () => {
    const identities = filled(17_000);
    for (let event = 12_000; event < 17_000; event++)
      expect(identities.find(`key ${event}`, DIGEST)?.event).toBe(event);
  });

  it.each([10_001, 50_000])("holds no more than 10,000 of %d", (count) => {
    const identities = filled(count);
    const found = Array.from({ length: count }, (_, event) => identities.find(`key ${event}`, DIGEST));
    expect(found.filter((known) => known !== null).length).toBeLessThanOrEqual(10_000);
  });

  it("forgets all of them once an operator acted", () => {
    const identities = filled(7_000);
    identities.clear();
    expect(identities.find("key 100", DIGEST)).toBeNull();
    expect(identities.find("key 6999", DIGEST)).toBeNull();
  });
});
