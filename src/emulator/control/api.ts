/** The control API under `/_emulator`: the controls over HTTP, for this machine only. */
import type { Service } from "../service.ts";
import type { Control } from "./control.ts";

/** Answers a call; `path` is the path behind the base path, beginning with `/_emulator`. */
export function createControlApi(
  _service: Service,
  _control: Control,
): (request: Request, path: string) => Promise<Response> {
  return async () => new Response(null, { status: 404 });
}
