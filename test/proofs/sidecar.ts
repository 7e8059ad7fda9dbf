/** `npm run prove -- sidecar`: what `oncehook listen --forward-to` posts arrives in a Python application, over its outage. */

import { pythonIsMissing } from "../tools/cli/python-application.ts";
import type { Programme, Proof } from "./programme.ts";
import { feedSidecar, problemsOf } from "./sidecar-feeding.ts";

/** Three events each. */
const SHORT = 1_000;
const FULL = 16_667;
/** So few fail that the worker does not pause itself. */
const SMALL = { messages: 60, disturbed: 12, killedAtWork: false };

export const sidecar: Programme = {
  name: "sidecar",
  what: "every event once and in order in a Python application that is killed and comes back",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const missing = pythonIsMissing();
    if (missing !== null) return { count: 0, unit: "events", problems: [missing] };
    const messages = full ? FULL : SHORT;
    const plan = small ? SMALL : { messages, disturbed: messages, killedAtWork: true };
    const fed = await feedSidecar({ ...plan, limitMs: 300_000 });
    const { events, deliveries, triedAgain, faults } = fed;
    say(
      `${events} events in ${deliveries} deliveries, ${triedAgain} tried again: ${faults.lost} lost, ${faults.disordered} out of order`,
    );
    return { count: events, unit: "events", problems: problemsOf(fed) };
  },
};
