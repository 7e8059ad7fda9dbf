/** The tables of docs/emulator.md that come from the sources. */
import { z } from "zod";
import { CONTROL_ROUTES } from "../../src/messaging/emulator/control/routes.ts";
import { MAGIC_RECIPIENTS } from "../../src/messaging/emulator/messages/plan.ts";
import { MAGIC_ZIP_UPSTREAM } from "../../src/messaging/emulator/routes/numbers.ts";
import { READINGS, type Reading } from "../../src/messaging/emulator/unspecified.ts";
import { table } from "./table.ts";

/** By the name in their markers: `<!-- table: readings -->`. */
const TABLES: Readonly<Record<string, () => string>> = {
  readings: () =>
    table(
      ["name", "rule", "values, the default first", "decides"],
      Object.entries(READINGS).map(([name, reading]: [string, Reading]) => [
        code(name),
        reading.rule,
        valuesOf(reading),
        reading.decides,
      ]),
    ),
  magic: () =>
    table(
      ["recipient", "its message"],
      Object.entries(MAGIC_RECIPIENTS).map(([number, { does }]) => [code(number), does]),
    ),
  zip: () =>
    table(
      ["`zipCode`", "the search"],
      [[code(MAGIC_ZIP_UPSTREAM), "fails: 502 `UPSTREAM_ERROR`, `details.providerStatus` 503"]],
    ),
  control: () =>
    table(
      ["route", "does", "takes", "answers with"],
      CONTROL_ROUTES.map(({ method, path, summary, body, query, answer }) => [
        code(`${method} ${path}`),
        summary,
        [...fieldsOf(query).map((field) => `?${field}`), ...fieldsOf(body)].map(code).join(" "),
        fieldsOf(answer).map(code).join(" "),
      ]),
    ),
};

const MARKED = /(<!-- table: (\w+) -->\n)[\s\S]*?(<!-- end of table -->)/g;

/** The guide with its tables as the sources have them. Throws for a marker without a table, and for a table without a marker. */
export function withTables(guide: string): string {
  const missing = new Set(Object.keys(TABLES));
  const written = guide.replace(MARKED, (_, open: string, name: string, close: string) => {
    const make = TABLES[name];
    if (make === undefined)
      throw new Error(`There is no table "${name}"; there are ${Object.keys(TABLES).join(", ")}.`);
    missing.delete(name);
    return `${open}${make()}\n${close}`;
  });
  if (missing.size > 0) throw new Error(`docs/emulator.md has no place for the table ${[...missing].join(", ")}.`);
  return written;
}

function valuesOf({ values }: Reading): string {
  if ("unit" in values)
    return `${code(String(values.default))}, or another number of ${values.unit} up to ${values.max}`;
  if ("pattern" in values) return `${code(JSON.stringify(values.default))}, or another text`;
  return values.map((value) => code(JSON.stringify(value))).join(", ");
}

/** The names of an object's fields. A union has none of its own. */
function fieldsOf(schema: z.ZodType | undefined): string[] {
  if (schema === undefined) return [];
  const { properties = {} } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return Object.keys(properties);
}

function code(text: string): string {
  return `\`${text}\``;
}
