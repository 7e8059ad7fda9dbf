/** The routes of a client's numbers: listing and updating them. */
import { z } from "zod";
import { blockedTargetWarnings } from "../delivery/egress.ts";
import { refuse, reply } from "../http/answers.ts";
import { coreRoute, numberSchema } from "../http/route.ts";
import type { PhoneNumber } from "../state/records.ts";
import type { Readings } from "../unspecified.ts";
import { targetUrl } from "./webhooks.ts";

const listSchema = z.looseObject({ numbers: z.array(numberSchema) });

const updatedSchema = z.looseObject({
  number: numberSchema.nullable().describe("Can be null: read the numbers again"),
});

const updateSchema = z.object({
  /** A lowercase r, unlike in answers (UPD-7). */
  campaignregId: z
    .string()
    .min(1, "must not be empty")
    .nullable()
    .describe("A lowercase r, unlike in answers; null clears it. Unspecified: its form; here at least 1 character")
    .optional(),
  smsEnabled: z.boolean().optional(),
  mmsEnabled: z.boolean().optional(),
  webhookInboundOverride: targetUrl.optional(),
  webhookDeliveryOverride: targetUrl.optional(),
});

type Update = z.output<typeof updateSchema>;

export const listNumbers = coreRoute({
  method: "GET",
  path: "/api/core/numbers",
  operationId: "listNumbers",
  summary: "The numbers assigned to the calling client",
  success: { status: 200, description: "All of them", schema: listSchema },
  errors: [],
  capability: "numbers:read",
  handle({ service: { state, settings }, client }) {
    const own = [...state.numbers.values()].filter(({ apiClientId }) => apiClientId === client.apiClientId);
    return reply(200, { numbers: own.map((number) => written(number, settings.readings)) });
  },
});

export const updateNumber = coreRoute<Update>({
  method: "PATCH",
  path: "/api/core/numbers/{numberId}",
  operationId: "updateNumber",
  summary: "Changes settings of a number, such as its own webhook targets",
  success: { status: 200, description: "The number as it is now", schema: updatedSchema },
  errors: [400, 403, 404],
  capability: "numbers:update",
  body: updateSchema,
  lookalikes: new Map([
    [
      "campaignRegId",
      '"campaignRegId" IS NOT A FIELD OF THIS REQUEST and changed nothing: answers write it with a capital R, requests take "campaignregId" (UPD-7)',
    ],
  ]),
  // The body was checked before; the order of the others is UPD-14's.
  handle({ service: { state, settings }, client, params, body, warn }) {
    const number = state.numbers.get(params.numberId ?? "");
    if (number === undefined) return refuse("NOT_FOUND", "There is no such number.");
    if (number.apiClientId !== client.apiClientId) return refuse("FORBIDDEN", "The number is another client's.");
    if (number.status !== "ACTIVE") return refuse("INVALID_REQUEST", "The number is not active.");
    const next = updated(number, body);
    state.numbers.put(number.numberId, next);
    const { webhookInboundOverride, webhookDeliveryOverride } = body;
    const targets = { webhookInboundOverride, webhookDeliveryOverride };
    for (const warning of blockedTargetWarnings(settings, targets)) warn(warning);
    return reply(200, { number: settings.readings.updateReturnsNull ? null : written(next, settings.readings) });
  },
});

/** Absent stays as it was, null clears (UPD-8, UPD-10). */
function updated(number: PhoneNumber, update: Update): PhoneNumber {
  return {
    ...number,
    campaignRegId: kept(update.campaignregId, number.campaignRegId),
    smsEnabled: update.smsEnabled ?? number.smsEnabled,
    mmsEnabled: update.mmsEnabled ?? number.mmsEnabled,
    webhookInboundOverride: kept(update.webhookInboundOverride, number.webhookInboundOverride),
    webhookDeliveryOverride: kept(update.webhookDeliveryOverride, number.webhookDeliveryOverride),
  };
}

function kept(given: string | null | undefined, present: string | null): string | null {
  return given === undefined ? present : given;
}

/** As an answer shows it; `absentNullables` says what becomes of null (NUM-6). */
function written({ apiClientId: _, ...shown }: PhoneNumber, { absentNullables }: Readings): object {
  if (absentNullables === "null") return shown;
  return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== null));
}

// `POST /api/core/numbers/search`: which numbers could be had. It assigns none (SEA-10).

/** A search by this zip code fails as if the inventory behind the service did (SEA-8). No place has it. */
export const MAGIC_ZIP_UPSTREAM = "00502";

/** What a search says it asked for; not a field of the request (SEA-7, SEA-13). */
const REQUESTED_QUANTITY = 50;

const searchSchema = z
  .object({
    npa: z.string().describe("Area code. Unspecified: its form; here any text").optional(),
    nxx: z.string().describe("Exchange; needs npa. Unspecified: its form; here any text").optional(),
    city: z.string().describe("Needs state. Unspecified: whether its case matters; here it does not").optional(),
    state: z.string().describe("Unspecified: its form; here two letters of any case").optional(),
    zipCode: z.string().describe("Unspecified: its form; here any text").optional(),
    rateCenter: z.string().describe("Currently refused, with or without state").optional(),
  })
  .superRefine((search, context) => {
    const refuseField = (field: keyof typeof search, message: string) =>
      context.addIssue({ code: "custom", path: [field], message });
    if (search.nxx !== undefined && search.npa === undefined) refuseField("nxx", "needs npa");
    if (search.city !== undefined && search.state === undefined) refuseField("city", "needs state");
    if (search.rateCenter === undefined) return;
    if (search.state === undefined) refuseField("rateCenter", "needs state");
    refuseField("rateCenter", "searching by it is currently refused");
  });

