/** The inspector: a page, and its JSON, that show what happened to a message. */
export type * from "./api.ts";
export type { InspectorAnswer, InspectorRequest, JsonReading, Mountable } from "./http.ts";
export { createInspector, type Inspector } from "./inspector.ts";
export type { Grant, InspectorOptions } from "./options.ts";
