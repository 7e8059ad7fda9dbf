/** Attempts in their time: planned with the scheduler, made if they are still wanted, and kept in their delivery. */
import type { Cancel } from "../agenda.ts";
import type { AttemptAction } from "../faults/rule.ts";
import type { Faults, Ground } from "../service.ts";
import type { Attempt, Delivery, EventRecord, Target } from "../state/records.ts";
import { type AttemptInput, makeAttempt } from "./attempt.ts";
import { countOf } from "./attempt-history.ts";
import { afterAttempt } from "./plan.ts";
import { targetOf } from "./target.ts";
import type { Transport } from "./transport.ts";

/** An attempt to be made. */
export interface Planned {
  readonly deliveryId: string;
  readonly messageId: string;
  readonly trigger: Attempt["trigger"];
  readonly dueAt: number;
  readonly place: number;
  /** The delivery, while the attempt is still wanted. */
  current(): Delivery | undefined;
  /** Called once. `delivery`: as the attempt left it; undefined when it was not made, or the delivery is gone. */
  ended(delivery: Delivery | undefined): void;
}

export interface Attempts {
  /** Attempts of one message never overlap. What it returns forgets the attempt, unless it has started. */
  plan(planned: Planned): Cancel;
  /** Cuts off what is under way, as if it had not begun: a kept state makes it again. */
  close(): void;
}

type Now = Pick<Planned, "trigger"> & { readonly at: number };

interface Way {
  readonly transport: Transport;
  /** Whether somebody waits for the end of a delivery's attempt. */
  isAwaited(deliveryId: string): boolean;
}

export function createAttempts(ground: Ground, faults: Faults, { transport, isAwaited }: Way): Attempts {
  const { state, scheduler, journal, time, settings } = ground;
  let isClosed = false;

  function plan(planned: Planned): Cancel {
    const { messageId: lane, trigger, dueAt, place } = planned;
    let target: Target | null = null;
    let actions: readonly AttemptAction[] = [];
    return scheduler.add({
      dueAt,
      place,
      lane,
      // A receiver has had its chance to answer the event by a call of its own; so nobody misses the time of a retry.
      allowsAhead: trigger === "schedule" && (planned.current()?.scheduledAttempts ?? 0) > 0,
      // How long the lane's earlier attempt takes must not decide where this one goes and how it is signed.
      prepare() {
        const found = withEvent(planned.current());
        target = found === undefined ? null : targetFor(found, { trigger, at: time.now() });
        if (found === undefined || target === null) return;
        const attempt = `${found.delivery.deliveryId}/${countOf(found.delivery) + 1}`;
        actions = faults.forAttempt(found.event, attempt);
      },
      async run(at) {
        let left: Delivery | undefined;
        try {
          left = await make(planned.current(), { trigger, at, target, actions });
        } finally {
          planned.ended(left);
        }
      },
      dropped: () => planned.ended(undefined),
    });
  }

  async function make(
    delivery: Delivery | undefined,
    prepared: Omit<AttemptInput, "delivery" | "event" | "isAwaited">,
  ): Promise<Delivery | undefined> {
    const found = withEvent(delivery);
    if (found === undefined) return undefined;
    const input = { ...found, ...prepared, isAwaited: isAwaited(found.delivery.deliveryId) };
    const made = await makeAttempt(ground, transport, input);
    if (isClosed && made.attempt.error === "failed") return undefined;
    // Only attempts of its own message, which wait for each other, replace a delivery: another one here is another state's.
    if (state.deliveries.get(found.delivery.deliveryId) !== found.delivery) return undefined;
    const left = { ...afterAttempt(found.delivery, made.attempt, settings.readings), frozen: made.frozen };
    state.deliveries.put(left.deliveryId, left);
    journal.tell({ type: "delivery", delivery: left });
    return left;
  }

  function close(): void {
    isClosed = true;
    transport.close();
  }

  function withEvent(delivery: Delivery | undefined): { delivery: Delivery; event: EventRecord } | undefined {
    const event = delivery && state.events.get(delivery.eventId);
    return delivery === undefined || event === undefined ? undefined : { delivery, event };
  }

  /** What somebody asks for goes where the event would go now, whatever was looked up for it (DLV-18). */
  function targetFor(
    { delivery, event }: { delivery: Delivery; event: EventRecord },
    { trigger, at }: Now,
  ): Target | null {
    const asked = trigger !== "schedule" || settings.readings.resolveTarget === "attempt";
    return asked ? targetOf(ground, event, at) : delivery.target;
  }

  return { plan, close };
}
