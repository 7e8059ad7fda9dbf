/** What a run of the tests prints at its end. */
import { expect, it } from "vitest";
import { slowest } from "./suite-reporter.ts";

it("names the five slowest files, the slowest first", () => {
  const files = [3, 1, 7, 2, 6, 5, 4].map((seconds) => ({ file: `${seconds}.test.ts`, seconds }));
  expect(slowest(files).map(({ seconds }) => seconds)).toEqual([7, 6, 5, 4, 3]);
});
