/** `npm run openapi`: writes docs/openapi.json from the sources. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openApiDocument } from "../src/emulator/openapi/document.ts";

const file = join(process.cwd(), "docs/openapi.json");
const document = openApiDocument();
writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
console.log(`docs/openapi.json: ${Object.keys(document.paths as object).length} paths`);
