/** All routes of the JSON API. */
import type { Route } from "../route.ts";
import { actRoutes } from "./acts.ts";
import { auditRoute } from "./audit.ts";
import { bulkRoute } from "./bulk.ts";
import { eventsRoute } from "./events.ts";
import { groupsRoute } from "./groups.ts";
import { historyRoute } from "./history.ts";
import { lookupRoute } from "./lookup.ts";
import { messageRoutes } from "./messages.ts";
import { overviewRoute } from "./overview.ts";
import { quarantineRoutes } from "./quarantine.ts";
import { streamRoute } from "./stream.ts";

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
