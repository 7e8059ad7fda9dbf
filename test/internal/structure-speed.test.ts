/** Apart from the other tests, as its limit means nothing where every statement is counted. */
import { describe, expect, it } from "vitest";
import { readJson } from "../../src/internal/json.ts";
import { bytes } from "../sources/messaging/examples.ts";

describe("readJson() text", () => {
  it("takes time in proportion to the body, whatever its quotes and backslashes", () => {
    const size = 1 << 20;
    for (const unit of ["\\\\", '\\"', '"",', "\\", '"', "[],", '{"":', '"\\']) {
      const started = process.hrtime.bigint();
      readJson(bytes(`["${unit.repeat(size / unit.length)}"]`));
      readJson(bytes(`[${unit.repeat(size / unit.length)}1]`));
      expect(Number(process.hrtime.bigint() - started) / 1e6).toBeLessThan(2_000);
    }
  });
});
