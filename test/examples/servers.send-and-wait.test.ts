/**
 * A send in one process, and its outcome from the inbox of another one that receives the webhooks.
 *
 * @module-tag full
 */
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../src/internal/logger.ts";
import { createEmulator, type EmulatorOptions } from "../../src/messaging/emulator/index.ts";
import { RunningExample, runToEnd, SECRET } from "./running.ts";

/** Fails after it was sent; see docs/emulator.md. */
const FAILS = "+15005550002";
const ORDINARY = "+14155550101";

/** The Express example as receiver, an emulator that delivers to it, and what the sending process needs to know of both. */
async function start(options: EmulatorOptions) {
  const web = await RunningExample.start("express");
  const emulator = await createEmulator({
    deliveryUrl: `${web.url}/webhooks`,
    webhookSecret: SECRET,
    logger: silentLogger,
    ...options,
  });
  onTestFinished(() => emulator.close());
  const environment = {
    SERVICE_BASE_URL: emulator.url,
    SERVICE_CLIENT_ID: emulator.clientId,
    SERVICE_CLIENT_SECRET: emulator.clientSecret,
    WEBHOOK_SECRET: SECRET,
    INBOX_PATH: web.inboxPath,
  };
  const send = (...to: string[]) => runToEnd("send-and-wait", environment, to);
  return { web, emulator, environment, send };
}

const outcomesOf = (output: string) =>
  output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("examples/servers/express/send-and-wait", () => {
  it("learns what another process handled, however soon the events came (SND-20, CLI-10)", async () => {
    const { web, send } = await start({ lifecycle: "instant" });
    const recipients = [ORDINARY, FAILS, "0155 50101"];
    const { code, output, errors } = await send(...recipients);
    expect({ code, errors }).toEqual({ code: 1, errors: "" });
    expect(outcomesOf(output)).toEqual([
      { messageId: null, outcome: "INVALID_RECIPIENT" },
      { messageId: expect.stringMatching(/^msg_/), outcome: "message.delivery" },
      { messageId: expect.stringMatching(/^msg_/), outcome: "message.failed" },
    ]);
    for (const recipient of recipients) expect(output).not.toContain(recipient);
    await expect.poll(() => web.handled().length).toBe(6);
  });

  it("waits for events that come later (SND-20)", async () => {
    const { emulator, send } = await start({ clock: "virtual" });
    const sending = send(ORDINARY);
    await expect.poll(() => emulator.control.messages().length, { timeout: 15_000 }).toBe(1);
    await emulator.clock.advance(20_000);
    const { code, output } = await sending;
    expect({ code, outcomes: outcomesOf(output) }).toMatchObject({
      code: 0,
      outcomes: [{ outcome: "message.delivery" }],
    });
  });

  it.each([
    ["no address", { SERVICE_BASE_URL: "" }, /^SERVICE_BASE_URL is not set: put .* in it\.\n$/],
    [
      "a wrong client secret",
      { SERVICE_CLIENT_SECRET: "wrong" },
      /^The token route answered with 401 invalid_client[^\n]*\n$/,
    ],
  ])("ends with 1 and one line: %s", async (_case, changed, line) => {
    const { environment } = await start({ lifecycle: "instant" });
    const { code, output, errors } = await runToEnd("send-and-wait", { ...environment, ...changed }, [ORDINARY]);
    expect({ code, output }).toEqual({ code: 1, output: "" });
    expect(errors).toMatch(line);
  });
});
