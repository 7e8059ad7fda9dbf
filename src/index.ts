/** oncehook: receive a messaging service's webhooks verified, stored before the 2xx, once in effect and in order. */
export {
  createReceiver,
  createVerifier,
  type EventsOf,
  type OpenInboxOptions,
  openInbox,
  type Receiver,
  type ReceiverOptions,
  type ServiceEvents,
  type SourceReceiverOptions,
  type Sources,
  type SourcesReceiver,
  type SourcesReceiverOptions,
  type SourceVerifierOptions,
  type VerifiedWebhook,
  type VerifierOptions,
  type Wanted,
} from "./create.ts";
export {
  DeadLettered,
  KeyringError,
  LeaseLost,
  OncehookError,
  type OncehookErrorCode,
  PermanentError,
  RetryAfter,
  type ServiceErrorCode,
  SetupError,
  StoreError,
} from "./errors.ts";
export { checkDrainOptions, type DrainOptions, type DrainResult } from "./inbox/claims.ts";
export {
  type CopyOptions,
  type CopyProgress,
  type CopyResult,
  type CopyStore,
  copyInbox,
  type InboxContent,
} from "./inbox/copy.ts";
export type {
  ConflictNotice,
  DeadLetterNotice,
  FailureNotice,
  Handler,
  HandlerContext,
  HandlerMeta,
  HandlerOptions,
} from "./inbox/handlers.ts";
export type {
  AttemptEnding,
  AttemptInfo,
  AttemptReport,
  CommitReport,
  DeliveryMessage,
  DeliveryOutcome,
  DeliveryReport,
  HandlerMessage,
  Instrumentation,
  Observer,
} from "./inbox/instrumentation.ts";
export type * from "./inbox/record.ts";
export type * from "./inbox/store.ts";
export type { Subject } from "./inbox/subject.ts";
export type { Clock, Random, Timer } from "./internal/clock.ts";
export { foreignLabels } from "./internal/foreign-error.ts";
export { type LogFields, type Logger, loggerOption } from "./internal/logger.ts";
export { refuseUnknownOptions } from "./internal/options.ts";
/** For adapters, which see nothing of this package but this entry: what a log may say of a foreign error, and how options are treated. */
export { atFirstUse } from "./internal/process.ts";
export type { Alert, AlertCondition, AlertLimits, AlertOptions } from "./receiver/alerts.ts";
export type {
  BulkOptions,
  BulkProgress,
  BulkQuery,
  BulkRefusal,
  DiscardAllOptions,
  DiscardCounts,
  ErrorGroup,
  ReplayAllOptions,
  ReplayCounts,
} from "./receiver/bulk.ts";
export type { Answer, BodyReading, BodyResult, IncomingWebhook } from "./receiver/incoming.ts";
export * as answers from "./receiver/incoming.ts";
export type { Inbox, Pruned, PruneOptions } from "./receiver/open-inbox.ts";
export type {
  ActOptions,
  ExportedBody,
  ExportedEvent,
  ExportedQuarantine,
  InboxOperator,
  SubjectRecord,
} from "./receiver/operator.ts";
export type { RetentionOptions } from "./receiver/options.ts";
export type { Health, HealthDetails, HealthReason, SourceView, StopOptions } from "./receiver/receiver.ts";
export type { UnverifiedWebhook, VerifiedRequestOf } from "./receiver/verifier.ts";
export type { WaitOptions } from "./receiver/wait-for.ts";
export type { EventFilter } from "./sources/filter.ts";
export type { HeaderSource, Kept } from "./sources/headers.ts";
export type { Keyring, KeyringContext, KeyringProvider, KindKeyring, SecretSet, Slot } from "./sources/keys.ts";
export type { GapWait } from "./sources/messaging/gap-wait.ts";
export {
  eventIdentity,
  isKnownEvent,
  isKnownEventType,
  KNOWN_EVENT_TYPES,
  type ParseFailureCode,
  type ParseResult,
  parseEvent,
} from "./sources/messaging/parse.ts";
export {
  SIGNATURE_HEADER,
  type SignatureHeaders,
  type SignOptions,
  signPayload,
  TIMESTAMP_HEADER,
} from "./sources/messaging/sign.ts";
export type { MessageRef } from "./sources/messaging/source.ts";
export type * from "./sources/messaging/types.ts";
export type { TimestampFormat, Tolerance } from "./sources/messaging/verify.ts";
export { type VerifyOptions, type VerifyResult, verifySignature } from "./sources/messaging/verify-signature.ts";
export type { PreviousSecret, Secret } from "./sources/secret.ts";
export type { SourceEvents, WebhookSource } from "./sources/source.ts";
