/** One HTTP request to a receiver: guarded, timed, never redirected. */
import { setImmediate } from "node:timers/promises";
import type { Settings } from "../options.ts";
import { createAgents, guardedLookup, type Resolve, systemResolve } from "./connections.ts";
import { createEgressGuard, type EgressSettings } from "./egress.ts";
import { exchange, type Outgoing } from "./exchange.ts";
import { failure, type Outcome } from "./outcome.ts";
import { createPlaces } from "./places.ts";

export type { Outgoing } from "./exchange.ts";
export type { Outcome } from "./outcome.ts";

export interface Transport {
  /**
   * Sends it once a place is free at its receiver; then its time begins. `renew` is called at that moment and gives what is sent
   * instead, to the same receiver: the wait may have made a signature old. Never rejects.
   */
  send(outgoing: Outgoing, renew?: () => Outgoing): Promise<Outcome>;
  /** Sends it besides the places: for what somebody waits for who may have one, and would keep it until this has ended. */
  sendBesides(outgoing: Outgoing): Promise<Outcome>;
  /** Ends as `failed` what was asked for and has not begun; what is under way goes on. */
  sendAway(): void;
  /** Ends idle connections, and what waits or is under way as `failed`; what comes later fails as well. */
  close(): void;
}

export type TransportSettings = EgressSettings & Pick<Settings, "attemptTimeoutMs" | "systemClock">;

/** Requests under way per receiver, so that one that hangs holds up no other; the rest wait in order. */
const MOST_PER_ORIGIN = 32;

/**
 * A transport with connections of its own. `resolve` looks names up; the system does by default.
 *
 * @throws SetupError for a range in `allowPrivateTargets` that is none, or is not private
 */
export function createTransport(
  settings: TransportSettings,
  { resolve = systemResolve }: { readonly resolve?: Resolve } = {},
): Transport {
  const { systemClock: clock, attemptTimeoutMs } = settings;
  const guard = createEgressGuard(settings);
  const wire = { clock, lookup: guardedLookup(guard, resolve), agents: createAgents(guard) };
  const places = createPlaces(MOST_PER_ORIGIN);
  const running = new Set<AbortController>();
  let timesSentAway = 0;
  let closed = false;

  async function send(outgoing: Outgoing, renew: () => Outgoing = () => outgoing): Promise<Outcome> {
    const refusal = refusalOf(outgoing);
    if (refusal !== null) return refusal;
    const askedAfter = timesSentAway;
    const place = await places.take(new URL(outgoing.url).origin);
    if (place === null) return failure("failed");
    try {
      return await sendNow(renew(), askedAfter);
    } finally {
      place.giveBack();
    }
  }

  async function sendBesides(outgoing: Outgoing): Promise<Outcome> {
    return refusalOf(outgoing) ?? sendNow(outgoing, timesSentAway);
  }

  function refusalOf({ url }: Outgoing): Outcome | null {
    if (closed) return failure("failed");
    return guard.refusalOf(url) === null ? null : failure("blocked");
  }

  async function sendNow(outgoing: Outgoing, askedAfter: number): Promise<Outcome> {
    const controller = new AbortController();
    const { signal } = controller;
    running.add(controller);
    const timer = clock.setTimeout(() => controller.abort("timeout"), attemptTimeoutMs);
    timer.keepAlive();
    try {
      await hearOfEndedConnections();
      // Sent away when it had a place already, but was not on the wire.
      if (askedAfter !== timesSentAway) return failure("failed");
      return await exchange(outgoing, { ...wire, signal });
    } catch {
      return failure("failed"); // A method or header that no request can have.
    } finally {
      timer.cancel();
      running.delete(controller);
    }
  }

  function sendAway(): void {
    timesSentAway += 1;
    places.sendAway();
  }

  function close(): void {
    closed = true;
    sendAway();
    for (const controller of running) controller.abort("failed");
    for (const agent of Object.values(wire.agents)) agent.destroy();
  }

  return { send, sendBesides, sendAway, close };
}

/**
 * Waits for a whole turn of the event loop: a connection that its receiver has ended by now is known to be, and not used again.
 * A receiver that starts again in the emulator's own process, as in tests, would otherwise seem to reset the next request.
 */
async function hearOfEndedConnections(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
