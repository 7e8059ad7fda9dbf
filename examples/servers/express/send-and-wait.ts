/**
 * `npm run example:send -- +14155550101`: sends an SMS to each recipient, and waits for what becomes of it. The webhooks come to
 * another process, the Express example, with the same inbox.
 */
import { randomUUID } from "node:crypto";
import { createReceiver, type MessageRef, OncehookError, type Receiver, type WebhookEvent } from "oncehook";
import { type Client, createClient } from "oncehook/client";
import { type SqliteDatabase, sqliteStore } from "oncehook/sqlite";
import { EnvironmentError, endWithOneLine, readClientEnvironment, readEnvironment } from "../../shared/environment.ts";

/** A line of the output. Ids and words of the service only. */
interface Outcome {
  /** Null when the service rejected the recipient. */
  readonly messageId: string | null;
  readonly outcome: string;
}

async function main(to: readonly string[]): Promise<void> {
  const client = createClient(readClientEnvironment(process.env));
  const { secrets, inboxPath } = readEnvironment(process.env);
  // Never started: it looks into the inbox, and the other process handles what arrives there. Its secrets must be that process's
  // own, in the same secret store if it has one: a rotation waits for all who have the inbox open.
  const receiver = createReceiver({ secrets, store: sqliteStore(inboxPath) });
  try {
    const outcomes = await sendAndWait(client, receiver, to);
    for (const outcome of outcomes) console.log(JSON.stringify(outcome));
    process.exitCode = outcomes.every(({ outcome }) => outcome === "message.delivery") ? 0 : 1;
  } finally {
    await receiver.stop();
  }
}

async function sendAndWait(
  client: Client,
  receiver: Receiver<SqliteDatabase>,
  to: readonly string[],
): Promise<Outcome[]> {
  const [{ apiClientId }, numbers] = await Promise.all([client.whoami(), client.numbers.list()]);
  const number = numbers.find(
    ({ status, smsEnabled, campaignRegId }) => status === "ACTIVE" && smsEnabled && campaignRegId,
  );
  if (number === undefined) throw new EnvironmentError("This client has no active number that can send SMS.");
  const { results, errors } = await client.messages.send({
    sendFrom: number.numberId,
    to,
    messageType: "SMS",
    text: "Your order is on its way.",
    externalReference: randomUUID(),
  });
  const rejected = errors.map(({ error }) => ({ messageId: null, outcome: error.code }));
  const ended = results.map(async ({ messageId }) => ({
    messageId,
    outcome: await outcomeOf(receiver, { apiClientId, messageId }),
  }));
  return [...rejected, ...(await Promise.all(ended))];
}

/** `message.delivery`, `message.failed`, or why it is not known: `wait_timeout`, `dead_lettered`. */
async function outcomeOf(receiver: Receiver<SqliteDatabase>, ref: MessageRef): Promise<string> {
  try {
    return (await receiver.waitFor(ref, isOutcome, { timeoutMs: 30_000 })).eventType;
  } catch (error) {
    if (error instanceof OncehookError) return error.code;
    throw error;
  }
}

function isOutcome({ eventType }: WebhookEvent): boolean {
  return eventType === "message.delivery" || eventType === "message.failed";
}

main(process.argv.slice(2)).catch(endWithOneLine);
