/** The end of an emulator while calls wait: nothing of them is left behind. */
import { expect, it } from "vitest";
import { send, start, tokenOf } from "./support.ts";

it("ends what a call without a socket waits for", async () => {
  const route = "GET /api/core/whoami";
  const emulator = await start({ faults: [{ match: { route }, action: { type: "delay", ms: 600_000 } }] });
  const token = await tokenOf(emulator);
  const delayed = emulator.handle(
    new Request(`${emulator.url}/api/core/whoami`, { headers: { authorization: `Bearer ${token}` } }),
  );
  const slow = send(emulator, token, { to: ["+15005550013"] });
  await expect.poll(() => emulator.control.messages()).toHaveLength(1);
  await emulator.close();
  // As a connection that breaks.
  expect((await delayed).type).toBe("error");
  expect((await slow).status).toBe(202);
});

it("waits for nothing once it has closed", async () => {
  const emulator = await start();
  const token = await tokenOf(emulator);
  await emulator.close();
  expect((await send(emulator, token, { to: ["+15005550013"] })).status).toBe(202);
});
