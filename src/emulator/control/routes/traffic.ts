/** Routes for what goes through the service: API calls, messages, events, deliveries. */
import { z } from "zod";
import { eventSchema, inboundMessageSchema, messageSchema, requestSchema } from "../../state/schemas.ts";
import { controlRoute } from "../control-route.ts";
import { errorSchema, filters, inboundSchema, recoverSchema, triggerSchema } from "../inputs.ts";
import { deliveryView, deliveryViewSchema } from "../views.ts";

export const trafficRoutes = [
  controlRoute({
    method: "GET",
    path: "/requests",
    summary: "Calls of the API, without secrets",
    query: filters.requests,
    answer: z.strictObject({ requests: z.array(requestSchema) }),
    handle: ({ control, query }) => ({ requests: control.requests(query) }),
  }),
  controlRoute({
    method: "POST",
    path: "/inbound",
    summary: "A customer's message to one of our numbers",
    body: inboundSchema,
    answer: z.strictObject({ message: inboundMessageSchema }),
    handle: ({ control, body }) => ({ message: control.inbound(body) }),
  }),
  controlRoute({
    method: "GET",
    path: "/messages",
    summary: "Outbound and inbound messages",
    query: filters.messages,
    answer: z.strictObject({ messages: z.array(z.union([messageSchema, inboundMessageSchema])) }),
    handle: ({ control, query }) => ({ messages: control.messages(query) }),
  }),
  controlRoute({
    method: "POST",
    path: "/messages/{messageId}/advance",
    summary: "The next step of a message happens now",
    answer: z.strictObject({ message: messageSchema }),
    handle: ({ control, params: { messageId = "" } }) => ({ message: control.advanceMessage(messageId) }),
  }),
  controlRoute({
    method: "POST",
    path: "/messages/{messageId}/fail",
    summary: "A message fails now, whatever was planned",
    body: errorSchema.optional(),
    answer: z.strictObject({ message: messageSchema }),
    handle: ({ control, params: { messageId = "" }, body }) => ({ message: control.failMessage(messageId, body) }),
  }),
  controlRoute({
    method: "POST",
    path: "/trigger",
    summary: "Any event, as if the service had sent it",
    body: triggerSchema,
    answer: z.strictObject({ event: eventSchema }),
    handle: ({ control, body }) => ({ event: control.trigger(body) }),
  }),
  controlRoute({
    method: "GET",
    path: "/events",
    summary: "Events with their exact bodies",
    query: filters.events,
    answer: z.strictObject({ events: z.array(eventSchema) }),
    handle: ({ control, query }) => ({ events: control.events(query) }),
  }),
  controlRoute({
    method: "GET",
    path: "/deliveries",
    summary: "Deliveries with their attempts",
    query: filters.deliveries,
    answer: z.strictObject({ deliveries: z.array(deliveryViewSchema) }),
    handle: ({ control, query }) => ({ deliveries: control.deliveries(query).map(deliveryView) }),
  }),
  controlRoute({
    method: "POST",
    path: "/deliveries/{deliveryId}/redeliver",
    summary: "One extra attempt; no retry follows",
    answer: z.strictObject({ delivery: deliveryViewSchema }),
    handle: async ({ control, params: { deliveryId = "" } }) => ({
      delivery: deliveryView(await control.redeliver(deliveryId)),
    }),
  }),
  controlRoute({
    method: "POST",
    path: "/recover",
    summary: "One extra attempt of everything since a time that was not delivered",
    body: recoverSchema,
    answer: z.strictObject({ deliveries: z.array(deliveryViewSchema) }),
    handle: async ({ control, body }) => ({ deliveries: (await control.recover(body.since)).map(deliveryView) }),
  }),
];
