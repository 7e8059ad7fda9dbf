/** An inbox in which every text that can come from outside is hostile. */
import { createReceiver } from "../../../../src/index.ts";
import { silentLogger } from "../../../../src/internal/logger.ts";
import { sqliteStore } from "../../../../src/stores/sqlite.ts";
import { fixtures, incomingOf, signedRequest, TEST_SECRET } from "../../../../src/testing/index.ts";
import { hostileTexts } from "./hostile.ts";

const AT_ONCE = 100;

/** Each text is in every field of three events, of an error that a handler throws, of a quarantined body, and of an audit row. */
export async function fillWithHostileTexts(path: string): Promise<void> {
  const receiver = createReceiver({
    secrets: TEST_SECRET,
    store: sqliteStore(path),
    logger: silentLogger,
    maxAttempts: 1,
    firstSequence: "any",
  });
  receiver.on(["message.failed", "message.inbound"], (event) => {
    const text = event.apiClientId;
    if (event.eventType === "message.failed") throw Object.assign(new Error(text), { code: text, name: text });
  });
  const texts = hostileTexts();
  const contents = texts.flatMap((text) => [failed(text), inbound(text), unknown(text), `${text} is not JSON`]);
  // More at once would be refused as an overload.
  for (let first = 0; first < contents.length; first += AT_ONCE) {
    const some = contents.slice(first, first + AT_ONCE).map((content, index) => {
      const request = signedRequest(content);
      request.headers.traceparent = texts[(first + index) % texts.length] ?? "";
      return receiver.handle(incomingOf(request));
    });
    const refused = (await Promise.all(some)).find(({ status }) => status !== 200);
    if (refused !== undefined) throw new Error(`A hostile delivery was answered ${refused.status} ${refused.body}.`);
  }
  await receiver.drain();
  const { items } = await receiver.inbox.findLanes({ tag: "inbound", limit: 1_000 });
  for (const [index, { id }] of items.entries()) await receiver.inbox.reveal(id, { by: texts[index] ?? "" });
  await receiver.stop();
}

/** Objects' own names are no keys that a parser takes. */
function named(text: string): object {
  return ["__proto__", "constructor", "prototype"].includes(text) ? {} : { [text]: { [text]: text } };
}

function failed(text: string): object {
  const data = {
    ...{ messageId: text, externalReference: text, sendFrom: text, to: text, status: text, providerMessageRef: text },
    error: { code: text, message: text, details: named(text) },
    ...named(text),
  };
  return { ...fixtures.failed({ messageId: text, apiClientId: text }), ...named(text), data };
}

function inbound(text: string): object {
  const data = {
    ...{ conversationId: text, numberId: text, from: text, to: text, body: text },
    media: [text, { url: text, contentType: text, ...named(text) }],
  };
  return { ...fixtures.inbound({ messageId: text, apiClientId: text, data }), ...named(text) };
}

function unknown(text: string): object {
  const event = fixtures.unknown({ eventType: text, apiClientId: text, data: { text, body: text, ...named(text) } });
  return { ...event, direction: text, messageId: text, sequence: text };
}
