/** A rotation's store and client, whose operations end a rotation or wait for their turn. */
import type { RotateSecretOptions, RotationClient, SecretStore } from "../../../src/messaging/rotation/index.ts";
import type { FakeClock } from "../../../src/tools/testing/fake-clock.ts";

/** Runs an operation of the store or the client, or does not. */
export type Around = <T>(operation: () => Promise<T>) => Promise<T>;

/** The process ended. */
export class Crash extends Error {}

/** The options, with something around each operation of their store and their client. */
export function around(options: RotateSecretOptions, run: Around): RotateSecretOptions {
  const { secrets, client } = options;
  const store: SecretStore = {
    ...secrets,
    read: (kind) => run(() => secrets.read(kind)),
    write: (kind, slots, revision) => run(() => secrets.write(kind, slots, revision)),
    receivers: () => run(() => secrets.receivers()),
  };
  const webhooks: RotationClient["webhooks"] = {
    get: (call) => run(() => client.webhooks.get(call)),
    update: (kind, update, call) => run(() => client.webhooks.update(kind, update, call)),
  };
  return { ...options, secrets: store, client: { webhooks } };
}

/** Where a process ends: at its `operation`th operation, before or after that had its effect. */
export interface CrashPoint {
  readonly operation: number;
  readonly when: "before" | "after";
}

/** The operations of a process that ends somewhere; what it began has no answer, and it asks nothing more. */
export function crashAt({ operation: last, when }: CrashPoint): { around: Around; crash: Promise<never> } {
  let count = 0;
  let end: (crash: Crash) => void;
  const crash = new Promise<never>((_, reject) => {
    end = reject;
  });
  const ended = <T>() => {
    end(new Crash());
    return new Promise<T>(() => {});
  };
  const around: Around = async (operation) => {
    count += 1;
    const own = count;
    if (own > last || (own === last && when === "before")) return ended();
    const result = await operation();
    return own === last ? ended() : result;
  };
  return { around, crash };
}

/** Lets one operation of several rotations begin or end at a time, in an order that `random` decides. */
export class Turns {
  readonly #waiting: (() => void)[] = [];

  readonly around: Around = async (operation) => {
    await this.#turn();
    const result = await operation();
    await this.#turn();
    return result;
  };

  /** Until all have ended. A millisecond passes between two turns, so that no two rotations have one `rotatedAt`. */
  async run<T>(
    works: readonly Promise<T>[],
    clock: FakeClock,
    random: () => number,
  ): Promise<PromiseSettledResult<T>[]> {
    let left = works.length;
    const ended = () => {
      left -= 1;
    };
    for (const work of works) work.then(ended, ended);
    while (left > 0) {
      await clock.advance(1);
      const [next] = this.#waiting.splice(Math.floor(random() * this.#waiting.length), 1);
      next?.();
    }
    return Promise.allSettled(works);
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
