/** Calls of the control API, each answer held against its route's own schema. */
import { expect } from "vitest";
import { CONTROL_ROUTES, type ControlRoute } from "../../../src/messaging/emulator/control/routes.ts";
import type { Emulator } from "../../../src/messaging/emulator/index.ts";
import { type Called, call } from "./support.ts";

/** `control(emulator, "POST", "/clock", { advanceMs: 1 })`. */
export async function control(emulator: Emulator, method: string, path: string, body?: unknown): Promise<Called> {
  const called = await call(emulator, method, `/_emulator${path}`, body === undefined ? {} : { body });
  expect(called.headers.get("content-type")).toBe("application/json");
  expect(called.headers.get("cache-control")).toBe("no-store");
  if (called.status === 200) routeOf(method, path).answer?.parse(called.body);
  return called;
}

function routeOf(method: string, path: string): ControlRoute {
  const [bare = ""] = path.split("?");
  const isIt = (route: ControlRoute) =>
    route.method === method && new RegExp(`^${route.path.replace(/\{\w+\}/g, "[^/]+")}$`).test(bare);
  const found = CONTROL_ROUTES.find(isIt);
  if (found === undefined) throw new Error(`no control route ${method} ${path}`);
  return found;
}
