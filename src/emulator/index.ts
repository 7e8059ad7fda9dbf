/** `oncehook/emulator`: the service itself, complete and repeatable, for development and end-to-end tests. */
export type { ClockMode, EmulatorClock } from "./clock.ts";
export type { Changed, ClientFields, Control, ControlledClient, Filter, StateExport } from "./control/control.ts";
export { createEmulator, type Emulator } from "./emulator.ts";
export type { FaultRule } from "./faults/rule.ts";
export type { JournalEntry } from "./journal.ts";
export type { EmulatorOptions, Lifecycle } from "./options.ts";
export { PROFILE_NAMES, type ProfileName } from "./profiles.ts";
export type { Credentials, Fixtures } from "./seed.ts";
export type {
  Account,
  Attempt,
  Client,
  Delivery,
  EventRecord,
  InboundMessage,
  Kind,
  Message,
  PhoneNumber,
  RequestRecord,
} from "./state/records.ts";
export type { Reading, ReadingName, Readings } from "./unspecified.ts";
export { READINGS } from "./unspecified.ts";
