/** Handing over events: a delivery per event and target, attempts by the plan, and the extra ones that somebody asks for. */
import type { AttemptAction, Faults } from "../faults.ts";
import type { Cancel } from "../scheduler.ts";
import type { Deliveries, EmulatorParts } from "../service.ts";
import {
  type Attempt,
  type Delivery,
  type EventRecord,
  type PhoneNumber,
  previousSecretAt,
  type Target,
  type WebhookRecord,
  webhookId,
} from "../state/records.ts";
import type { Readings } from "../unspecified.ts";
import { type AttemptInput, afterAttempt, countOf, makeAttempt, withoutTarget } from "./attempt.ts";
import { createTransport, type Transport } from "./transport.ts";

export function createDeliveries(
  ground: EmulatorParts,
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
      // The target of a later attempt is looked up later, unless the event decides (DLV-18).
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

// Attempts in their time: planned with the scheduler, made if they are still wanted, and kept in their delivery.

/** An attempt to be made. */
interface Planned {
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

interface Attempts {
  /** Attempts of one message never overlap. What it returns forgets the attempt, unless it has started. */
  plan(planned: Planned): Cancel;
  /** Cuts off what is under way, as if it had not begun: an import of the state makes it again. */
  close(): void;
}

type Now = Pick<Planned, "trigger"> & { readonly at: number };

interface Way {
  readonly transport: Transport;
  /** Whether somebody waits for the end of a delivery's attempt. */
  isAwaited(deliveryId: string): boolean;
}

function createAttempts(ground: EmulatorParts, faults: Faults, { transport, isAwaited }: Way): Attempts {
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

// Where an event goes and which secrets sign it there (DLV-1 to DLV-4, DLV-9, DLV-15, DLV-16).

/** The number's own target if it has one, otherwise the kind's default if that is enabled, otherwise null (DLV-2, DLV-3). */
function targetOf(
  { state, settings }: Pick<EmulatorParts, "state" | "settings">,
  { kind, numberId, apiClientId }: Pick<EventRecord, "kind" | "numberId" | "apiClientId">,
  now: number,
): Target | null {
  const { readings } = settings;
  const config = state.webhooks.get(webhookId(apiClientId, kind));
  const override = overrideOf(state.numbers.get(numberId), kind);
  if (override !== null) {
    return { url: override, secrets: readings.overrideSigning === "inherit" ? secretsOf(config, now, readings) : null };
  }
  if (config === undefined || !config.enabled || config.endpointUrl === null) return null;
  return { url: config.endpointUrl, secrets: secretsOf(config, now, readings) };
}

function overrideOf(number: PhoneNumber | undefined, kind: EventRecord["kind"]): string | null {
  return (kind === "inbound" ? number?.webhookInboundOverride : number?.webhookDeliveryOverride) ?? null;
}

/** Null when nothing is signed, which without a secret nothing can be. Two secrets only while both are valid. */
function secretsOf(
  config: WebhookRecord | undefined,
  now: number,
  { overlapSigning }: Readings,
): readonly string[] | null {
  if (config === undefined || !config.signingEnabled || config.currentSecret === null) return null;
  const current = config.currentSecret;
  const previous = previousSecretAt(config, now);
  if (previous === null) return [current];
  switch (overlapSigning) {
    case "current":
      return [current];
    case "previous":
      return [previous];
    case "both":
    case "alternate":
      return [current, previous];
    default:
      return overlapSigning satisfies never;
  }
}
