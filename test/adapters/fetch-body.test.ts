/** The reader of fetch bodies on streams that no host makes. */
import { describe, expect, it } from "vitest";
import { readRequestBody } from "../../adapters/fetch-io.ts";

describe("readRequestBody()", () => {
  it("says cut of a body that came to its end just before, for what it held is given away", async () => {
    const ends: (() => void)[] = [];
    const body = new ReadableStream({ start: (controller) => void ends.push(() => controller.close()) });
    const request = new Request("http://a.example/", { method: "POST", body, duplex: "half" } as RequestInit);
    const cuts: (() => void)[] = [];
    const onCut = (cut: () => void) => void cuts.push(cut);
    const read = readRequestBody(request, { maxBytes: 100, declaredBytes: null, received() {}, onCut });
    for (const act of [...ends, ...cuts]) act();
    expect(await read).toEqual({ ok: false, reason: "cut" });
  });
});
