/** Routes for what decides how the service behaves: fault rules, clients, numbers, tokens. */
import { z } from "zod";
import { type FaultRule, faultRuleSchema } from "../../faults/rule.ts";
import { phoneNumberSchema } from "../../state/schemas.ts";
import { controlRoute } from "../control-route.ts";
import { clientFieldsSchema, newClientSchema, newNumberSchema, numberFieldsSchema } from "../inputs.ts";
import { unknownId } from "../unknown-id.ts";
import { clientView, clientViewSchema } from "../views.ts";

const faultSchema = z.strictObject({ id: z.string(), rule: faultRuleSchema, played: z.int() });

const anything = z.unknown().optional();
/** Only the fields' names: the control itself reads a rule, and names what is wrong with it. */
const anyFaultSchema = z.looseObject({ match: anything, action: anything, times: anything, probability: anything });

export const settingsRoutes = [
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
