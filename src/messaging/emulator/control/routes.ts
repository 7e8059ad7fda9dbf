/** The routes of the control API, in one table for the router and the tests. */

import { z } from "zod";
import type { Timer } from "../../../internal/clock.ts";
import type { EmulatorClock } from "../clock.ts";
import { type FaultRule, faultRuleSchema } from "../faults.ts";
import { redactedHeader, redactedText, withoutCredentials } from "../http/request-log.ts";
import { openApiDocument } from "../openapi/document.ts";
import type { StateExport } from "../options.ts";
import type { EmulatorParts, JournalEntry, Service } from "../service.ts";
import {
  type Attempt,
  clientSchema,
  type Delivery,
  deliverySchema,
  eventSchema,
  inboundMessageSchema,
  messageSchema,
  phoneNumberSchema,
  requestSchema,
  statusSchema,
} from "../state/records.ts";
import {
  type Control,
  type ControlledClient,
  clientFieldsSchema,
  errorSchema,
  filters,
  inboundSchema,
  newClientSchema,
  newNumberSchema,
  numberFieldsSchema,
  recoverSchema,
  triggerSchema,
  unknownId,
} from "./control.ts";
import { stateSchema } from "./create-control.ts";

// One route of the control API: what the router matches, and what its bodies, query parameters and answers look like.

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
  /** What a success answers with: the guide names its fields, and tests hold answers against it. Absent where it is not a JSON object of ours. */
  readonly answer?: z.ZodType;
  /** The answer's content, or a whole response. */
  handle(call: ControlCall<Body, Query>): unknown;
}

/** Keeps the types of body and query between their schemas and the handler. */
function controlRoute<Body, Query>(route: ControlRoute<Body, Query>): ControlRoute {
  return route as ControlRoute;
}

// Records as the control API shows them: without secrets, which only an export of the state holds.

const clientViewSchema = clientSchema.omit({ clientSecret: true }).extend({ accountStatus: statusSchema });

const deliveryViewSchema = deliverySchema
  .omit({ target: true, frozen: true })
  .extend({ target: z.strictObject({ url: z.string(), signed: z.boolean() }).nullable() });

function clientView({ clientSecret, ...client }: ControlledClient): object {
  return client;
}

function deliveryView({ target, frozen, ...delivery }: Delivery): object {
  return {
    ...delivery,
    attempts: delivery.attempts.map(attemptView),
    target: target === null ? null : { url: withoutCredentials(target.url), signed: target.secrets !== null },
  };
}

/** What a receiver answers is its own, and may hold its credentials. */
function attemptView({ responseHeaders, responseBody, ...attempt }: Attempt): Attempt {
  const headers = Object.entries(responseHeaders).map(([name, value]) => [name, redactedHeader(name, value)]);
  return { ...attempt, responseHeaders: Object.fromEntries(headers), responseBody: redactedText(responseBody) };
}

/** An entry of the event stream. */
function entryView(entry: JournalEntry): object {
  return entry.type === "delivery" ? { ...entry, delivery: deliveryView(entry.delivery) } : entry;
}

// The event stream: all that happens, as server-sent events with running numbers.

interface Streams {
  /** A stream of what happens from now on. */
  open(): Response;
  /** Ends all streams. */
  close(): void;
}

/** Said in between, so that proxies keep the connection and a reader sees that nothing happened. */
const HEARTBEAT_MS = 15_000;
/**
 * What one reader may leave unread, and one message; with more its stream ends. Large enough for what happens in one turn when
 * time is moved over thousands of messages, during which no reader can read.
 */
const MOST_UNREAD_BYTES = 16 * 1_048_576;

type Sink = ReadableStreamDefaultController<Uint8Array>;

