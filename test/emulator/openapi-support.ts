/** The OpenAPI document as its tests look at it. */
import { openApiDocument } from "../../src/emulator/openapi/document.ts";
import { ROUTES } from "../../src/emulator/routes/table.ts";

// biome-ignore lint/suspicious/noExplicitAny: the document is JSON of many shapes, and each test looks at one
export const document: any = JSON.parse(JSON.stringify(openApiDocument()));

export const operations = ROUTES.map((route) => ({
  route,
  operation: document.paths[route.path][route.method.toLowerCase()],
}));
export const operationOf = (method: string, path: string) => document.paths[path][method.toLowerCase()];
export const schemaOf = ({ $ref }: { $ref: string }) => document.components.schemas[$ref.split("/").at(-1) ?? ""];
export const json = (content: { content: Record<string, unknown> }) =>
  // biome-ignore lint/suspicious/noExplicitAny: as above
  content.content["application/json"] as any;
