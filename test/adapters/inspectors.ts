/** Something to mount where a test needs no whole inspector. */

import { silentLogger } from "../../src/internal/logger.ts";
import type { InspectorRequest, Mountable } from "../../src/tools/inspector/index.ts";

/** It answers 200 with what `tell` says of a request, and keeps the requests. */
export function inspectorAt<Native>(
  path: string,
  tell: (request: InspectorRequest<Native>) => unknown = () => "here",
): { inspector: Mountable<Native>; seen: InspectorRequest<Native>[] } {
  const seen: InspectorRequest<Native>[] = [];
  const inspector: Mountable<Native> = {
    path,
    logger: silentLogger,
    async handle(request) {
      seen.push(request);
      const body = String(await tell(request));
      const headers = { "content-type": "text/plain", "content-length": `${Buffer.byteLength(body)}` };
      return { status: 200, headers, body };
    },
  };
  return { inspector, seen };
}
