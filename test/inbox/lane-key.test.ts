import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  entryNameOf,
  entryNameOfScope,
  identityOf,
  type LaneKey,
  laneKeyText,
  publicId,
  scopeOfEntry,
  tenantOfScope,
} from "../../src/inbox/lane-key.ts";

const entries = fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/);
/** Hostile on purpose: colons, other entries' names, the words of scopes. */
const texts = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", ":", "a:b", "source:a", "billing", "billing:x", "any", "inbound", "\0", "é"),
);
const clientOf = ([entry, tenant]: readonly [string, string | null]) =>
  tenant === null ? entry : `${entry}:${tenant}`;
const named = fc.tuple(entries, fc.option(texts));

describe("the names of entries", () => {
  it("follow a lane's tag first, so that no client of the messaging service is taken for a source", () => {
    fc.assert(
      fc.property(texts, texts, fc.constantFrom("outbound", "inbound", "unlaned"), (apiClientId, messageId, tag) => {
        expect(entryNameOf({ apiClientId, messageId, tag } as LaneKey)).toBe(null);
      }),
    );
  });

  it("come back from the text that stands for a client, whatever the tenant is called", () => {
    fc.assert(
      fc.property(named, texts, (name, messageId) => {
        const apiClientId = clientOf(name);
        expect(entryNameOf({ apiClientId, messageId, tag: "single" })).toBe(name[0]);
        expect(entryNameOfScope(scopeOfEntry(apiClientId))).toBe(name[0]);
        expect(tenantOfScope(scopeOfEntry(apiClientId))).toBe(name[1] ?? undefined);
      }),
    );
  });

  it("keep the identities of sources and tenants apart", () => {
    fc.assert(
      fc.property(named, named, texts, (one, other, messageId) => {
        const [a, b] = [one, other].map((name) =>
          identityOf({ apiClientId: clientOf(name), tag: "single", messageId }, 0, "type", null),
        );
        expect(a === b).toBe(one[0] === other[0] && one[1] === other[1]);
      }),
    );
  });

  it("are not those of the messaging service's scopes", () => {
    for (const scope of ["any", "inbound", "delivery", "inbound,delivery", `any:${"0".repeat(32)}`])
      expect(entryNameOfScope(scope)).toBe(null);
  });
});

describe("keys that are equal in all parts but one", () => {
  const lane: LaneKey = { apiClientId: "ab", tag: "position", messageId: "c" };
  const lanes: readonly (readonly [string, Partial<LaneKey>])[] = [
    ["the client", { apiClientId: "other" }],
    ["the kind of lane", { tag: "arrival" }],
    ["what the lane is named", { messageId: "other" }],
    ["where one part ends", { apiClientId: "a", messageId: "bc" }],
  ];

  it.each(lanes)("are two lanes: %s", (_part, change) => {
    expect(laneKeyText({ ...lane, ...change })).not.toBe(laneKeyText(lane));
  });

  type Parts = readonly [lane: LaneKey, sequence: number, eventType: string, own: string | null];
  const shared: Parts = [lane, 1, "type", "evt_1"];
  const alone: Parts = [{ ...lane, tag: "single" }, 0, "type", null];
  it.each<readonly [string, Parts, Parts]>([
    ["the entry of an event in a lane", shared, [{ ...lane, apiClientId: "other" }, 1, "type", "evt_1"]],
    ["its tenant", shared, [{ ...lane, apiClientId: "ab:tenant" }, 1, "type", "evt_1"]],
    ["its id", shared, [lane, 1, "type", "evt_2"]],
    ["the entry of an event by itself", alone, [{ ...alone[0], apiClientId: "other" }, 0, "type", null]],
    ["its id alone", alone, [{ ...alone[0], messageId: "other" }, 0, "type", null]],
    [
      "the messaging service, and a source of its client's name",
      alone,
      [{ ...alone[0], tag: "inbound" }, 0, "type", null],
    ],
  ])("are two identities: %s", (_part, one, other) => {
    expect(identityOf(...other)).not.toBe(identityOf(...one));
  });
});

describe("publicId()", () => {
  it("hides what follows from a body", () => {
    const single = (messageId: string) => publicId({ tag: "single", apiClientId: "code", messageId });
    expect(single("a".repeat(64))).toBe(null);
    expect(single(`${"a".repeat(64)}:72d3162e`)).toBe(null);
    expect(single("evt_1")).toBe("evt_1");
    expect(single("a".repeat(63))).toBe("a".repeat(63));
  });
});
