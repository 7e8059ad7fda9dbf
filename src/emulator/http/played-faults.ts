/** The faults of an API call: what stands in the service's place, and what happens to its answer. */
import { sleep } from "../../internal/clock.ts";
import type { ApiAction } from "../faults/rule.ts";
import type { Service } from "../service.ts";
import { type Answer, type Refusal, usualCode } from "./answers.ts";
import { revokeBearer } from "./bearer.ts";

/** What answers in the service's place; null when nothing does. */
export async function standIn(
  service: Service,
  faults: readonly ApiAction[],
  request: Request,
): Promise<Answer | null> {
  for (const fault of faults) {
    if (fault.type === "delay" && !(await waited(service, fault.ms))) return { kind: "reset" };
    if (fault.type === "revokeToken") revokeBearer(service, request.headers);
    if (fault.type === "badGateway") return { kind: "badGateway" };
    if (fault.type === "reset" && fault.when === "before") return { kind: "reset" };
    if (fault.type === "status") return refusalOf(fault);
  }
  return null;
}

function refusalOf({ status, code, retryAfterSeconds }: Extract<ApiAction, { type: "status" }>): Refusal {
  const refusal = {
    kind: "refusal",
    status,
    code: code ?? usualCode(status),
    message: "A fault rule answered this call.",
    details: status === 502 ? { providerStatus: 503 } : {},
  } as const;
  return retryAfterSeconds === undefined
    ? refusal
    : { ...refusal, headers: { "retry-after": String(retryAfterSeconds) } };
}

/** The faults that come after the service did its work. */
export async function afterwards(service: Service, answer: Answer, played: readonly ApiAction[]): Promise<Answer> {
  const late = answer.kind === "reply" ? (answer.play ?? []) : [];
  for (const fault of late) if (fault.type === "delay") await waited(service, fault.ms);
  return played.some((fault) => fault.type === "reset") ? { kind: "reset" } : answer;
}

/** Real time, whatever the emulator's does; false when it closes, for nobody is there any more to wait for the answer. */
async function waited({ settings, closing }: Service, ms: number): Promise<boolean> {
  await sleep(settings.systemClock, ms, closing);
  return !closing.aborted;
}
