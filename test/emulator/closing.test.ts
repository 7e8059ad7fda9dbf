/** The end of an emulator while calls wait: nothing of them is left behind, and nothing is said to be done that is not in the state. */
import { expect, it } from "vitest";
import { call, send, start, tokenOf } from "./support.ts";

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

it("keeps and answers what was asked for before, however close to the end", async () => {
  for (let turns = 0; turns < 30; turns++) {
    const emulator = await start();
    const token = await tokenOf(emulator);
    const sent = send(emulator, token);
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    await emulator.close();
    expect((await sent).status).toBe(202);
    expect(emulator.control.messages()).toHaveLength(1);
  }
});

it("refuses what was asked for before and comes too late, and does not wait for it", async () => {
  const emulator = await start();
  const token = await tokenOf(emulator);
  const body = new TransformStream<Uint8Array>();
  const headers = { authorization: `Bearer ${token}`, "idempotency-key": "late" };
  const path = `${emulator.url}/api/core/messages/send`;
  const init = { method: "POST", headers, body: body.readable, duplex: "half" };
  const sent = emulator.handle(new Request(path, init as RequestInit));
  await emulator.close();
  const fields = { sendFrom: emulator.fixtures.numbers.full, to: ["+14155550123"], messageType: "SMS" };
  const writer = body.writable.getWriter();
  await writer.write(Buffer.from(JSON.stringify({ ...fields, externalReference: "order-1" })));
  await writer.close();
  expect((await sent).status).toBe(503);
});

it("refuses every call once it has closed, in the shape of its route, and waits for nothing (GEN-2, GEN-3)", async () => {
  const emulator = await start();
  const token = await tokenOf(emulator);
  await emulator.close();
  const sent = await send(emulator, token, { to: ["+15005550013"] });
  const message = expect.stringContaining("closed");
  expect(sent).toMatchObject({ status: 503, body: { error: { code: "SERVER_ERROR", message } } });
  const asked = await call(emulator, "POST", "/api/auth/token", { body: {} });
  expect(asked).toMatchObject({ status: 503, body: { error: "server_error", error_description: message } });
  const controlled = await call(emulator, "POST", "/_emulator/reset");
  expect(controlled).toMatchObject({ status: 503, body: { error: { code: "SERVER_ERROR", message } } });
});

it("shows what it holds once it has closed, and lets no control change it", async () => {
  const { control, clock, close, fixtures } = await start();
  const inbound = () => control.inbound({ to: fixtures.numbers.full, from: "+14155550123", body: "x" });
  inbound();
  const exported = control.exportState();
  await close();
  const numberId = fixtures.numbers.full;
  const names = { apiClientId: "ac_main", numberId, messageId: "msg_1" };
  const changes: (() => unknown)[] = [
    inbound,
    () => control.trigger({ kind: "delivery", eventType: "message.read", ...names, sequence: 1, data: {} }),
    () => control.advanceMessage("msg_1"),
    () => control.failMessage("msg_1"),
    () => control.updateClient("ac_main", {}),
    () => control.updateNumber(numberId, {}),
    () => control.revokeTokens(),
    () => control.faults.add({ match: { eventType: "message.sent" }, action: { type: "drop" } }),
    () => control.faults.remove("fault_000001"),
    () => control.faults.clear(),
    () => control.importState(exported),
    () => control.reset(),
  ];
  const closed = expect.objectContaining({ code: "closed" });
  for (const change of changes) expect(change).toThrow(closed);
  const attempts = [() => control.redeliver("dlv_1"), () => control.recover(0), () => clock.advance(1)];
  for (const attempt of attempts) await expect(attempt()).rejects.toThrow(closed);
  await clock.idle();
  expect(control.exportState()).toEqual(exported);
  expect([control.messages().length, control.clients().length, control.numbers().length]).toEqual([1, 4, 6]);
  expect(control.faults.list()).toEqual([]);
});
