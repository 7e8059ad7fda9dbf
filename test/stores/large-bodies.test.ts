import { largeBodies } from "./large-bodies.ts";
import { makePath } from "./sqlite-place.ts";

largeBodies("a SQLite file", () => [makePath()]);
