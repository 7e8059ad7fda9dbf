/** Field names that every JavaScript object has: a caller's are data like any other. */
import { describe, expect, it } from "vitest";
import { call, ready, start, startAgain, tokenOf } from "./support.ts";

const INHERITED = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "__defineGetter__"];
const PATH = "/api/core/numbers/num_000001";

describe("field names that every object inherits", () => {
  it.each(INHERITED)("warns of %s in words, as of any unknown field (GEN-9)", async (name) => {
    const { emulator, token } = await ready();
    const { status } = await call(emulator, "PATCH", PATH, { token, body: `{"${name}":1}` });
    expect(status).toBe(200);
    expect(emulator.control.requests().at(-1)?.warnings).toEqual([`unknown field "${name}" was ignored`]);
  });

  it("keeps calls with them in an export, to all that reads names: bodies, headers, forms, queries", async () => {
    const first = await start();
    const token = await tokenOf(first);
    const form = { "content-type": "application/x-www-form-urlencoded" };
    for (const name of INHERITED) {
      const fields = `{"${name}":{"${name}":["${name}"]}}`;
      await call(first, "PATCH", PATH, { token, body: fields });
      await call(first, "POST", "/api/auth/token", { body: fields });
      await call(first, "POST", "/api/auth/token", { body: `${name}=${name}&grant_type=${name}`, headers: form });
      await call(first, "POST", `/api/core/messages/send?${name}=${name}`, {
        token,
        body: `{"to":["${name}"],"media":[{"${name}":1}]}`,
        headers: { [name]: name, "idempotency-key": name },
      });
      const query = await call(first, "GET", `/_emulator/events?${name}=${name}`);
      expect([name, query.status]).toEqual([name, 400]);
    }
    const requests = first.control.requests();
    expect(requests).toHaveLength(1 + 4 * INHERITED.length);
    const second = await startAgain(first);
    expect(second.control.requests()).toEqual(requests);
  });
});
