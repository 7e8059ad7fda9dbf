/** The inspector: how a request gets its answer. */
import type { Logger } from "../../internal/logger.ts";
import {
  type Authorize,
  authorization,
  createGuard,
  type Granted,
  type Guard,
  includes,
  logRefusal,
} from "./access.ts";
import { type Assets, fileAnswer, headOnly, loadAssets, pageAnswer } from "./assets.ts";
import {
  CodeLog,
  failureAnswer,
  type InspectorAnswer,
  type InspectorRequest,
  type Mountable,
  refused,
  secured,
  TEXT,
  textReply,
} from "./http.ts";
import { Samples } from "./look.ts";
import { type InspectorOptions, type ResolvedInspector, resolveInspector } from "./options.ts";
import { type ApiCall, type ApiRoute, matcher, type PathMatch, type PathTarget } from "./route.ts";
import { actRoutes, bulkRoute } from "./routes/acts.ts";
import { eventsRoute } from "./routes/events.ts";
import { laneRoutes, quarantineRoutes } from "./routes/lanes.ts";
import { auditRoute, groupsRoute, historyRoute, lookupRoute, overviewRoute } from "./routes/overview.ts";

const MAX_BODY_BYTES = 64 * 1024;

const API_ROUTES: readonly ApiRoute[] = [
  overviewRoute,
  historyRoute,
  eventsRoute,
  ...laneRoutes,
  lookupRoute,
  ...quarantineRoutes,
  groupsRoute,
  auditRoute,
  ...actRoutes,
  bulkRoute,
];

/** What an adapter mounts; made by `createInspector`. */
export interface Inspector<Request = unknown> extends Mountable<Request> {
  /** Stops bulk work, and refuses further calls of the API. The inbox stays open. Closing twice is harmless. */
  close(): void;
}

/**
 * Makes an inspector: a page with a JSON API that shows what happened to a message. An adapter mounts it.
 *
 * @throws SetupError naming the option and the fix
 */
export function createInspector<Request = unknown>(options: InspectorOptions<Request>): Inspector<Request> {
  return new MountedInspector(resolveInspector(options));
}

class MountedInspector<Request> implements Inspector<Request> {
  readonly path: string;
  readonly logger: Logger;
  readonly #options: ResolvedInspector<Request>;
  readonly #assets: Assets;
  readonly #match: PathMatch;
  readonly #guard: Guard;
  readonly #authorize: Authorize<Request>;
  readonly #samples: Samples;
  readonly #log: CodeLog;
  readonly #closing = new AbortController();

  constructor(options: ResolvedInspector<Request>) {
    const { path, origins, logger, clock } = options;
    this.path = path;
    this.logger = logger;
    this.#options = options;
    this.#assets = loadAssets(path);
    this.#match = matcher(path, this.#assets, API_ROUTES);
    this.#guard = createGuard(origins);
    this.#log = new CodeLog(logger, clock);
    this.#authorize = authorization(options.authorize, this.#log);
    this.#samples = new Samples(clock);
  }

  async handle(request: InspectorRequest<Request>): Promise<InspectorAnswer> {
    const answer = await this.#answer(request).catch((error: unknown) => failureAnswer(error, this.#log));
    return secured(request.method === "HEAD" ? headOnly(answer) : answer);
  }

  close(): void {
    this.#closing.abort();
  }

  async #answer(request: InspectorRequest<Request>): Promise<InspectorAnswer> {
    const [pathname = "", query] = request.url.split("?", 2);
    const place = this.#match(pathname);
    if (place === null) return nothingHere();
    const refusal = this.#guard(request, place);
    if (refusal !== null) {
      logRefusal(this.#log, refusal.code, request.headers);
      return refusal.answer;
    }
    const granted = await this.#authorize(request.native);
    if (granted === false) return denied(place);
    switch (place.kind) {
      case "page":
        return pageAnswer(this.#assets.page);
      case "asset":
        return fileAnswer(place.asset, request.headers);
      case "api":
        return this.#called(request, place, { granted, query });
      case "nothing":
        return nothingHere();
    }
  }

  async #called(
    request: InspectorRequest<Request>,
    { routes, id }: Extract<PathTarget, { kind: "api" }>,
    { granted, query }: { readonly granted: Granted; readonly query: string | undefined },
  ): Promise<InspectorAnswer> {
    const route = routes.find(({ method }) => method === request.method);
    if (route === undefined) return nothingHere();
    if (this.#closing.signal.aborted) return refused("unavailable", "The inspector is closed.");
    if (!includes(granted.access, route.access))
      return refused("forbidden", `This needs the right "${route.access}"; you have "${granted.access}".`);
    return route.run(this.#callOf(request, granted, { id, query: new URLSearchParams(query) }));
  }

  #callOf(request: InspectorRequest<Request>, granted: Granted, { id, query }: Pick<ApiCall, "id" | "query">): ApiCall {
    const { inbox, clock, logger } = this.#options;
    const authorize = this.#authorize;
    const closing = this.#closing.signal;
    return {
      ...{ inbox, clock, logger, id, query },
      ...granted,
      samples: this.#samples,
      readJson: () => request.readJson(MAX_BODY_BYTES),
      async reauthorize() {
        const now = await authorize(request.native);
        return now === false ? false : now.access;
      },
      // A getter, because each signal stays registered with `closing`: only routes that need one make it.
      get signal() {
        return AbortSignal.any([request.signal, closing]);
      },
    };
  }
}

function nothingHere(): InspectorAnswer {
  return refused("not_found", "The inspector has nothing here.");
}

function denied(place: PathTarget): InspectorAnswer {
  if (place.kind === "api" || place.kind === "nothing")
    return refused("unauthorized", "You may not look at this inbox, or you have to sign in again.");
  return textReply(TEXT, "You may not look at this inbox, or you have to sign in first.\n", { status: 401 });
}
