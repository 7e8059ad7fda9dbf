/** What the tests of bulk work stand on: a receiver whose dead letters can be mended. */
import { PermanentError } from "../../src/index.ts";
import type { FakeClock } from "../../src/tools/testing/fake-clock.ts";
import { type Bench, memoryBench, until } from "./bench.ts";
import { outbound } from "./events.ts";

/** A receiver whose handlers of some types fail until they are mended. */
export class BulkScene {
  readonly failing = new Set(["message.sent"]);
  readonly bench: Bench<never>;
  readonly handled: string[] = [];
  mended = false;

  constructor(clock?: FakeClock) {
    this.bench = memoryBench(clock && { clock });
    this.bench.receiver.onAny((event) => {
      const { messageId, sequence } = event as { messageId?: string; sequence?: number };
      const name = `${messageId} ${sequence}`;
      if (!this.mended && this.failing.has(event.eventType))
        throw new PermanentError(`No order ${messageId?.slice(4)}`);
      this.handled.push(name);
    });
  }

  get inbox() {
    return this.bench.receiver.inbox;
  }

  /** Messages 1 to `count` with their `sent`, which is answered once it has failed. */
  async dead(count: number): Promise<void> {
    await this.bench.receiver.start();
    for (let n = 1; n <= count; n++) await this.bench.deliver(outbound("queued", { messageId: `msg_${n}` }));
    for (let n = 1; n <= count; n++) await this.bench.deliver(outbound("sent", { messageId: `msg_${n}` }));
    await until(async () => (await this.inbox.stats()).gauges.dead === count);
    this.handled.length = 0;
  }

  async settled(): Promise<void> {
    await until(async () => (await this.inbox.stats()).gauges.pending === 0);
  }
}
