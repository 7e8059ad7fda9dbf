/** Numbers that nobody has: what a search finds, with line numbers that no real telephone has (555-01xx). */

export interface AvailableNumber {
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
