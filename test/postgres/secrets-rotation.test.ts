/** A rotation while the service delivers to two receivers that share one Postgres inbox, and its secrets. */
import { createServer } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { nodeWebhook } from "../../adapters/node.ts";
import { createClient } from "../../src/client/index.ts";
import { createEmulator } from "../../src/emulator/index.ts";
import { createReceiver, type Receiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { adoptSecret, rotateSecret, type SecretStore } from "../../src/rotation/index.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { SECRET } from "../stores/sqlite-secrets-place.ts";
import { listenOnLoopback } from "../support/loopback.ts";
import { newPool, newSchema, until } from "./place.ts";
import { newKeyFile, secretsIn } from "./secrets-place.ts";

/** Read ten times a second, so that a rotation does not wait for long. */
function readOften(secrets: SecretStore): SecretStore {
  return {
    refreshMs: 100,
    encoding: secrets.encoding,
    read: (kind) => secrets.read(kind),
    write: (kind, slots, revision) => secrets.write(kind, slots, revision),
    receivers: () => secrets.receivers(),
    close: () => secrets.close(),
  };
}

/** A receiver with a pool of its own for inbox and secrets, as on a machine of its own. */
async function startReceiver(options: { readonly schema: string; readonly keyFile: string }, handled: string[]) {
  const pool = newPool();
  const secrets = readOften(secretsIn(options, pool));
  const store = postgresStore(pool, { schema: options.schema });
  const receiver = createReceiver<PgClient>({ secrets, store, logger: silentLogger });
  receiver.onAny(({ eventType }, { meta }) => void handled.push(`${meta.lane.messageId} ${eventType}`));
  onTestFinished(() => receiver.stop());
  await receiver.start();
  return receiver;
}

/** Gives the deliveries to the receivers by turns, and keeps their answers. */
async function openFront(receivers: readonly Receiver<PgClient>[]) {
  const webhooks = receivers.map((receiver) => nodeWebhook(receiver));
  const answers: number[] = [];
  let turns = 0;
  const server = createServer((request, response) => {
    response.on("finish", () => answers.push(response.statusCode));
    webhooks[turns++ % webhooks.length]?.(request, response);
  });
  const port = await listenOnLoopback(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}/`, answers };
}

/** The service, and a client that sends a message and tells its id. */
async function startService(deliveryUrl: string) {
  const emulator = await createEmulator({
    ...{ port: null, clock: "real", lifecycle: "instant", logger: silentLogger },
    ...{ deliveryUrl, webhookSecret: SECRET },
  });
  onTestFinished(() => emulator.close());
  const client = createClient({
    baseUrl: emulator.url,
    clientId: emulator.clientId,
    clientSecret: emulator.clientSecret,
    fetch: (input, init) => emulator.handle(new Request(input, init)),
    logger: silentLogger,
  });
  const send = async (externalReference: string) => {
    const message = {
      sendFrom: emulator.fixtures.numbers.full,
      to: ["+14155550101"],
      text: "hello",
      externalReference,
    };
    const { results } = await client.messages.send({ ...message, messageType: "SMS" });
    return results[0]?.messageId;
  };
  return { client, send };
}

it("two receivers on one inbox refuse no delivery while rotateSecret() replaces the secret (RCV-9)", async () => {
  const options = { schema: newSchema(), keyFile: newKeyFile() };
  const secrets = readOften(secretsIn(options));
  await adoptSecret({ kind: "delivery", secrets, secret: SECRET });
  const handled: string[] = [];
  const receivers = [await startReceiver(options, handled), await startReceiver(options, handled)];
  const { url, answers } = await openFront(receivers);
  const { client, send } = await startService(url);
  await until(async () => (await secrets.receivers())?.length === 2);

  const sent: unknown[] = [];
  const sendSome = async () => {
    for (let count = 0; count < 4; count++) sent.push(await send(`order-${sent.length}`));
    await until(() => answers.length >= 3 * sent.length - 6);
  };
  await sendSome();
  let isRotated = false;
  const rotating = rotateSecret({ client, kind: "delivery", secrets, logger: silentLogger }).finally(() => {
    isRotated = true;
  });
  while (!isRotated) await sendSome();
  expect(await rotating).toMatchObject({ receivers: 2, generated: false });
  await sendSome();

  await until(() => handled.length === 3 * sent.length);
  expect(new Set(answers)).toEqual(new Set([200]));
  const kinds = ["message.queued", "message.sent", "message.delivery"];
  for (const id of sent) {
    expect(handled.filter((line) => line.startsWith(`${id} `))).toEqual(kinds.map((kind) => `${id} ${kind}`));
  }
  for (const { counters } of receivers) {
    expect(Object.keys(counters).filter((name) => name.startsWith("refused:"))).toEqual([]);
  }
  expect(await secrets.read("delivery")).toMatchObject({ previous: [{ secret: SECRET }], next: null });
});
