/** What `fetch` itself says of a port that it refuses: the words are undici's, and may change with Node. */
import { expect, it } from "vitest";
import { isBadPort } from "../../src/internal/network.ts";

const failureOf = (url: string) => fetch(url).then(String, (error: unknown) => error);

it("knows a port that fetch refuses from one where nothing listens", async () => {
  expect(isBadPort(await failureOf("http://127.0.0.1:6000/"))).toBe(true);
  expect(isBadPort(await failureOf("http://127.0.0.1:2/"))).toBe(false);
  expect(isBadPort("bad port")).toBe(false);
});