export function createStreams({ journal, settings }: Pick<EmulatorParts, "journal" | "settings">): Streams {
  const sinks = new Set<Sink>();
  let number = 0;
  let timer: Timer | null = null;

  const end = (sink: Sink) => {
    if (!sinks.delete(sink)) return;
    if (sinks.size === 0) timer?.cancel();
    sink.close();
  };
  const say = (text: string) => {
    const bytes = Buffer.from(text);
    for (const sink of [...sinks]) {
      if ((sink.desiredSize ?? 0) > 0) sink.enqueue(bytes);
      else {
        sink.enqueue(Buffer.from("event: dropped\ndata: {}\n\n"));
        end(sink);
      }
    }
  };
  const beat = () => {
    say(": still here\n\n");
    timer = sinks.size === 0 ? null : settings.systemClock.setTimeout(beat, HEARTBEAT_MS);
  };
  const unwatch = journal.watch((entry) => {
    number += 1;
    if (sinks.size > 0) say(messageOf(number, entry));
  });
  return {
    open() {
      let own: Sink;
      const body = new ReadableStream<Uint8Array>(
        {
          start(sink) {
            own = sink;
            sink.enqueue(Buffer.from(`: ${number} so far\n\n`));
            if (sinks.size === 0) timer = settings.systemClock.setTimeout(beat, HEARTBEAT_MS);
            sinks.add(sink);
          },
          cancel() {
            sinks.delete(own);
            if (sinks.size === 0) timer?.cancel();
          },
        },
        new ByteLengthQueuingStrategy({ highWaterMark: MOST_UNREAD_BYTES }),
      );
      return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
    },
    close() {
      unwatch();
      for (const sink of [...sinks]) end(sink);
    },
  };
}

function messageOf(number: number, entry: JournalEntry): string {
  return `id: ${number}\nevent: ${entry.type}\ndata: ${JSON.stringify(entryView(entry))}\n\n`;
}

// Routes for what decides how the service behaves: fault rules, clients, numbers, tokens.

const faultSchema = z.strictObject({ id: z.string(), rule: faultRuleSchema, played: z.int() });

const anything = z.unknown().optional();
/** Only the fields' names: the control itself reads a rule, and names what is wrong with it. */
const anyFaultSchema = z.looseObject({ match: anything, action: anything, times: anything, probability: anything });

const settingsRoutes = [
  controlRoute({
    method: "GET",
    path: "/faults",
    summary: "The fault rules in force, and how often each was played",
    answer: z.strictObject({ faults: z.array(faultSchema) }),
    handle: ({ control }) => ({ faults: control.faults.list() }),
  }),
  controlRoute({
    method: "POST",
    path: "/faults",
    summary: "Adds a fault rule",
    body: anyFaultSchema,
    answer: z.strictObject({ id: z.string() }),
    handle: ({ control, body }) => ({ id: control.faults.add(body as FaultRule) }),
  }),
  controlRoute({
    method: "DELETE",
    path: "/faults",
    summary: "Removes all fault rules",
    answer: z.strictObject({ removed: z.int() }),
    handle({ control }) {
      const removed = control.faults.list().length;
      control.faults.clear();
      return { removed };
    },
  }),
  controlRoute({
    method: "DELETE",
    path: "/faults/{id}",
    summary: "Removes a fault rule",
    answer: z.strictObject({ removed: z.int() }),
    handle({ control, params: { id = "" } }) {
      if (!control.faults.remove(id)) throw unknownId("fault rule");
      return { removed: 1 };
    },
  }),
  controlRoute({
    method: "GET",
    path: "/clients",
    summary: "All clients, without their secrets",
    answer: z.strictObject({ clients: z.array(clientViewSchema) }),
    handle: ({ control }) => ({ clients: control.clients().map(clientView) }),
  }),
  controlRoute({
    method: "GET",
    path: "/clients/{apiClientId}",
    summary: "A client, without its secret",
    answer: z.strictObject({ client: clientViewSchema }),
    handle({ control, params }) {
      const client = control.clients().find(({ apiClientId }) => apiClientId === params.apiClientId);
      if (client === undefined) throw unknownId("client");
      return { client: clientView(client) };
    },
  }),
  controlRoute({
    method: "POST",
    path: "/clients",
    summary: "Adds a client; every field can be left out, and its secret is in this answer only",
    body: newClientSchema,
    answer: z.strictObject({ client: clientViewSchema, clientSecret: z.string() }),
    handle({ control, body }) {
      const client = control.addClient(body);
      return { client: clientView(client), clientSecret: client.clientSecret };
    },
  }),
  controlRoute({
    method: "PATCH",
    path: "/clients/{apiClientId}",
    summary: "Changes a client's status, capabilities or secret, or its account's status",
    body: clientFieldsSchema,
    answer: z.strictObject({ client: clientViewSchema }),
    handle: ({ control, params: { apiClientId = "" }, body }) => ({
      client: clientView(control.updateClient(apiClientId, body)),
    }),
  }),
  controlRoute({
    method: "GET",
    path: "/numbers",
    summary: "All clients' numbers",
    answer: z.strictObject({ numbers: z.array(phoneNumberSchema) }),
    handle: ({ control }) => ({ numbers: control.numbers() }),
  }),
  controlRoute({
    method: "GET",
    path: "/numbers/{numberId}",
    summary: "A number",
    answer: z.strictObject({ number: phoneNumberSchema }),
    handle({ control, params }) {
      const number = control.numbers().find(({ numberId }) => numberId === params.numberId);
      if (number === undefined) throw unknownId("number");
      return { number };
    },
  }),
  controlRoute({
    method: "POST",
    path: "/numbers",
    summary: "Adds a number; all but `e164` can be left out",
    body: newNumberSchema,
    answer: z.strictObject({ number: phoneNumberSchema }),
    handle: ({ control, body }) => ({ number: control.addNumber(body) }),
  }),
  controlRoute({
    method: "PATCH",
    path: "/numbers/{numberId}",
    summary: "Changes anything of a number, also what the service's own route cannot",
    body: numberFieldsSchema,
    answer: z.strictObject({ number: phoneNumberSchema }),
    handle: ({ control, params: { numberId = "" }, body }) => ({ number: control.updateNumber(numberId, body) }),
  }),
  controlRoute({
    method: "POST",
    path: "/tokens/revoke",
    summary: "Makes all tokens unknown, or those of one client",
    body: z.strictObject({ apiClientId: z.string().min(1).optional() }).optional(),
    answer: z.strictObject({ revoked: z.int() }),
    handle: ({ control, body }) => ({ revoked: control.revokeTokens(body?.apiClientId) }),
  }),
];

