/** A call under `/api/core`: caller, route, headers, body, handler, in the order in which their errors go before each other (AUT-8). */

import type { Service } from "../service.ts";
import type { Client } from "../state/records.ts";
import { type Answer, refuse } from "./answers.ts";
import { callerOf } from "./bearer.ts";
import { type Body, schemaRefusal, unknownFields } from "./body.ts";
import type { CoreRoute, Found } from "./route.ts";

export interface CoreCall {
  readonly now: number;
  readonly headers: Headers;
  readonly body: Body;
  /** Undefined where no route matches (GEN-7). */
  readonly found: Found<CoreRoute> | undefined;
  warn(text: string): void;
  /** Told who calls, for the request log. */
  authenticated(client: Client): void;
}

export async function handleCore(service: Service, call: CoreCall): Promise<Answer> {
  const { now, headers, found } = call;
  const client = callerOf(service, headers, now);
  if (client === null) return refuse("UNAUTHORIZED", "A valid bearer token is required.");
  call.authenticated(client);
  if (found === undefined || found.route.exists?.(service.settings.readings) === false) {
    return refuse("NOT_FOUND", "There is no such route.");
  }
  const { route, params } = found;
  if (lacksCapability(service, route, client)) {
    return refuse("FORBIDDEN", `This client lacks the capability ${route.capability}.`);
  }
  const early = route.checkHeaders?.(headers) ?? null;
  if (early !== null) return early;
  if (call.body.bytes === null) return refuse("INVALID_REQUEST", "The body is longer than 1 MiB.");
  const fitted = fitBody(service, route, call);
  if (!fitted.ok) return fitted.refusal;
  return route.handle({
    service,
    now,
    client,
    params,
    headers,
    body: fitted.value,
    json: fitted.json,
    warn: call.warn,
  });
}

function lacksCapability(service: Service, route: CoreRoute, client: Client): boolean {
  if (!service.settings.readings["capabilities.enforce"] || route.capability === undefined) return false;
  return !client.capabilities.includes(route.capability);
}

type Fitted =
  | { readonly ok: true; readonly value: unknown; readonly json: unknown }
  | { readonly ok: false; readonly refusal: Answer };

/** What the route's schema makes of the body. */
function fitBody(service: Service, route: CoreRoute, { body, warn }: CoreCall): Fitted {
  if (route.body === undefined) return { ok: true, value: undefined, json: undefined };
  const parsed = body.json();
  if (!parsed.ok) return parsed;
  const unknown = unknownFields(route.body, parsed.value);
  if (unknown.length > 0 && service.settings.readings.unknownFields === "reject") {
    const refusal = refuse("INVALID_REQUEST", "The body has unknown fields.", { unknownFields: unknown });
    return { ok: false, refusal };
  }
  for (const name of unknown) warn(route.lookalikes?.get(name) ?? `unknown field "${name}" was ignored`);
  const fitted = route.body.safeParse(parsed.value);
  if (!fitted.success) return { ok: false, refusal: schemaRefusal(fitted.error) };
  return { ok: true, value: fitted.data, json: parsed.value };
}
