/** A secret store's reads, guarded against copies that lag behind. */
import { describe, expect, it } from "vitest";
import { latestReads } from "../../src/signature/keyring-source.ts";
import type { SecretStore, StoredSecrets } from "../../src/signature/secret-store.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { SECRET } from "./openssl.ts";

const at = (revision: number): StoredSecrets => ({
  ...{ current: SECRET, previous: [], next: null, rotatedAt: null, revision },
});

function setUp() {
  const clock = createFakeClock();
  const answers: (StoredSecrets | null | undefined)[] = [];
  const read = async () => answers.shift() as StoredSecrets | null;
  const reads = latestReads({ read, encoding: "utf8" } as unknown as SecretStore, clock);
  const next = (answer: StoredSecrets | null | undefined) => {
    answers.push(answer);
    return reads.read("inbound");
  };
  return { clock, next, reads };
}

describe("latestReads()", () => {
  it("takes the same revision again, and a later one", async () => {
    const { next } = setUp();
    for (const revision of [2, 2, 3, 3]) expect(await next(at(revision))).toEqual(at(revision));
  });

  it("takes nothing for null, also from a store that gives undefined, and remembers what was before it", async () => {
    const { next } = setUp();
    expect(await next(at(2))).toEqual(at(2));
    expect(await next(null)).toBeNull();
    expect(await next(undefined)).toBeNull();
    await expect(next(at(1))).rejects.toMatchObject({
      code: "keyring_unavailable",
      message:
        "It gave an older revision of the inbound secrets (1) than before (2): the store has to read what was written last. If it was restored, the older one counts after a minute.",
    });
  });

  it("takes an older revision a minute after the newer one was last read", async () => {
    const { clock, next } = setUp();
    await next(at(2));
    await clock.advance(59_999);
    await expect(next(at(1))).rejects.toThrow(/older revision/);
    await clock.advance(1);
    expect(await next(at(1))).toEqual(at(1));
  });

  it("tells the kinds apart", async () => {
    const { next, reads } = setUp();
    await next(at(2));
    expect(reads.encoding).toBe("utf8");
    const other = latestReads(
      { read: async () => at(1), encoding: "hex" } as unknown as SecretStore,
      createFakeClock(),
    );
    expect(await other.read("delivery")).toEqual(at(1));
  });
});
