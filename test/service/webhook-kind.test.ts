import { describe, expect, it } from "vitest";
import { isWebhookKind, WEBHOOK_KIND_RULE } from "../../src/service/webhook-kind.ts";

describe("isWebhookKind()", () => {
  it("knows the two kinds, which its rule names (DLV-1)", () => {
    expect(["inbound", "delivery", "outbound", "", null, undefined].map(isWebhookKind)).toEqual([
      ...[true, true, false, false, false, false],
    ]);
    expect(WEBHOOK_KIND_RULE).toBe('must be "inbound" or "delivery"');
  });
});
