/** The controls: a front that gives out its slots before the bodies are read, and one that bounds neither time nor memory. */
import type { IncomingMessage, RequestListener } from "node:http";
import type { Receiver } from "../../../src/index.ts";
import { incomingOf } from "../../../src/testing/deliver.ts";
import type { Flaw } from "./besieged.ts";

const SLOTS = 64;

export function carelessly(
  receiver: Pick<Receiver<never>, "handle">,
  flaw: Exclude<Flaw, "none">,
  tenant: (request: IncomingMessage) => string,
): RequestListener {
  let taken = 0;
  return async (request, response) => {
    if (flaw === "slots first" && taken >= SLOTS) return void response.writeHead(503).end();
    taken += 1;
    // Until it is answered: who waits for a look-up holds one too.
    response.once("close", () => (taken -= 1));
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // Whoever sent it is gone.
      return;
    }
    const headers = request.headers as Record<string, string>;
    const body = Uint8Array.from(Buffer.concat(chunks));
    const { status, body: text } = await receiver.handle({
      ...incomingOf({ method: "POST", headers, body }),
      tenant: tenant(request),
    });
    response.writeHead(status).end(text);
  };
}
