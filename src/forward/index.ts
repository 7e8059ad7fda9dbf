/** `oncehook/forward`: events handed to a distributed engine, through the inbox or past it. */
export { type ForwardContext, forward } from "./forward.ts";
export { type HttpPublisherOptions, httpPublisher } from "./http.ts";
export type { ForwardedMessage } from "./message.ts";
export { type Passthrough, type PassthroughOptions, passthrough } from "./passthrough.ts";
export type { Publish, Publisher } from "./publisher.ts";
