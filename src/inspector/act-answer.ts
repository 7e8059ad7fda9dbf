/** What an act came to, also where the inbox throws because a quarantined body is still no event. */
import { OncehookError } from "../errors.ts";
import type { ActResult } from "../inbox/store.ts";
import type { ActAnswer } from "./api.ts";

export async function answerOf(act: () => Promise<ActResult>): Promise<ActAnswer> {
  try {
    const result = await act();
    return result.ok ? { ok: true, event: result.event ?? null } : result;
  } catch (error) {
    if (error instanceof OncehookError && error.code === "invalid_event") return { ok: false, reason: "invalid_event" };
    throw error;
  }
}
