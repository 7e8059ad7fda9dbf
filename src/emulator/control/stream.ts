/** The event stream: all that happens, as server-sent events with running numbers. */
import type { Timer } from "../../internal/clock.ts";
import type { JournalEntry } from "../journal.ts";
import type { Ground } from "../service.ts";
import { entryView } from "./views.ts";

export interface Streams {
  /** A stream of what happens from now on. */
  open(): Response;
  /** Ends all streams. */
  close(): void;
}

/** Said in between, so that proxies keep the connection and a reader sees that nothing happened. */
const HEARTBEAT_MS = 15_000;
/**
 * What one reader may leave unread, and one message; with more its stream ends. Large enough for what happens in one turn when
 * time is moved over thousands of messages, during which no reader can read.
 */
const MOST_UNREAD_BYTES = 16 * 1_048_576;

type Sink = ReadableStreamDefaultController<Uint8Array>;

export function createStreams({ journal, settings }: Pick<Ground, "journal" | "settings">): Streams {
  const sinks = new Set<Sink>();
  let number = 0;
  let timer: Timer | null = null;

  const end = (sink: Sink) => {
    if (!sinks.delete(sink)) return;
    if (sinks.size === 0) timer?.cancel();
    sink.close();
  };
  const say = (text: string) => {
    const bytes = Buffer.from(text);
    for (const sink of [...sinks]) {
      if ((sink.desiredSize ?? 0) > 0) sink.enqueue(bytes);
      else {
        sink.enqueue(Buffer.from("event: dropped\ndata: {}\n\n"));
        end(sink);
      }
    }
  };
  const beat = () => {
    say(": still here\n\n");
    timer = sinks.size === 0 ? null : settings.systemClock.setTimeout(beat, HEARTBEAT_MS);
  };
  const unwatch = journal.watch((entry) => {
    number += 1;
    if (sinks.size > 0) say(messageOf(number, entry));
  });
  return {
    open() {
      let own: Sink;
      const body = new ReadableStream<Uint8Array>(
        {
          start(sink) {
            own = sink;
            sink.enqueue(Buffer.from(`: ${number} so far\n\n`));
            if (sinks.size === 0) timer = settings.systemClock.setTimeout(beat, HEARTBEAT_MS);
            sinks.add(sink);
          },
          cancel() {
            sinks.delete(own);
            if (sinks.size === 0) timer?.cancel();
          },
        },
        new ByteLengthQueuingStrategy({ highWaterMark: MOST_UNREAD_BYTES }),
      );
      return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
    },
    close() {
      unwatch();
      for (const sink of [...sinks]) end(sink);
    },
  };
}

function messageOf(number: number, entry: JournalEntry): string {
  return `id: ${number}\nevent: ${entry.type}\ndata: ${JSON.stringify(entryView(entry))}\n\n`;
}
