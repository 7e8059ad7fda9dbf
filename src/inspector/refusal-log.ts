/** Tells once a minute that requests are refused for their Host or Origin: a mistake in `origins` looks like an attack, and the reverse. */
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { type HeaderSource, readHeader } from "../signature/headers.ts";
import type { ApiErrorCode } from "./api.ts";
import { originOf } from "./origin.ts";

const TELL_EVERY_MS = 60_000;
/** As a Host is written; anything else that was sent is not told. */
const PLAIN_HOST = /^(?:[a-z\d.-]{1,100}|\[[a-f\d:.]{2,45}\])(?::\d{1,5})?$/i;

export class RefusalLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #toldAt = new Map<ApiErrorCode, number>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  tell(code: ApiErrorCode, headers: HeaderSource): void {
    if (code !== "host_not_allowed" && code !== "origin_not_allowed") return;
    const now = this.#clock.monotonic();
    if (now - (this.#toldAt.get(code) ?? Number.NEGATIVE_INFINITY) < TELL_EVERY_MS) return;
    this.#toldAt.set(code, now);
    if (code === "host_not_allowed") {
      const host = readHeader(headers, "host") ?? "";
      this.#logger.warn(
        { code, host: PLAIN_HOST.test(host) ? host : null },
        "The inspector refused a request for its Host. If it was yours, add what the browser shows to the option origins of createInspector(), or let the proxy pass the Host on.",
      );
    } else {
      this.#logger.warn(
        { code, origin: originOf(readHeader(headers, "origin")) },
        "The inspector refused a request that another site's page sent. If it was yours, add what the browser shows to the option origins of createInspector().",
      );
    }
  }
}
