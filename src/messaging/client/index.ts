/** oncehook/client: the service's API, typed, with one token, retries that never send twice, and typed errors. */
export type { Call, WithResponse } from "./call.ts";
export { type Client, createClient } from "./client.ts";
export {
  AbortedError,
  ApiError,
  type CallFacts,
  ConflictError,
  ConnectionError,
  ForbiddenError,
  InvalidArgumentError,
  InvalidRequestError,
  NotFoundError,
  OAuthError,
  RecipientsRejectedError,
  type Refusal,
  ResponseValidationError,
  ServerError,
  ServiceError,
  TimeoutError,
  UnauthorizedError,
  UnknownApiError,
  UpstreamError,
} from "./errors.ts";
export type {
  BackoffOptions,
  CallOptions,
  ClientOptions,
  RequestMethod,
  RequestNotice,
  RequestOptions,
  ResponseNotice,
  RetryNotice,
  SendOptions,
} from "./options.ts";
export type * from "./types.ts";
