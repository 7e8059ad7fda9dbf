/** Options keep and import together: after a restart, what has ended goes and what is under way stays, as before it. */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../src/emulator/index.ts";
import { MINUTE, type Stage } from "./delivery-support.ts";
import { send, start, startAgain, startCatcher, tokenOf } from "./support.ts";

/** An emulator that was started again while the three events of a message waited for their retries. */
async function restarted(): Promise<Stage> {
  const catcher = await startCatcher();
  const first = await start({ keep: 1, deliveryUrl: catcher.url, inboundUrl: catcher.url });
  catcher.answer = 500;
  await send(first, await tokenOf(first));
  await first.clock.advance(20_000);
  expect(pendingIn(first)).toEqual(["message.queued", "message.sent", "message.delivery"]);
  catcher.answer = 200;
  return { emulator: await startAgain(first, { keep: 1 }), catcher };
}

/** More messages that end at once than are kept. */
async function receiveMany({ control, clock }: Emulator): Promise<void> {
  for (let i = 0; i < 3; i++) control.inbound({ to: "num_000001", from: "+14155550123", body: "x" });
  await clock.idle();
}

const pendingIn = ({ control }: Emulator) => control.deliveries({ state: "pending" }).map(({ eventType }) => eventType);

describe("option keep after a restart", () => {
  it("leaves what is still tried again, also of a message with an event that was delivered (DLV-6)", async () => {
    const { emulator, catcher } = await restarted();
    catcher.answer = ({ event }, response) => {
      response.writeHead(/sent|delivery/.test(event.eventType) ? 500 : 200).end();
    };
    await emulator.clock.advance(MINUTE);
    await receiveMany(emulator);
    expect(pendingIn(emulator)).toEqual(["message.sent", "message.delivery"]);
    catcher.answer = 200;
    const tried = catcher.caught.length;
    await emulator.clock.advance(5 * MINUTE);
    expect(catcher.caught.slice(tried).map(({ event }) => event.eventType)).toEqual([
      "message.sent",
      "message.delivery",
    ]);
  });

  it("drops what has ended with all of its deliveries, so that an export can be imported", async () => {
    const { emulator } = await restarted();
    await emulator.clock.advance(MINUTE);
    await receiveMany(emulator);
    const exported = emulator.control.exportState();
    const { events = {}, deliveries = {} } = exported.tables;
    expect([Object.keys(events).length, Object.keys(deliveries).length]).toEqual([1, 1]);
    emulator.control.importState(exported);
  });
});
