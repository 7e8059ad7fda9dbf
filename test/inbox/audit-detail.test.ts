import { expect, it } from "vitest";
import type { Act } from "../../src/inbox/store.ts";
import { auditDetail } from "../../src/inbox/store-rules.ts";

it.each<[Act, string]>([
  [{ kind: "discard_quarantined", quarantine: 7 }, "quarantine 7"],
  [{ kind: "release_gap", lane: 5 }, "lane 5"],
  [{ kind: "replay", event: 3 }, "event 3"],
  [{ kind: "erase", subject: { peer: "+15550100002" } }, "9 rows"],
])("an audit row tells of %o what it was done to, or to how many rows", (act, detail) => {
  expect(auditDetail(act, 9)).toBe(detail);
});
