/** Calls whose answers are held against what their route promises: its success schema, or the core error wrapper (GEN-2). */
import { expect } from "vitest";
import { coreErrorSchema, Router } from "../../../src/messaging/emulator/http/route.ts";
import type { Emulator } from "../../../src/messaging/emulator/index.ts";
import { ROUTES } from "../../../src/messaging/emulator/routes/table.ts";
import { type Called, type CallOptions, call, tokenOf } from "./support.ts";

const router = new Router(ROUTES);

/** A call of a core route, of the main client unless a token is given. */
export async function checkedCall(
  emulator: Emulator,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Called> {
  const called = await call(emulator, method, path, { token: await tokenOf(emulator), ...options });
  expect(called.headers.get("content-type")).toBe("application/json");
  const success = router.match(method, path)?.route.success;
  if (called.status >= 400) {
    expect(coreErrorSchema.safeParse(called.body).error).toBeUndefined();
  } else {
    expect(called.status).toBe(success?.status);
    expect(success?.schema.safeParse(called.body).error).toBeUndefined();
  }
  return called;
}

/** What a refusal says, short: `"400 INVALID_REQUEST"`; the status alone for a success. */
export function verdict({ status, body }: Called): string {
  return status >= 400 ? `${status} ${body.error.code}` : String(status);
}
