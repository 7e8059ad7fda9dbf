/** `npm run openapi`: writes docs/openapi.json from the sources, and docs/emulator-api.md, the same to read. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openApiDocument } from "../src/messaging/emulator/openapi/document.ts";
import { table } from "./docs/table.ts";

/** What the page reads of an operation. */
interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description?: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, { readonly $ref?: string; readonly description?: string }>>;
}

interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
}

export interface Document {
  readonly info: { readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, { readonly description: string }>>;
  };
}

/** The document as a page of Markdown. */
export function apiPage({ info, paths, webhooks, components }: Document): string {
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationOf(`${method.toUpperCase()} ${path}`, operation)),
  );
  const sent = Object.entries(webhooks).flatMap(([name, methods]) =>
    Object.values(methods).map((operation) => operationOf(name, operation)),
  );
  const schemas = Object.entries(components.schemas).map(([name, schema]) => schemaOf(name, schema));
  const head = ["<!-- Written by `npm run openapi`. -->", "# The service's API", info.description];
  const files = "[openapi.json](openapi.json) is the same for programs.";
  const parts = [...head, files, "## Routes", ...routes, "## Webhooks", ...sent, "## Bodies", ...schemas];
  return `${parts.join("\n\n")}\n`;

  function operationOf(name: string, operation: Operation): string {
    const { summary, description = "", parameters = [], requestBody, responses } = operation;
    const [content] = Object.values(requestBody?.content ?? {});
    const answers = Object.entries(responses).map(([status, { $ref, description: meaning }]) => {
      const shared = $ref === undefined ? undefined : components.responses[nameOf($ref)];
      return [status, meaning ?? shared?.description ?? ""];
    });
    return [
      `### ${name}`,
      `${summary}.`,
      withLists(description),
      ...parameters.map((one) => `- \`${one.name}\` (${one.in}): ${one.description ?? ""}`.replace(/: $/, "")),
      content === undefined ? "" : `Takes ${typeOf(content.schema)}.`,
      ...examplesOf(content),
      table(["status", "when"], answers),
    ]
      .filter((part) => part !== "")
      .join("\n\n");
  }
}

/** What the specification leaves open, as a list. */
function withLists(description: string): string {
  return description.replace(/^Unspecified: (.*;.*)$/gm, (_, text: string) =>
    [
      "The specification does not show:\n",
      ...text
        .replace(/\.$/, "")
        .split("; ")
        .map((part) => `- ${part}`),
    ].join("\n"),
  );
}

function examplesOf(content: Content | undefined): readonly string[] {
  const values = [content?.example, ...Object.values(content?.examples ?? {}).map(({ value }) => value)];
  return values
    .filter((value) => value !== undefined)
    .map((value) => `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``);
}

function schemaOf(name: string, schema: Schema): string {
  const rows = rowsOf(schema, "");
  const fields = rows.length > 0 ? table(["field", "type", "meaning"], rows) : typeOf(schema);
  return [`### ${name}`, schema.description ?? "", fields].filter((part) => part !== "").join("\n\n");
}

function rowsOf({ properties = {}, required = [] }: Schema, path: string): readonly (readonly string[])[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const field = `${path}${name}${required.includes(name) ? "" : "?"}`;
    const row = [`\`${field}\``, typeOf(schema), schema.description ?? ""];
    return [row, ...rowsOf(schema, `${path}${name}.`), ...rowsOf(schema.items ?? {}, `${path}${name}[].`)];
  });
}

function typeOf(schema: Schema): string {
  const { $ref, type, items, enum: values, const: value, oneOf, anyOf } = schema;
  if ($ref !== undefined) return `[${nameOf($ref)}](#${nameOf($ref).toLowerCase()})`;
  if (value !== undefined) return `\`${JSON.stringify(value)}\``;
  if (values !== undefined) return values.map((one) => `\`${JSON.stringify(one)}\``).join(" or ");
  const cases = oneOf ?? anyOf;
  if (cases !== undefined) return cases.map(typeOf).join(" or ");
  const name = [type ?? "any"].flat().join(" or ");
  return items === undefined ? name : `${name} of ${typeOf(items)}`;
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}

if (process.argv[1]?.endsWith("openapi.js")) {
  const document = openApiDocument();
  writeFileSync(join(process.cwd(), "docs/openapi.json"), `${JSON.stringify(document, null, 2)}\n`);
  writeFileSync(join(process.cwd(), "docs/emulator-api.md"), apiPage(document as unknown as Document));
  console.log(`docs/openapi.json, docs/emulator-api.md: ${Object.keys(document.paths as object).length} paths`);
}
