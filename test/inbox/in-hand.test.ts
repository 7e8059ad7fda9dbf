import { describe, expect, it } from "vitest";
import { InHand } from "../../src/inbox/leases.ts";
import type { Lease } from "../../src/inbox/store.ts";
import { rounds } from "./bench.ts";

const lease = (lane: number, epoch: number) => ({ lane, epoch }) as Lease;

describe("InHand", () => {
  it("keeps a claim made anew when the older one is let go, and tells them apart", async () => {
    const inHand = new InHand();
    const [older, newer] = [lease(1, 1), lease(1, 2)];
    inHand.take(older);
    let gone = false;
    void inHand.untilLetGo().then(() => {
      gone = true;
    });
    inHand.take(newer);
    expect(inHand.letGo(older)).toBe(false);
    await rounds(1);
    expect(gone).toBe(true);
    expect(inHand.leaseOf(1)).toBe(newer);
    expect(inHand.letGo(newer)).toBe(true);
    expect([inHand.isEmpty, inHand.lanes()]).toEqual([true, []]);
    expect(inHand.letGo(newer)).toBe(false);
    await inHand.untilLetGo();
  });

  it("waits for all that is in hand, and for nothing taken later", async () => {
    const inHand = new InHand();
    const leases = [lease(1, 1), lease(2, 1)] as const;
    for (const one of leases) inHand.take(one);
    let gone = false;
    void inHand.untilLetGo().then(() => {
      gone = true;
    });
    inHand.letGo(leases[0]);
    inHand.take(lease(3, 1));
    await rounds(1);
    expect(gone).toBe(false);
    inHand.letGo(leases[1]);
    await rounds(1);
    expect([gone, inHand.isEmpty]).toEqual([true, false]);
  });
});
