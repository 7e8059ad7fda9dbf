/** The short form of `npm run prove -- sidecar`. */
import { describe, expect, it } from "vitest";
import { pythonIsMissing } from "./python-application.ts";
import { feedSidecar, problemsOf } from "./sidecar.ts";

describe("oncehook listen --forward-to", () => {
  it("feeds an application in Python every event once, in order, though it was killed meanwhile (RCV-6, RCV-7)", async (context) => {
    const missing = pythonIsMissing();
    if (missing !== null) context.skip(missing);
    // Fewer messages fail than make the worker pause.
    const fed = await feedSidecar({ messages: 60, disturbed: 12, killedAtWork: false, limitMs: 25_000 });
    expect(problemsOf(fed)).toEqual([]);
    expect([fed.events, fed.deliveries > fed.events]).toEqual([180, true]);
  });
});
