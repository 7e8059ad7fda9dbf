/** Calls the user's hooks, and keeps what goes wrong in them away from the call. */
import { errorPlaceOf } from "../internal/foreign-error.ts";
import type { Logger } from "../internal/logger.ts";
import type { ClientOptions, RequestNotice, ResponseNotice, RetryNotice } from "./options.ts";

export interface Hooks {
  readonly onRequest: ((notice: RequestNotice) => void) | undefined;
  readonly onResponse: ((notice: ResponseNotice) => void) | undefined;
  readonly onRetry: ((notice: RetryNotice) => void) | undefined;
}

/** The hooks, guarded; one that was not given stays undefined, so that no notice is made for it. */
export function guardedHooks(
  hooks: Pick<ClientOptions, "onRequest" | "onResponse" | "onRetry">,
  logger: Logger,
): Hooks {
  return {
    onRequest: guarded("onRequest", hooks.onRequest, logger),
    onResponse: guarded("onResponse", hooks.onResponse, logger),
    onRetry: guarded("onRetry", hooks.onRetry, logger),
  };
}

function guarded<Notice extends RequestNotice>(
  name: string,
  hook: ((notice: Notice) => unknown) | undefined,
  logger: Logger,
): ((notice: Notice) => void) | undefined {
  if (hook === undefined) return undefined;
  return (notice) => {
    const dropped = (error: unknown) => {
      const kind = error instanceof Error ? error.name : typeof error;
      const fields = { hook: name, operation: notice.operation, error: kind, ...errorPlaceOf(error) };
      logger.error(fields, "A hook of the client threw.");
    };
    try {
      // A hook may be async though its type says nothing of it.
      const result = hook(notice);
      if (result instanceof Promise) result.catch(dropped);
    } catch (error) {
      dropped(error);
    }
  };
}
