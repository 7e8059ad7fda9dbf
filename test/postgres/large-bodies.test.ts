import { inject } from "vitest";
import { largeBodies } from "../stores/large-bodies.ts";
import { newSchema } from "./place.ts";

largeBodies("Postgres", () => [inject("postgresUrl"), newSchema()]);
