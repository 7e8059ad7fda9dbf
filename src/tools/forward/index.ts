/** `oncehook/forward`: events handed to a distributed engine, through the inbox or past it. */
export { type ForwardContext, forward, type Passthrough, type PassthroughOptions, passthrough } from "./forward.ts";
export { type HttpPublisherOptions, httpPublisher } from "./http.ts";
export type { ForwardedMessage, Publish, Publisher } from "./publisher.ts";
