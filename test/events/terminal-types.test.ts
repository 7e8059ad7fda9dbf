import { expect, it } from "vitest";
import { isTerminal } from "../../src/events/parse.ts";
import { KNOWN_EVENT_TYPES } from "../../src/events/types.ts";

it("a message ends with its delivery or its failure (EVT-8, EVT-9)", () => {
  expect(KNOWN_EVENT_TYPES.filter(isTerminal)).toEqual(["message.delivery", "message.failed"]);
  expect(isTerminal("message.read")).toBe(false);
});
