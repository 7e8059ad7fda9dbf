/** Handing over events: a delivery per event and target, attempts by the plan, and the extra ones that somebody asks for. */
import type { Cancel } from "../agenda.ts";
import type { Deliveries, Faults, Ground } from "../service.ts";
import type { Delivery, EventRecord } from "../state/records.ts";
import { withoutTarget } from "./attempt.ts";
import { createAttempts } from "./attempts.ts";
import { targetOf } from "./target.ts";
import { createTransport, type Transport } from "./transport.ts";

export function createDeliveries(
  ground: Ground,
  faults: Faults,
  transport: Transport = createTransport(ground.settings),
): Deliveries {
  const { state, scheduler, time, settings } = ground;
  let waiters = createWaiters();
  const isAwaited = (deliveryId: string) => waiters.has(deliveryId);
  const attempts = createAttempts(ground, faults, { transport, isAwaited });
  const plans = createPlans();

  /** Finds a delivery as it has become by then, if it still fits. */
  const ifStill = (fits: (delivery: Delivery) => boolean, deliveryId: string) => () => {
    const delivery = state.deliveries.get(deliveryId);
    return delivery !== undefined && fits(delivery) ? delivery : undefined;
  };

  /** Retries keep the first attempt's place, so that their order does not depend on which attempt ended first. */
  function schedule({ deliveryId, messageId, nextAttemptAt: dueAt }: Delivery, place: number): void {
    if (dueAt === null) return;
    const { wake } = waiters;
    const current = ifStill(({ nextAttemptAt }) => nextAttemptAt === dueAt, deliveryId);
    const ended = (left: Delivery | undefined) => {
      plans.done(deliveryId);
      if (left !== undefined) schedule(left, place);
      wake(deliveryId);
    };
    const input = { deliveryId, messageId, trigger: "schedule", dueAt, place, current, ended } as const;
    plans.keep(deliveryId, attempts.plan(input));
  }

  /** One extra attempt, while `wanted` gives its delivery; undefined when it was not made, or its outcome is not known. */
  function attemptOnce(
    { deliveryId, messageId }: Delivery,
    trigger: "redelivery" | "recovery",
    wanted: () => Delivery | undefined,
  ): Promise<Delivery | undefined> {
    const { wake } = waiters;
    return new Promise((resolve) => {
      const ended = (left: Delivery | undefined) => {
        if (left?.nextAttemptAt === null) plans.cancel(deliveryId);
        wake(deliveryId);
        resolve(left);
      };
      const place = scheduler.nextPlace();
      attempts.plan({ deliveryId, messageId, trigger, dueAt: time.now(), place, current: wanted, ended });
    });
  }

  return {
    queue(event, options) {
      const { resolveTarget } = settings.readings;
      const target = targetOf(ground, event, options.at);
      // What is due later is looked up later, unless the event decides (DLV-18).
      const isLost = target === null && (options.delayMs === 0 || resolveTarget === "event");
      const kept = { target: resolveTarget === "event" ? target : null, frozen: null };
      return Array.from({ length: Math.max(1, options.copies) }, () => {
        const delivery = { deliveryId: state.nextId("dlv"), ...begin(event, { ...options, isLost }), ...kept };
        state.deliveries.put(delivery.deliveryId, delivery);
        schedule(delivery, scheduler.nextPlace());
        return delivery;
      });
    },
    async redeliver(deliveryId) {
      const delivery = state.deliveries.get(deliveryId);
      if (delivery === undefined) return "unknown";
      return (await attemptOnce(delivery, "redelivery", () => state.deliveries.get(deliveryId))) ?? "cut_off";
    },
    async recover(since) {
      const isLost = (delivery: Delivery) => delivery.createdAt >= since && delivery.state !== "delivered";
      // An attempt that is under way may succeed before the turn of this one comes.
      const tried = [...state.deliveries.values()]
        .filter(isLost)
        .map((delivery) => attemptOnce(delivery, "recovery", ifStill(isLost, delivery.deliveryId)));
      return (await Promise.all(tried)).filter((delivery) => delivery !== undefined);
    },
    nextAttempt(deliveryId) {
      const isPlanned = (state.deliveries.get(deliveryId)?.nextAttemptAt ?? null) !== null;
      return isPlanned ? waiters.wait(deliveryId) : Promise.resolve();
    },
    forget() {
      waiters = waiters.renewed();
      transport.sendAway();
    },
    resume() {
      for (const delivery of state.deliveries.values()) schedule(delivery, scheduler.nextPlace());
    },
    close: attempts.close,
  };
}

/** How the handing over of an event begins: planned, or ended at once. */
function begin(
  { eventId, messageId, eventType }: EventRecord,
  { at, delayMs, copies, isLost }: { at: number; delayMs: number; copies: number; isLost: boolean },
): Omit<Delivery, "deliveryId" | "target" | "frozen"> {
  const state = copies === 0 ? "dropped" : isLost ? "no_target" : "pending";
  return {
    eventId,
    messageId,
    eventType,
    state,
    createdAt: at,
    nextAttemptAt: state === "pending" ? at + delayMs : null,
    scheduledAttempts: 0,
    attempts: state === "no_target" ? [withoutTarget("schedule", at)] : [],
    droppedAttempts: 0,
  };
}

/** The next scheduled attempt of each delivery that has one; cancelled, it does not wait for its time in vain. */
function createPlans() {
  const plans = new Map<string, Cancel>();
  return {
    keep: (deliveryId: string, cancel: Cancel) => void plans.set(deliveryId, cancel),
    done: (deliveryId: string) => void plans.delete(deliveryId),
    cancel(deliveryId: string) {
      plans.get(deliveryId)?.();
      plans.delete(deliveryId);
    },
  };
}

/** Who waits for an attempt of a delivery. */
interface Waiters {
  wait(deliveryId: string): Promise<void>;
  has(deliveryId: string): boolean;
  wake(deliveryId: string): void;
  /** Wakes all. What is under way still ends, and wakes those who waited for it here, of whom there are none left. */
  renewed(): Waiters;
}

function createWaiters(): Waiters {
  const waiters = new Map<string, (() => void)[]>();
  return {
    wait: (deliveryId: string) =>
      new Promise<void>((resolve) => {
        waiters.set(deliveryId, [...(waiters.get(deliveryId) ?? []), resolve]);
      }),
    has: (deliveryId: string) => waiters.has(deliveryId),
    wake(deliveryId: string) {
      const woken = waiters.get(deliveryId) ?? [];
      waiters.delete(deliveryId);
      for (const wake of woken) wake();
    },
    renewed() {
      for (const woken of waiters.values()) for (const wake of woken) wake();
      waiters.clear();
      return createWaiters();
    },
  };
}
