/** `POST /api/core/numbers/search`: which numbers could be had. It assigns none (SEA-10). */
import { z } from "zod";
import { refuse, reply } from "../http/answers.ts";
import { coreRoute } from "../http/route.ts";
import { type AvailableNumber, INVENTORY } from "./inventory.ts";

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
