import { describe, expect, it } from "vitest";
import { noInbox, rulesFor } from "../../src/inbox/store-rules.ts";
import { RULES } from "./bench.ts";

const recorded = { ...RULES, toleranceMs: 7 };

describe("rulesFor()", () => {
  it("takes what a receiver says, at the first open and at each later one of its name", () => {
    expect(rulesFor(RULES, null, "memory")).toEqual(RULES);
    expect(rulesFor(RULES, recorded, "memory")).toEqual(RULES);
  });

  it("refuses a receiver of another name", () => {
    expect(() => rulesFor({ ...RULES, name: "other" }, recorded, "sqlite:inbox.db")).toThrow(
      expect.objectContaining({
        code: "wrong_receiver_name",
        message: expect.stringContaining("sqlite:inbox.db belongs to a receiver of another name"),
      }),
    );
  });

  it("takes what was recorded for everybody else, who makes no inbox", () => {
    expect(rulesFor("recorded", recorded, "memory")).toBe(recorded);
    expect(() => rulesFor("recorded", null, "sqlite:inbox.db")).toThrow(noInbox("sqlite:inbox.db"));
  });
});

describe("noInbox()", () => {
  it("names the place, and says who makes one", () => {
    expect(noInbox("sqlite:inbox.db")).toMatchObject({
      code: "no_inbox",
      message: expect.stringMatching(/^There is no inbox at sqlite:inbox\.db: .* A receiver makes one/),
    });
  });
});
