// TypeScript with bundler resolution: whatever `oncehook/emulator` takes and gives can be named by those who wrap it.
import {
  type Attempt,
  type Clock,
  type ClockMode,
  type Control,
  createEmulator,
  type Delivery,
  type Emulator,
  type EmulatorClock,
  type EmulatorOptions,
  type EventRecord,
  type FaultControls,
  type FaultRule,
  type Fixtures,
  type FrozenSignature,
  type InboundMessage,
  type JournalEntry,
  type LogFields,
  type Logger,
  type Message,
  type NumberReading,
  type ParsedFaultRule,
  type ProfileName,
  READINGS,
  type Reading,
  type Readings,
  type Step,
  type Target,
  type TextReading,
  type Timer,
  type TriggerInput,
} from "oncehook/emulator";

export class Stage {
  readonly #emulator: Emulator;

  static async start(logger: Logger, systemClock: Clock, unspecified: Partial<Readings>): Promise<Stage> {
    const [clock, profile, faults]: [ClockMode, ProfileName, FaultRule[]] = ["x60", "strict", []];
    const options: EmulatorOptions = { logger, systemClock, unspecified, clock, profile, faults };
    return new Stage(await createEmulator(options));
  }

  private constructor(emulator: Emulator) {
    this.#emulator = emulator;
  }

  get parts(): { control: Control; clock: EmulatorClock; fixtures: Fixtures; faults: FaultControls } {
    const { control, clock, fixtures } = this.#emulator;
    return { control, clock, fixtures, faults: control.faults };
  }

  trigger(event: TriggerInput): EventRecord {
    return this.#emulator.control.trigger(event);
  }

  watch(listener: (entry: JournalEntry) => void): () => void {
    return this.#emulator.control.watch(listener);
  }
}

export const stepsOf = (message: Message | InboundMessage): readonly Step[] =>
  message.direction === "outbound" ? message.steps : [];
export const targetOf = ({ target }: Delivery): Target | null => target;
export const frozenOf = ({ frozen }: Delivery): FrozenSignature | null => frozen;
export const lastOf = ({ attempts }: Delivery): Attempt | undefined => attempts.at(-1);
export const rulesOf = (faults: FaultControls): ParsedFaultRule[] => faults.list().map(({ rule }) => rule);
export const log = (logger: Logger, fields: LogFields): void => logger.info(fields, "said");
export const timer = (clock: Clock, ring: () => void): Timer => clock.setTimeout(ring, 1_000);

const readings: Readonly<Record<string, Reading>> = READINGS;
const open = (values: Reading["values"]): values is NumberReading | TextReading => !Array.isArray(values);
export const openReadings = Object.values(readings).filter(({ values }) => open(values));
export const allRejected: Readings["allRejected"] = 400;
