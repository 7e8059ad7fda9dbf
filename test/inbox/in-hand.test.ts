import { describe, expect, it } from "vitest";
import { Leases } from "../../src/inbox/claims.ts";
import type { Lease } from "../../src/inbox/store.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { rounds } from "./bench.ts";

const noLeases = () => {
  const options = { concurrency: 4, leaseMs: 30_000, clock: createFakeClock(), logger: silentLogger };
  return new Leases({ extend: async () => [] }, options, () => {});
};
const lease = (lane: number, token: number) => ({ lane, token }) as Lease;

describe("Leases", () => {
  it("keeps a claim made anew when the older one is let go, and tells them apart", async () => {
    const leases = noLeases();
    const [older, newer] = [lease(1, 1), lease(1, 2)];
    leases.add(older, null);
    let gone = false;
    void leases.untilEnded().then(() => {
      gone = true;
    });
    leases.add(newer, null);
    expect(leases.end(older).lane).toBe(false);
    await rounds(1);
    expect(gone).toBe(true);
    expect(leases.of(1)).toBe(newer);
    expect(leases.end(newer).lane).toBe(true);
    expect([leases.isEmpty, leases.lanes()]).toEqual([true, []]);
    expect(leases.end(newer).lane).toBe(false);
    await leases.untilEnded();
  });

  it("waits for all that is in hand, and for nothing taken later", async () => {
    const leases = noLeases();
    const [first, second] = [lease(1, 1), lease(2, 1)];
    for (const one of [first, second]) leases.add(one, null);
    let gone = false;
    void leases.untilEnded().then(() => {
      gone = true;
    });
    leases.end(first);
    leases.add(lease(3, 1), null);
    await rounds(1);
    expect(gone).toBe(false);
    leases.end(second);
    await rounds(1);
    expect([gone, leases.isEmpty]).toEqual([true, false]);
  });
});
