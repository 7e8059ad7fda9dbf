/** `GET api/stream`: an overview about once a second, as server-sent events. */
import { refused, streamed } from "../answers.ts";
import type { Route } from "../route.ts";
import { liveStream } from "../stream.ts";

/** Each holds a connection, and is asked for by one browser tab. */
const MOST_STREAMS = 20;

export const streamRoute: Route = {
  method: "GET",
  path: "stream",
  access: "read",
  run(call) {
    if (call.watch.watching >= MOST_STREAMS)
      return refused("busy", `${MOST_STREAMS} pages are watching already: close one.`);
    return streamed("text/event-stream; charset=utf-8", liveStream(call));
  },
};
