/** How long an inbox keeps what, when nothing else is said. */
import { describe, expect, it } from "vitest";
import { retentionOption } from "../../src/receiver/options.ts";
import { DAY, HOUR } from "./bench.ts";

describe("retentionOption()", () => {
  it("keeps bodies for 7 and 30 days, identities for 30 and dead letters for 90, as is documented", () => {
    const days = { handledBodiesMs: 7 * DAY, otherBodiesMs: 30 * DAY, identitiesMs: 30 * DAY, deadMs: 90 * DAY };
    expect(retentionOption(undefined, HOUR)).toEqual(days);
    expect(retentionOption({ identitiesMs: 2 * DAY }, HOUR)).toEqual({ ...days, identitiesMs: 2 * DAY });
  });

  it("names the likely option for a misspelt one, which would otherwise keep what was to go", () => {
    const misspelt = { handledBodyMs: 0 };
    expect(() => retentionOption(misspelt as object, HOUR)).toThrow(
      'retention has no option "handledBodyMs". Did you mean "handledBodiesMs"?',
    );
  });

  it("says the bounds in milliseconds", () => {
    expect(() => retentionOption({ deadMs: -1 }, HOUR)).toThrow(
      'Option "retention.deadMs" must be a whole number from 0 to 315360000000 ms; it is -1.',
    );
  });
});
