import { inject } from "vitest";
import { largeBodies } from "../large-bodies.ts";
import { newSchema } from "./place.ts";

largeBodies("Postgres", () => [inject("postgresUrl"), newSchema()]);
