/** All routes of the JSON API. */
import type { Route } from "../route.ts";
import { historyRoute } from "./history.ts";
import { overviewRoute } from "./overview.ts";
import { streamRoute } from "./stream.ts";

export const ROUTES: readonly Route[] = [overviewRoute, historyRoute, streamRoute];
