/** Forged requests that wait for a look-up of secrets: they take no place of signed ones, on real HTTP. */
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { expressVerify, expressWebhook } from "../../adapters/express.ts";
import { nodeWebhook } from "../../adapters/node.ts";
import { createReceiver, type Keyring, type KeyringContext } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { eventBody } from "../contracts/adapter-bench.ts";
import { newInboxFile } from "../receiver/bench.ts";
import { rows } from "../setup/form.ts";
import { SECRET, signedEvent } from "./receivers.ts";
import { serve } from "./serving.ts";

const LOOK_UP_MS = 200;
const FORGED = 300;
const SIGNED = 200;
const known: Keyring = { current: { secret: SECRET, tenant: "client_1" } };

/** Knows one tenant, and takes its time to know that it does not know another. */
async function secrets({ tenant }: KeyringContext): Promise<Keyring | undefined> {
  if (tenant === "known") return known;
  await new Promise((resolve) => setTimeout(resolve, LOOK_UP_MS));
  return undefined;
}
const tenant = ({ url = "" }: { url?: string | undefined }) => url.split("/").at(-1) ?? "";

const LISTENERS = {
  async nodeWebhook() {
    return nodeWebhook(await startedReceiver(), { tenant });
  },
  async expressWebhook() {
    const app = express();
    app.all("/:tenant", expressWebhook(await startedReceiver(), { tenant }));
    return app;
  },
  async expressVerify() {
    const app = express();
    app.post(
      "/:tenant",
      expressVerify({ secrets, tenant, logger: silentLogger }),
      (_, res) => void res.sendStatus(200),
    );
    return app;
  },
};

async function startedReceiver() {
  const receiver = createReceiver({ secrets, store: sqliteStore(newInboxFile()), logger: silentLogger });
  receiver.onAny(() => {});
  await receiver.start();
  onTestFinished(() => receiver.stop());
  return receiver;
}

const forged = () => ({ ...signedEvent().headers, "x-service-signature": "0".repeat(64) });

const NAMES = Object.keys(LISTENERS) as (keyof typeof LISTENERS)[];

describe.each(rows(NAMES, (name) => name === "nodeWebhook"))("%s", (name) => {
  it(`answers signed deliveries of a known tenant while ${FORGED} forged ones wait for an invented one`, async () => {
    const { port, close } = await serve(await LISTENERS[name]());
    onTestFinished(close);
    const post = (path: string, body: Uint8Array, headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${port}/${path}`, { method: "POST", body, headers }).then(({ status }) => status);
    const signed = (index: number) => {
      const { body, headers } = signedEvent(`text ${index}`);
      return post("known", body, headers);
    };
    expect(await signed(-1)).toBe(200);
    const flood = Array.from({ length: FORGED }, () => post("invented", eventBody("forged"), forged()));
    const answers = await Promise.all(Array.from({ length: SIGNED }, (_, index) => signed(index)));
    expect(answers.filter((status) => status === 200)).toHaveLength(SIGNED);
    const refused = await Promise.all(flood);
    expect(refused.filter((status) => status !== 401 && status !== 503)).toEqual([]);
    expect(refused.filter((status) => status === 401).length).toBeGreaterThan(0);
  });
});