type Search = z.output<typeof searchSchema>;

const foundSchema = z.looseObject({
  groups: z.array(
    z.looseObject({
      rateCenter: z.string(),
      count: z.int(),
      numbers: z.array(
        z.looseObject({
          e164: z.string(),
          nationalDisplay: z.string().nullish(),
          city: z.string().nullish(),
          state: z.string().nullish(),
          rateCenter: z.string().nullish(),
        }),
      ),
    }),
  ),
  providerResultCount: z.int().nullish(),
  requestedQuantity: z.int().describe("Unspecified: its value; here 50"),
});

export const searchNumbers = coreRoute<Search>({
  method: "POST",
  path: "/api/core/numbers/search",
  operationId: "searchNumbers",
  summary: "Numbers that could be had, by area, city, state or zip code",
  success: { status: 200, description: "What was found, by rate center", schema: foundSchema },
  errors: [400, 502],
  capability: "numbers:search",
  body: searchSchema,
  handle({ service, body }) {
    if (service.settings.magic && body.zipCode === MAGIC_ZIP_UPSTREAM) {
      return refuse("UPSTREAM_ERROR", "The upstream inventory search failed.", { providerStatus: 503 });
    }
    const found = INVENTORY.filter((number) => fits(number, body));
    return reply(200, {
      groups: groupsOf(found),
      providerResultCount: found.length,
      requestedQuantity: REQUESTED_QUANTITY,
    });
  },
});

/** A field that is absent fits every number (SEA-11). */
function fits(number: AvailableNumber, { npa, nxx, city, state, zipCode }: Search): boolean {
  return (
    (npa === undefined || npa === number.npa) &&
    (nxx === undefined || nxx === number.nxx) &&
    (city === undefined || city.toLowerCase() === number.city?.toLowerCase()) &&
    (state === undefined || state.toLowerCase() === number.state.toLowerCase()) &&
    (zipCode === undefined || zipCode === number.zipCode)
  );
}

/** By rate center, in the inventory's order (SEA-6). */
function groupsOf(found: readonly AvailableNumber[]): object[] {
  const groups = new Map<string, object[]>();
  for (const { e164, nationalDisplay, city, state, rateCenter } of found) {
    const numbers = groups.get(rateCenter) ?? [];
    numbers.push({ e164, nationalDisplay, city, state, rateCenter });
    groups.set(rateCenter, numbers);
  }
  return [...groups].map(([rateCenter, numbers]) => ({ rateCenter, count: numbers.length, numbers }));
}

// Numbers that nobody has: what a search finds, with line numbers that no real telephone has (555-01xx).

interface AvailableNumber {
  readonly e164: string;
  readonly nationalDisplay: string;
  readonly city: string | null;
  readonly state: string;
  readonly rateCenter: string;
  readonly npa: string;
  readonly nxx: string;
  readonly zipCode: string;
}

type Area = readonly [npa: string, state: string, city: string | null, zipCode: string, rateCenter: string];

/** Springfield and Salem come twice, which is why a search by city needs the state; one area has no city, as answers can hold null. */
const AREAS: readonly Area[] = [
  ["206", "WA", "Seattle", "98101", "SEATTLE"],
  ["206", "WA", "Seattle", "98104", "SEATTLE"],
  ["253", "WA", "Tacoma", "98402", "TACOMA"],
  ["559", "CA", "Fresno", "93721", "FRESNO"],
  ["503", "OR", "Portland", "97204", "PORTLAND"],
  ["503", "OR", "Salem", "97301", "SALEM"],
  ["541", "OR", null, "97720", "BURNS"],
  ["217", "IL", "Springfield", "62701", "SPRINGFLD"],
  ["312", "IL", "Chicago", "60601", "CHICAGO Z1"],
  ["413", "MA", "Springfield", "01103", "SPRINGFIELD"],
  ["617", "MA", "Boston", "02108", "BOSTON"],
  ["978", "MA", "Salem", "01970", "SALEM MA"],
];

const NUMBERS_PER_AREA = 4;
const NXX = "555";
/** Those before it are for the numbers that clients have. */
const FIRST_LINE = 110;

/** In an order that never changes. 48, so that all of them fit into the 50 that a search asks for (SEA-11, SEA-13). */
export const INVENTORY: readonly AvailableNumber[] = AREAS.flatMap((area, index) =>
  // Lines count through all areas, so that areas with one area code share none.
  Array.from({ length: NUMBERS_PER_AREA }, (_, i) => numberIn(area, FIRST_LINE + index * NUMBERS_PER_AREA + i)),
);

function numberIn([npa, state, city, zipCode, rateCenter]: Area, line: number): AvailableNumber {
  const subscriber = String(line).padStart(4, "0");
  const nationalDisplay = `(${npa}) ${NXX}-${subscriber}`;
  return { e164: `+1${npa}${NXX}${subscriber}`, nationalDisplay, city, state, rateCenter, npa, nxx: NXX, zipCode };
}
