/** Every route of the API, once: for the router, the OpenAPI document and the tests. */
import type { Route } from "../http/route.ts";
import { whoami } from "./whoami.ts";

export const ROUTES: readonly Route[] = [whoami];
