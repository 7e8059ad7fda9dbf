/** A 409 after an attempt of the same call that was not answered: a new key could send twice then. */
import { describe, expect, it } from "vitest";
import { type ClientOptions, ConflictError } from "../../src/client/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { type Answerer, answerJson, failureOf, startServer } from "./support.ts";

const CONFLICT = { error: { code: "CONFLICT", message: "", details: {} }, requestId: "req_1" };
const NEW_KEY = "a changed request needs a new key";
const SAME_KEY = "repeat the same request with the same key later";

const send = { sendFrom: "num_1", to: ["+14155550123"], messageType: "SMS", externalReference: "order-1" } as const;

/** The error of a send that is answered by `first`, and then with 409. */
async function conflictAfter(first: Answerer | null, options: Partial<ClientOptions> = {}): Promise<ConflictError> {
  let calls = 0;
  const { client } = await startServer(
    (request, response) => {
      calls += 1;
      if (calls === 1 && first !== null) first(request, response);
      else answerJson(response, 409, CONFLICT);
    },
    { maxRetries: 5, ...options },
  );
  const error = await failureOf(client.messages.send(send, { idempotencyKey: "order-1" }), ConflictError);
  expect(error).toMatchObject({ attempts: calls, idempotencyKey: "order-1" });
  return error;
}

describe("a 409 of a send", () => {
  it("says that a changed request needs a new key, and the same request the same one (CLI-6, SND-18)", async () => {
    const error = await conflictAfter(null);
    expect(error.attempts).toBe(1);
    expect(error.message).toContain(NEW_KEY);
  });

  it("after an attempt that got no answer in time says to keep the key, for the send may be running still (CLI-6, SND-31)", async () => {
    const clock = createFakeClock();
    const error = await conflictAfter(() => clock.advance(30_000), { clock });
    expect(error.attempts).toBe(2);
    expect(error.message).toContain(SAME_KEY);
    expect(error.message).not.toContain("new key");
  });

  it.each<[string, Answerer]>([
    ["got no answer", (request) => request.socket.destroy()],
    ["got a 504 of a gateway", (_, response) => response.writeHead(504).end("<html>")],
  ])(
    "after an attempt that %s says to keep the key, for the send may be running still (CLI-6, SND-31)",
    async (_, first) => {
      const error = await conflictAfter(first);
      expect(error.attempts).toBe(2);
      expect(error.message).toContain(SAME_KEY);
      expect(error.message).not.toContain("new key");
    },
  );

  it("after a 401 is as the first one: nothing was done before it (CLI-3, CLI-6)", async () => {
    const error = await conflictAfter((_, response) => answerJson(response, 401, {}));
    expect(error.attempts).toBe(2);
    expect(error.message).toContain(NEW_KEY);
  });
});
