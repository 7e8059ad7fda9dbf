/** What a reset, an import or the close cuts off: nothing of the old state is left in the new one, and nobody waits on. */
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { control } from "./control-support.ts";
import { receive, type Stage, stage } from "./delivery-support.ts";
import { send, start, startCatcher, tokenOf } from "./support.ts";

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
    const emulator = await start({ lifecycle: "instant", deliveryUrl: catcher.url });
    const token = await tokenOf(emulator);
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
