/** Metrics outlast the receiver that they were made for: after a reload in development the next one on its inbox counts on. */
import { BoundedLabel } from "./bounded.ts";
import { Gauges, type Instrumentable } from "./gauges.ts";
import { type Measures, type Meters, measuring, startAtZero } from "./measuring.ts";

interface Lasting<Made extends Meters> extends Measures {
  readonly meters: Made;
  readonly gauges: Gauges;
}

interface Measured<Place, Made extends Meters> {
  /** A meter or a registry. */
  readonly place: Place;
  readonly system: string;
  make(gauges: Gauges): Made;
  /** Called before anything is measured, also for what was made before. */
  register?(meters: Made): void;
}

/** Metrics by their place, and by the name and inbox of the receivers that they are of. */
export class LastingMetrics<Place extends object, Made extends Meters> {
  readonly #made = new WeakMap<Place, Map<string, Lasting<Made>>>();

  /** Measures `receiver` with what is there for it, or else with what is made now. */
  measure(receiver: Instrumentable, { place, system, make, register }: Measured<Place, Made>): void {
    const made = this.#made.get(place) ?? new Map<string, Lasting<Made>>();
    const lasting = made.get(receiver.key) ?? madeBy(make);
    register?.(lasting.meters);
    this.#made.set(place, made.set(receiver.key, lasting));
    // Called twice for one receiver, it must not count twice.
    if (lasting.gauges.follow(receiver)) receiver.instrument(measuring(lasting, system));
  }
}

function madeBy<Made extends Meters>(make: (gauges: Gauges) => Made): Lasting<Made> {
  const gauges = new Gauges();
  const lasting = { gauges, meters: make(gauges), errors: new BoundedLabel(), reasons: new BoundedLabel() };
  startAtZero(lasting);
  return lasting;
}
