/** Every route of the control API, once: for the router and the tests. */
import type { ControlRoute } from "../control-route.ts";
import { settingsRoutes } from "./settings.ts";
import { trafficRoutes } from "./traffic.ts";
import { wholeRoutes } from "./whole.ts";

export const CONTROL_ROUTES: readonly ControlRoute[] = [...wholeRoutes, ...trafficRoutes, ...settingsRoutes];
