/** A web server that fails now and then, around a handler that does not. */
import { createHash } from "node:crypto";
import type { Random } from "../../../src/internal/clock.ts";

type FetchHandler = (request: Request) => Promise<Response>;

/** Of all deliveries. */
const SHARE = 0.25;
/**
 * How often the same body fails at most. An absence of five minutes takes two attempts of an event at most, so that one of its
 * five is left: what the service gives up, no receiver can have.
 */
const MOST_OF_A_BODY = 2;

/**
 * Makes a wrapper of handlers that counts over all of them, as a receiver that starts again has another one. `unavailable` is what
 * it answers with when it takes nothing: a 503.
 */
export function failing(random: Random, unavailable = 503): (handle: FetchHandler) => FetchHandler {
  const failures = new Map<string, number>();
  const isFailure = (body: Buffer) => {
    const name = createHash("sha256").update(body).digest("base64");
    const before = failures.get(name) ?? 0;
    if (before >= MOST_OF_A_BODY || random() >= SHARE) return false;
    failures.set(name, before + 1);
    return true;
  };
  return (handle) => async (request) => {
    const body = Buffer.from(await request.arrayBuffer());
    const { url, method, headers } = request;
    const forward = () => handle(new Request(url, { method, headers, body }));
    if (!isFailure(body)) return forward();
    const dice = random();
    if (dice < 0.4) return new Response(null, { status: unavailable });
    if (dice < 0.7) return new Response("out of memory", { status: 500 });
    await forward();
    // The receiver has it; the service never hears of that.
    return new Response("bad gateway", { status: 500 });
  };
}
