/** One route of the control API: what the router matches, and what its bodies, query parameters and answers look like. */
import type { z } from "zod";
import type { EmulatorClock } from "../clock.ts";
import type { Service } from "../service.ts";
import type { Control } from "./control.ts";
import type { Streams } from "./stream.ts";

/** What the routes work on. */
export interface ControlContext {
  readonly service: Service;
  readonly control: Control;
  readonly clock: EmulatorClock;
  readonly streams: Streams;
}

export interface ControlCall<Body, Query> extends ControlContext {
  /** Path parameters, percent-decoded once. */
  readonly params: Readonly<Record<string, string>>;
  readonly body: Body;
  readonly query: Query;
  /** As the caller addressed the emulator, with its base path. */
  readonly baseUrl: string;
}

export interface ControlRoute<Body = unknown, Query = unknown> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Behind `/_emulator`, with parameters in braces. */
  readonly path: string;
  readonly summary: string;
  /** Absent: the route takes no body. */
  readonly body?: z.ZodType<Body>;
  /** Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /** Absent: the route takes no query parameters. */
  readonly query?: z.ZodType<Query>;
  /** What a success answers with: the guide names its fields, and tests hold answers against it. Absent where it is no JSON object of ours. */
  readonly answer?: z.ZodType;
  /** The answer's content, or a whole response. */
  handle(call: ControlCall<Body, Query>): unknown;
}

/** Keeps the types of body and query between their schemas and the handler. */
export function controlRoute<Body, Query>(route: ControlRoute<Body, Query>): ControlRoute {
  return route as ControlRoute;
}
