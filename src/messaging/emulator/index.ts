/** `oncehook/emulator`: the service itself, complete and repeatable, for development and end-to-end tests. */

export type { Clock, Timer } from "../../internal/clock.ts";
export type { LogFields, Logger } from "../../internal/logger.ts";
export type { ClockMode, EmulatorClock } from "./clock.ts";
export type {
  Changed,
  ClientFields,
  Control,
  ControlledClient,
  FaultControls,
  Filter,
  NewClient,
  NewNumber,
} from "./control/control.ts";
export { createEmulator, type Emulator } from "./emulator.ts";
export type { FaultRule, ParsedFaultRule } from "./faults.ts";
export type { StateExport } from "./options.ts";
export { type EmulatorOptions, type Lifecycle, PROFILE_NAMES, type ProfileName } from "./options.ts";
export type { Credentials, Fixtures } from "./seed.ts";
export type { JournalEntry, TriggerInput } from "./service.ts";
export type {
  Account,
  Attempt,
  Client,
  Delivery,
  EventRecord,
  FrozenSignature,
  InboundMessage,
  Kind,
  Message,
  PhoneNumber,
  RequestRecord,
  Status,
  Step,
  Target,
} from "./state/records.ts";
export type { NumberReading, Reading, ReadingName, Readings, TextReading } from "./unspecified.ts";
export { READINGS } from "./unspecified.ts";
