/** All routes of the JSON API. */
import type { Route } from "../route.ts";
import { streamRoute } from "../stream.ts";
import { actRoutes } from "./acts.ts";
import { bulkRoute } from "./bulk.ts";
import { eventsRoute } from "./events.ts";
import { messageRoutes, quarantineRoutes } from "./messages.ts";
import { auditRoute, groupsRoute, historyRoute, lookupRoute, overviewRoute } from "./overview.ts";

export const ROUTES: readonly Route[] = [
  overviewRoute,
  historyRoute,
  streamRoute,
  eventsRoute,
  ...messageRoutes,
  lookupRoute,
  ...quarantineRoutes,
  groupsRoute,
  auditRoute,
  ...actRoutes,
  bulkRoute,
];