// Routes for what goes through the service: API calls, messages, events, deliveries.

const trafficRoutes = [
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

// Routes for the emulator as a whole: health, state, clock, the event stream and the API's description.

/** An export grows with `keep`; Node's longest text is about twice as much. */
const MAX_STATE_BYTES = 256 * 1_048_576;

const clockSchema = z.strictObject({
  /** The emulator's time, epoch ms. */
  now: z.int(),
  /** Emulator milliseconds per real one; 0 while time moves only on request. */
  rate: z.number(),
  /** Messages' steps and attempts that wait for their time. */
  waiting: z.int(),
});

function clockView({ service: { time, scheduler } }: ControlContext): z.output<typeof clockSchema> {
  return { now: time.now(), rate: time.rate, waiting: scheduler.waiting };
}

const wholeRoutes = [
  controlRoute({
    method: "GET",
    path: "/health",
    summary: "Whether the emulator answers",
    answer: z.strictObject({ status: z.literal("ok"), now: z.int() }),
    handle: ({ service }) => ({ status: "ok", now: service.time.now() }),
  }),
  controlRoute({
    method: "GET",
    path: "/state",
    summary: "The whole state, with its secrets",
    answer: stateSchema,
    handle: ({ control }) => control.exportState(),
  }),
  controlRoute({
    method: "POST",
    path: "/state",
    summary: "Puts an exported state in the place of this one",
    body: z.looseObject({}),
    maxBodyBytes: MAX_STATE_BYTES,
    answer: clockSchema,
    handle(call) {
      // Checked by the control itself, record by record.
      call.control.importState(call.body as unknown as StateExport);
      return clockView(call);
    },
  }),
  controlRoute({
    method: "POST",
    path: "/reset",
    summary: "Back to the seed data; the clock stays where it is",
    answer: clockSchema,
    handle(call) {
      call.control.reset();
      return clockView(call);
    },
  }),
  controlRoute({ method: "GET", path: "/clock", summary: "The time", answer: clockSchema, handle: clockView }),
  controlRoute({
    method: "POST",
    path: "/clock",
    summary: "Moves time on; answers when all that came due has happened and every attempt has ended",
    body: z.strictObject({ advanceMs: z.number() }),
    answer: clockSchema,
    async handle(call) {
      await call.clock.advance(call.body.advanceMs);
      return clockView(call);
    },
  }),
  controlRoute({
    method: "GET",
    path: "/stream",
    summary: "All that happens from now on, as server-sent events",
    handle: ({ streams }) => streams.open(),
  }),
  controlRoute({
    method: "GET",
    path: "/openapi.json",
    summary: "The description of the service's API",
    handle: ({ baseUrl }) => openApiDocument(baseUrl),
  }),
];

// Every route of the control API, once: for the router and the tests.

export const CONTROL_ROUTES: readonly ControlRoute[] = [...wholeRoutes, ...trafficRoutes, ...settingsRoutes];
