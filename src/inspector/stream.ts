/** The live stream: looks as server-sent events, for as long as the viewer has the right to look. */
import type { Clock, Timer } from "../internal/clock.ts";
import type { Access, StreamEvent } from "./api.ts";
import { refused, streamed } from "./http.ts";
import type { ApiCall, ApiRoute } from "./route.ts";
import type { Look } from "./watch.ts";

/** Some proxies close a connection that is silent for half a minute. */
export const HEARTBEAT_MS = 15_000;
/** How often the rights of a client are checked again. */
export const ASK_AGAIN_MS = 60_000;
const COMMENT = ":\n\n";

/** Watches from now on, also if nobody reads it, until `call.signal` aborts or it is ended. */
function liveStream(call: ApiCall): AsyncIterableIterator<string> {
  const ending = new AbortController();
  const signal = AbortSignal.any([call.signal, ending.signal]);
  const events = eventsOf(call, call.watch.looks(signal)[Symbol.asyncIterator](), signal);
  return {
    next: () => events.next(),
    // Without the abort, a waiting generator would end only after its next look.
    return() {
      ending.abort();
      return events.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function* eventsOf(
  call: ApiCall,
  looks: AsyncIterator<Look>,
  signal: AbortSignal,
): AsyncGenerator<string, undefined> {
  const { clock, by } = call;
  // Sends the headers of the answer at once, even if the inbox cannot be read.
  yield COMMENT;
  let access: Access | false = call.access;
  let askAt = clock.monotonic() + ASK_AGAIN_MS;
  let next = looks.next();
  try {
    while (true) {
      const result = await orTimeout(next, clock, Math.min(HEARTBEAT_MS, askAt - clock.monotonic()));
      if (clock.monotonic() >= askAt && !signal.aborted) {
        access = await orAborted(call.reauthorize(), signal);
        askAt = clock.monotonic() + ASK_AGAIN_MS;
      }
      if (access === false) return yield written({ kind: "end", reason: signal.aborted ? "closing" : "unauthorized" });
      if (result === null) {
        yield COMMENT;
        continue;
      }
      if (result.done === true) return yield written({ kind: "end", reason: "closing" });
      const { changed, overview, sample } = result.value;
      yield written({ kind: "overview", changed, overview: { ...overview, access, by }, sample });
      next = looks.next();
    }
  } finally {
    void looks.return?.();
  }
}

function written(event: StreamEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** Null if `work` takes longer than `ms`. The work continues and can be awaited again. */
async function orTimeout<T>(work: Promise<T>, clock: Clock, ms: number): Promise<T | null> {
  let timer: Timer | undefined;
  const late = new Promise<null>((resolve) => {
    timer = clock.setTimeout(() => resolve(null), Math.max(0, ms));
  });
  const first = await Promise.race([work, late]);
  timer?.cancel();
  return first;
}

/** False if `signal` aborts first: the client may be gone, and the answer may never come. */
function orAborted(work: Promise<Access | false>, signal: AbortSignal): Promise<Access | false> {
  return new Promise((resolve) => {
    const abort = () => resolve(false);
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, abort).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Each stream holds a connection, and belongs to one browser tab. */
const MOST_STREAMS = 20;

/** `GET api/stream`: an overview about once a second, as server-sent events. */
export const streamRoute: ApiRoute = {
  method: "GET",
  path: "stream",
  access: "read",
  run(call) {
    if (call.watch.watching >= MOST_STREAMS)
      return refused("busy", `${MOST_STREAMS} pages are open already: close one.`);
    return streamed("text/event-stream; charset=utf-8", liveStream(call));
  },
};
