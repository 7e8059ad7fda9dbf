/** What a reset, an import or the close cuts off: nothing of the old state is left in the new one, nobody waits on, and nothing is said to be done that is not. */
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { control } from "../control-support.ts";
import { receive, type Stage, stage } from "../delivery-support.ts";
import { call, ready, send, start, startCatcher, tokenOf } from "../support.ts";

/** Answers of the receiver that wait to be given. */
function heldAnswers({ catcher }: Pick<Stage, "catcher">): ServerResponse[] {
  const held: ServerResponse[] = [];
  catcher.answer = (_, response) => void held.push(response);
  return held;
}

describe("a redelivery", () => {
  it.each(["reset", "import", "close"] as const)("that is cut off by %s says so", async (what) => {
    const { emulator, catcher } = await stage();
    const { deliveryId } = await receive(emulator);
    const exported = emulator.control.exportState();
    const held = heldAnswers({ catcher });
    const ends = Promise.allSettled([emulator.control.redeliver(deliveryId), emulator.control.redeliver(deliveryId)]);
    await expect.poll(() => held.length).toBe(1);
    if (what === "reset") emulator.control.reset();
    if (what === "import") emulator.control.importState(exported);
    if (what === "close") await emulator.close();
    held[0]?.writeHead(200).end();
    const rejected = { status: "rejected", reason: { code: "cut_off" } };
    expect(await ends).toMatchObject([rejected, rejected]);
  });

  it("answers with 409 then, and with 404 for what never was", async () => {
    const { emulator, catcher } = await stage();
    const { deliveryId } = await receive(emulator);
    const held = heldAnswers({ catcher });
    const path = (id: string) => `/deliveries/${id}/redeliver`;
    const answered = control(emulator, "POST", path(deliveryId));
    await expect.poll(() => held.length).toBe(1);
    emulator.control.reset();
    held[0]?.writeHead(200).end();
    expect(await answered).toMatchObject({ status: 409, body: { error: { code: "CONFLICT" } } });
    expect((await control(emulator, "POST", path(deliveryId))).status).toBe(404);
  });
});

it("a reset releases the answers that wait for a first attempt", async () => {
  const fault = {
    match: { webhook: true, eventType: "message.queued" },
    action: { type: "eventBeforeResponse" },
  } as const;
  const { emulator, catcher } = await stage({ faults: [fault] });
  const held = heldAnswers({ catcher });
  const answered = send(emulator, await tokenOf(emulator));
  await expect.poll(() => held.length).toBe(1);
  emulator.control.reset();
  expect((await answered).status).toBe(202);
  held[0]?.writeHead(200).end();
});

it("recovery leaves alone what succeeds while it waits for its turn", async () => {
  const { emulator, catcher } = await stage();
  const held = heldAnswers({ catcher });
  emulator.control.inbound({ to: "num_000001", from: "+14155550123", body: "x" });
  await expect.poll(() => held.length).toBe(1);
  const recovered = emulator.control.recover(0);
  catcher.answer = 200;
  held[0]?.writeHead(200).end();
  expect(await recovered).toEqual([]);
  expect(catcher.caught).toHaveLength(1);
  expect(emulator.control.deliveries().map(({ attempts }) => attempts.length)).toEqual([1]);
});

describe("an attempt that waits for a place at its receiver", () => {
  it.each(["reset", "import"] as const)("is never sent after the %s that cuts it off", async (what) => {
    const { emulator, catcher } = await stage();
    const exported = emulator.control.exportState();
    const held = heldAnswers({ catcher });
    for (let i = 0; i < 40; i++) emulator.control.inbound({ to: "num_000001", from: "+14155550123", body: "old" });
    await expect.poll(() => held.length).toBe(32);
    if (what === "reset") emulator.control.reset();
    else emulator.control.importState(exported);
    catcher.answer = 200;
    for (const response of held) response.writeHead(200).end();
    await receive(emulator, "new");
    expect(catcher.caught.slice(32).map(({ event }) => event.data.body)).toEqual(["new"]);
    expect(emulator.control.deliveries()).toMatchObject([{ state: "delivered", attempts: [{ status: 200 }] }]);
  });

  it("is not sent either when a watcher resets in the moment in which its place becomes free", async () => {
    const { emulator, catcher } = await stage();
    const held = heldAnswers({ catcher });
    for (let i = 0; i < 40; i++) emulator.control.inbound({ to: "num_000001", from: "+14155550123", body: "old" });
    await expect.poll(() => held.length).toBe(32);
    const stop = emulator.control.watch(() => {
      stop();
      emulator.control.reset();
    });
    for (const response of held.splice(0)) response.writeHead(200).end();
    await emulator.clock.idle();
    expect(catcher.caught).toHaveLength(32);
  });
});

describe("a watcher that resets", () => {
  it.each(["event", "delivery"] as const)("at the first %s leaves nothing of a send behind", async (type) => {
    const catcher = await startCatcher();
    const { emulator, token } = await ready({ lifecycle: "instant", deliveryUrl: catcher.url });
    const stop = emulator.control.watch((entry) => {
      if (entry.type !== type) return;
      stop();
      emulator.control.reset();
    });
    // Each event twice.
    await send(emulator, token, { to: ["+15005550005"] });
    await emulator.clock.idle();
    const exported = emulator.control.exportState();
    const left = ["messages", "events", "deliveries"].map((name) => Object.keys(exported.tables[name] ?? {}));
    expect(left).toEqual([[], [], []]);
    emulator.control.importState(exported);
  });
});

it("ends what a call without a socket waits for", async () => {
  const route = "GET /api/core/whoami";
  const { emulator, token } = await ready({ faults: [{ match: { route }, action: { type: "delay", ms: 600_000 } }] });
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
    const { emulator, token } = await ready();
    const sent = send(emulator, token);
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    await emulator.close();
    expect((await sent).status).toBe(202);
    expect(emulator.control.messages()).toHaveLength(1);
  }
});

it("refuses what was asked for before and comes too late, and does not wait for it", async () => {
  const { emulator, token } = await ready();
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
  const { emulator, token } = await ready();
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
