/** The control API under `/_emulator`: the controls over HTTP, for this machine only. */
import { OncehookError } from "../../errors.ts";
import { logFailure, OWN_FAILURE } from "../http/own-failure.ts";
import { json } from "../http/responses.ts";
import { type Found, Router } from "../http/route.ts";
import type { ControlCall, ControlContext, ControlRoute } from "./control-route.ts";
import { guard } from "./guard.ts";
import { inputOf } from "./read-input.ts";
import { type ControlRefusal, refusalResponse } from "./refusal.ts";
import { CONTROL_ROUTES } from "./routes/table.ts";

const PREFIX = "/_emulator";
const METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE"];

/** Answers a call; `path` is the path behind the base path, beginning with `/_emulator`. */
export type ControlApi = (request: Request, path: string) => Promise<Response>;

export function createControlApi(context: ControlContext): ControlApi {
  const router = new Router(CONTROL_ROUTES);
  const { settings } = context.service;
  return async (request, path) => {
    const refusal = guard(request, settings);
    if (refusal !== null) return refusalResponse(refusal);
    const found = router.match(request.method, path.slice(PREFIX.length));
    if (found === undefined) return refusalResponse(unmatched(router, path.slice(PREFIX.length)));
    const input = await inputOf(request, found.route);
    if ("refusal" in input) return refusalResponse(input.refusal);
    const baseUrl = new URL(request.url).origin + settings.basePath;
    return answered(found, { ...context, ...input, params: found.params, baseUrl });
  };
}

function unmatched(router: Router<ControlRoute>, path: string): ControlRefusal {
  const allowed = METHODS.filter((method) => router.match(method, path) !== undefined);
  if (allowed.length === 0) return { code: "NOT_FOUND", message: "The control API has no such route." };
  const headers = { allow: allowed.join(", ") };
  return { code: "METHOD_NOT_ALLOWED", message: `This route takes ${headers.allow}.`, headers };
}

async function answered({ route }: Found<ControlRoute>, call: ControlCall<unknown, unknown>): Promise<Response> {
  try {
    const answer = await route.handle(call);
    return answer instanceof Response ? answer : json(200, JSON.stringify(answer));
  } catch (error) {
    return refusalResponse(refusalOf(error, call));
  }
}

/** What a control throws; its messages hold no values. Anything else is a failure of the emulator's own, never a stack. */
function refusalOf(error: unknown, { service }: ControlContext): ControlRefusal {
  if (error instanceof OncehookError) {
    const { code, message } = error;
    if (code === "unknown_id") return { code: "NOT_FOUND", message };
    if (code === "message_ended" || code === "cut_off") return { code: "CONFLICT", message };
    if (code === "invalid_option") return { code: "INVALID_REQUEST", message };
  }
  logFailure(service.settings, error, { message: "The emulator failed to answer a control call." });
  return { code: "SERVER_ERROR", message: OWN_FAILURE };
}
